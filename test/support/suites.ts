/**
 * Which suites there are, which half of them a change is tried with, and which of them share a process. The runner
 * (run.ts) and the repeater (repeat/main.ts) start the same processes, the same way.
 */
import { chmodSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * In the order in which they begin: the longest of all, those that wait for many processes, those that wait for some,
 * then the rest.
 */
const SUITES = [
  'test/fault/rail-attack/*.test.ts',
  'test/{fault,end-to-end,system}/**/*.test.ts',
  '{src/router,test}/**/*.test.ts',
  '{src,examples,bench}/**/*.test.ts',
];

/**
 * What a release must pass and a change seldom touches: campaigns of faults and attacks that go on until they have seen
 * enough, what copies, moves or deals out whole installations or the source, every command that the pages show, the
 * packed artefact with all that is made of it, what a second browser or device is needed for, and the programs of
 * others: those that are woken, and those that judge us. CI runs them after `npm test`.
 */
const RELEASE = new RegExp(
  `^test/(?:${[
    'end-to-end/up-frozen',
    'contract/(?:cron-oracle|receipt-vectors|second-verifier)',
    'fault/(?:chaos|checker|rail-attack|red-team|simulation)',
    'system/(?:backup|deploy|drift|integrations|package|pages|public-listener|python-client|isolation|service|site)',
    'system/(?:transfer|wake-targets)',
    'system/(?:chronometric/inspector|chronos-mcp/misfortune|listeners/json|executor/kill-matrix)',
    'system/console/(?:fleet|hostile|passkeys|push)',
    'system/(?:mcp-host/conformance|postgres/(?:outage|reshard|together))',
  ].join('|')})\\b`,
);

const ROOT = resolve(import.meta.dirname, '..', '..');

/** Linux's folder in memory, and what must be free there: thirty servers of 100 MB. */
const MEMORY = '/dev/shm';
const MEMORY_BYTES = 3 * 1024 ** 3;

/** Where suites share a process, each folder named here one: as far as they only compute, or start daemons within it. */
const SHARING = /^(?:src\/[^/]+|bench|test\/(?:architecture|support)|test\/(?:contract|fault|system)\/[^/]+)(?=\/)/;
/**
 * A suite with one of these in its text has a process of its own: hooks around each test of a file, which would be around
 * those of its neighbours too; what it waits for while it loads, for its neighbours come to their end meanwhile, and with
 * them the hooks at the end of a file; processes and threads, for which a whole system would wait; and what all of a
 * process shares. Hooks of the whole file, and servers at ports that the system picks, disturb nobody.
 */
const NEEDS_OWN_PROCESS = new RegExp(
  [
    /^(?:before|after)Each\(/,
    /^(?:(?:const|let) .* = )?await /,
    /node:(?:child_process|worker_threads)\b/,
    /\bprocess\.(?:env|chdir|on|once|exitCode)\b/,
    /\b(?:mock\.|stackTraceLimit|setFlagsFromString)/,
    /support\/(?!temporary|eventually|command-line|installation|random|stand-ins|tools)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'm',
);

const found = (patterns: readonly string[]): string[] => {
  const files = patterns.flatMap((pattern) =>
    globSync(pattern, { exclude: (path) => path.includes('node_modules') }).toSorted(),
  );
  return [...new Set(files)];
};

/** The module that decides which optional tools are present. */
const TOOLS = resolve(import.meta.dirname, 'tools.ts');

/**
 * The files that a suite is made of: itself, and the modules of the tests that it imports, as far as {@link TOOLS}.
 * Modules of the program are left out.
 */
export function testFilesOf(suite: string, found = new Set<string>()): Set<string> {
  const file = resolve(suite);
  if (found.has(file) || !existsSync(file)) return found;
  found.add(file);
  if (file === TOOLS) return found;
  for (const [, specifier] of readFileSync(file, 'utf8').matchAll(/\bfrom '(\.[^']+\.ts)'/g)) {
    const path = resolve(dirname(file), specifier!);
    if (/\/(?:test|testing)\//.test(path.slice(ROOT.length))) testFilesOf(path, found);
  }
  return found;
}

/**
 * The suites that the words of a command line name: patterns, or all of them; `--product` and `--release` leave one half,
 * `--needs-tools` leaves those that start optional tools (tools.ts). None found ends the process.
 */
export function suitesOf(words: readonly string[]): string[] {
  const patterns = words.filter((word) => !word.startsWith('--'));
  const suites = found(patterns.length > 0 ? patterns : SUITES).filter((suite) => {
    if (words.includes('--needs-tools') && !testFilesOf(suite).has(TOOLS)) return false;
    if (words.includes('--product')) return !RELEASE.test(suite);
    return !words.includes('--release') || RELEASE.test(suite);
  });
  if (suites.length > 0) return suites;
  console.error(`no file matches ${patterns.join(' ')}`);
  process.exit(2);
}

const systemOf = (suite: string): string | undefined =>
  NEEDS_OWN_PROCESS.test(readFileSync(suite, 'utf8')) ? undefined : SHARING.exec(suite)?.[0];

/** Short, where it is alone in its process: these fill the cores while the last of the others compute. */
const IS_SHORT = /^(?:src\/(?!router\/)|examples|bench)/;

/** What one process runs: a suite, or those of a system that share one. */
export type TestProcess = {
  /** Its suite, or the folder of its suites. */
  readonly name: string;
  readonly file: string;
};

/**
 * The processes that run these suites, in the order in which they begin. What they need besides is made here, and is gone
 * when we end: the files that join suites, and the place of the cluster that they share.
 */
export function processesOf(suites: readonly string[]): TestProcess[] {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-suites-'));
  const clusters = mkdtempSync(join(placeOfClusters(), 'reveille-clusters-'));
  // PostgreSQL may run as another user.
  chmodSync(clusters, 0o711);
  process.once('exit', () => {
    for (const made of [folder, clusters]) rmSync(made, { recursive: true, force: true });
  });
  process.env.REVEILLE_TEST_CLUSTER = join(clusters, 'cluster');
  const placed = suites.map((suite) => ({ suite, system: systemOf(suite) }));
  const isLast = ({ suite, system }: (typeof placed)[number]) => system === undefined && IS_SHORT.test(suite);
  const ordered = placed.toSorted((a, b) => Number(isLast(a)) - Number(isLast(b)));
  return [...Map.groupBy(ordered, ({ suite, system }) => system ?? suite)].map(([name, members]) => {
    if (members[0]!.system === undefined) return { name, file: resolve(name) };
    const file = join(folder, `${name.replaceAll('/', '-')}.test.mjs`);
    const urls = members.map(({ suite }) => pathToFileURL(resolve(suite)).href);
    writeFileSync(file, urls.map((url) => `import ${JSON.stringify(url)};\n`).join(''));
    return { name, file };
  });
}

/**
 * In memory where there is room: what a suite's server says is on its disk need not outlive the computer, and a disk
 * that many suites wait for at once has kept a server silent for longer than chronosd waits for one.
 */
function placeOfClusters(): string {
  const stats = existsSync(MEMORY) ? statfsSync(MEMORY) : undefined;
  return stats !== undefined && stats.bavail * stats.bsize >= MEMORY_BYTES ? MEMORY : tmpdir();
}

/** What Node is told for each process besides the file. */
export const NODE_WORDS: readonly string[] = [
  // What internals are for: see prepare.mjs.
  '--expose-internals',
  // Room for what a short life leaves behind: sweeping costs more than the memory.
  '--min-semi-space-size=16',
  '--import',
  new URL('./prepare.mjs', import.meta.url).href,
];
