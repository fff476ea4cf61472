/**
 * The suites, their half for a change, and the groups that share a process. The runner (run.ts) and the repeater
 * (repeat/main.ts) start the same processes, the same way.
 */
import { chmodSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * In the order of their start: the longest, which would otherwise be alone at the end, suites that wait for many
 * processes, suites that wait for some, then the rest.
 */
const SUITES = [
  'test/fault/rail-attack/*.test.ts',
  'test/system/{console/screens,neo/*}.test.ts',
  'test/contract/{store,provider}/*.test.ts',
  'test/system/{console,capabilities,chat,chronos}/*.test.ts',
  'src/{router,cli,agents/neo}/**/*.test.ts',
  'test/{fault,end-to-end,system}/**/*.test.ts',
  '{src/router,test}/**/*.test.ts',
  '{src,examples,bench}/**/*.test.ts',
];

/**
 * Suites that a release must pass and a change seldom affects. CI runs them after `npm test`. They are long campaigns
 * of faults and attacks, copies and moves of whole installations or the source, and every command in the pages. The
 * others test the package and its artefacts, a second browser or device, and the programs of third parties.
 */
const RELEASE = new RegExp(
  `^test/(?:${[
    'end-to-end/up-frozen',
    'contract/(?:cron-oracle|rrule-oracle|receipt-vectors|second-verifier)',
    'fault/(?:chaos|checker|rail-attack|red-team|simulation)',
    'system/(?:backup|deploy|drift|integrations|package|pages|public-listener|python-client|isolation|service|site)',
    'system/(?:transfer|wake-targets)',
    'system/(?:chronometric/inspector|chronos-mcp/misfortune|listeners/json|executor/kill-matrix)',
    'system/(?:console/(?:fleet|hostile|passkeys|push)|oauth-server/browser)',
    'system/model-functions/python',
    'system/(?:mcp-h(?:ost|ttp)/conformance|postgres/(?:outage|reshard|together))',
  ].join('|')})\\b`,
);

const ROOT = resolve(import.meta.dirname, '..', '..');

/** Linux's folder in memory, and the required free space: thirty servers of 100 MB. */
const MEMORY = '/dev/shm';
const MEMORY_BYTES = 3 * 1024 ** 3;

/** The folders whose suites share one process each, for suites that only compute or start daemons within it. */
const SHARING =
  /^(?:src\/agents\/neo|src\/[^/]+|bench|test\/(?:architecture|support)|test\/(?:contract|fault|system)\/[^/]+)(?=\/)/;
/**
 * A suite with one of these in its text has its own process. Hooks around each test of a file would apply to its
 * neighbours. If a suite waits while it loads, its neighbours end meanwhile, and with them the hooks at the end of a
 * file. A whole system would wait for its processes and threads. Global state of a process is shared.
 * Hooks of the whole file, and servers at ports that the system picks, disturb no other suite.
 */
const NEEDS_OWN_PROCESS = new RegExp(
  [
    /^(?:before|after)Each\(/,
    /^(?:(?:const|let) .* = )?await /,
    /node:(?:child_process|worker_threads)\b/,
    /\bprocess\.(?:env|chdir|on|once|exitCode)\b/,
    /\b(?:mock\.|stackTraceLimit|setFlagsFromString)/,
    /\brecordSpans\(/,
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
 * The files of a suite: itself, and the test modules that it imports, as far as {@link TOOLS}. Modules of the program
 * are omitted.
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
 * The suites for the arguments of a command line: patterns, or all of them; `--product` and `--release` select one
 * half, `--needs-tools` selects suites that start optional tools (tools.ts). An empty selection ends the process.
 */
export function suitesOf(args: readonly string[]): string[] {
  const patterns = args.filter((word) => !word.startsWith('--'));
  const suites = found(patterns.length > 0 ? patterns : SUITES).filter((suite) => {
    if (args.includes('--needs-tools') && !testFilesOf(suite).has(TOOLS)) return false;
    if (args.includes('--product')) return !RELEASE.test(suite);
    return !args.includes('--release') || RELEASE.test(suite);
  });
  if (suites.length > 0) return suites;
  console.error(`no file matches ${patterns.join(' ')}`);
  process.exit(2);
}

const systemOf = (suite: string): string | undefined =>
  NEEDS_OWN_PROCESS.test(readFileSync(suite, 'utf8')) ? undefined : SHARING.exec(suite)?.[0];

/** Short, when it is alone in its process: these fill the cores while the last of the others compute. */
const IS_SHORT = /^(?:src\/(?!router\/)|examples|bench)/;

/** The content of one process: a suite, or the suites of a system that share one. */
export type TestProcess = {
  /** Its suite, or the folder of its suites. */
  readonly name: string;
  readonly file: string;
};

/**
 * The processes that run these suites, in the order of their start. Their shared files are made here and removed at the
 * end: the files that join suites, and the folder of the shared cluster.
 */
export function processesOf(suites: readonly string[]): TestProcess[] {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-suites-'));
  const clusters = mkdtempSync(join(clusterFolder(), 'reveille-clusters-'));
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
 * In memory when it has space: the data of a suite's server need not survive the computer. A disk that many suites wait
 * for has blocked a server for longer than chronosd's timeout.
 */
function clusterFolder(): string {
  const stats = existsSync(MEMORY) ? statfsSync(MEMORY) : undefined;
  return stats !== undefined && stats.bavail * stats.bsize >= MEMORY_BYTES ? MEMORY : tmpdir();
}

/** Additional arguments of Node for each process. */
export const NODE_ARGS: readonly string[] = [
  // The purpose of the internals: see prepare.mjs.
  '--expose-internals',
  // Memory for the garbage of a short process: collecting it costs more than the memory.
  '--min-semi-space-size=16',
  '--import',
  new URL('./prepare.mjs', import.meta.url).href,
];
