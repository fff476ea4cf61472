/** The import rules: the layers of ARCHITECTURE.md, and the reader that checks sources against them. */
import { existsSync, globSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** The systems are above `wire` and `kit`. A system may import at most the typed client of another system. */
const SYSTEMS = [
  'chronos',
  'chronos-mcp',
  'router',
  'mcp-host',
  'mcp-http',
  'a2a',
  'oauth-server',
  'langgraph',
  'agents/neo',
  'executor',
  'executor-mcp',
  'chronometric',
  'capabilities',
  'notify',
];

/** Kits that every folder above `wire` may use; other imports between kits are listed. */
const LEAVES = ['kit/clock', 'kit/log', 'kit/trace'];
const KIT_ARROWS: Readonly<Record<string, readonly string[]>> = {
  'kit/clock': [],
  'kit/log': [],
  'kit/trace': [],
  'kit/text': [],
  'kit/files': [],
  'kit/json': [],
  'kit/phrase': ['kit/recurrence'],
  'kit/recurrence': [],
  'kit/mcp': [],
  'kit/process': [],
  'kit/queue': [],
  'kit/identity': ['kit/json', 'kit/sqlite'],
  'kit/http': [],
  'kit/sqlite': [],
  'kit/model': [],
  'kit/yaml': ['kit/text'],
  'kit/outbox': ['kit/identity', 'kit/http', 'kit/process'],
};

const DOMAIN = ['wire', 'chronos/alarm'];
const STORE_PORT = 'chronos/store/store.ts';
/** Pure. */
const HIDDEN_TEXT = 'kit/text/hidden-characters.ts';

/** The layers of chronos: the domain imports no other layer, and only the daemon imports the implementations. */
const INSIDE_CHRONOS: Readonly<Record<string, readonly string[]>> = {
  'chronos/alarm': ['wire', 'kit/phrase', 'kit/recurrence', HIDDEN_TEXT],
  'chronos/store': DOMAIN,
  'chronos/store/sqlite': [...DOMAIN, 'chronos/store', 'kit/sqlite'],
  'chronos/store/postgres': [...DOMAIN, 'chronos/store', 'kit/sqlite'],
  'chronos/store/sharding': [...DOMAIN, 'chronos/store'],
  'chronos/store/transfer': [...DOMAIN, 'chronos/store', 'kit/sqlite'],
  'chronos/dispatch': [...DOMAIN, STORE_PORT, 'kit/identity', 'kit/http'],
  'chronos/events': [...DOMAIN, STORE_PORT, 'chronos/store/stored-change.ts', 'kit/http'],
  'chronos/auth': [...DOMAIN, STORE_PORT, 'kit/identity', HIDDEN_TEXT],
  'chronos/turn-reports': ['wire', 'kit/identity', 'router/client.ts'],
  'chronos/http': [
    ...[...DOMAIN, STORE_PORT, 'chronos/store/limits.ts', 'chronos/store/stored-change.ts'],
    ...['kit/http', 'kit/queue'],
    ...['chronos/auth', 'chronos/dispatch', 'chronos/events', 'chronos/turn-reports', 'chronos/http/routes.ts'],
  ],
  'chronos/http/routes.ts': ['wire'],
  'chronos/client.ts': ['wire', 'kit/http', 'kit/text', 'chronos/http/routes.ts'],
  'chronos/calendars.ts': ['wire', 'chronos/alarm', 'kit/identity', 'kit/recurrence'],
  'chronos/config.ts': ['wire', 'chronos/auth', 'kit/http'],
  'chronos/metrics.ts': [...DOMAIN, 'chronos/dispatch', 'chronos/store', 'kit/http'],
  'chronos/retention.ts': ['wire', 'chronos/store'],
  'chronos/ping.ts': [STORE_PORT, 'kit/http'],
  'chronos/daemon.ts': ['wire', 'kit', 'chronos', 'router/client.ts'],
};

const clientOf = (system: string) => `${system}/client.ts`;

/**
 * For each folder below `src`, its allowed imports besides itself and the leaves. The most specific entry applies, for
 * the importer and for the imported file.
 */
const IMPORT_TABLE: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  ...Object.fromEntries(Object.entries(KIT_ARROWS).map(([kit, others]) => [kit, ['wire', ...others]])),
  ...Object.fromEntries(SYSTEMS.map((system) => [system, ['wire', 'kit', ...SYSTEMS.map(clientOf)]])),
  ...INSIDE_CHRONOS,
  // The turn engine is between the kits and the systems that run turns.
  turns: ['wire', 'kit'],
  'agents/neo': ['wire', 'kit', 'turns', ...SYSTEMS.map(clientOf)],
  // Programs of agents run in the sandbox and the process groups of machines. The router gets their host as a parameter.
  agents: [
    ...['wire', 'kit', 'turns', clientOf('agents/neo')],
    ...['router/agent-host.ts', 'router/providers', 'router/machines/machine.ts'],
  ],
  router: ['wire', 'kit', 'turns', ...SYSTEMS.map(clientOf)],
  // The page calls the systems through their clients, and the other parts through its parameters.
  console: ['wire', 'kit', ...SYSTEMS.map(clientOf)],
  cli: ['wire', 'kit', 'turns', 'agents', 'console', ...SYSTEMS],
  // The package's exports for programs: clients, the verifier and tools for this machine as the commands find it.
  exports: [
    ...['wire', 'kit', ...SYSTEMS.map(clientOf), 'chronos-mcp', 'executor/receipt'],
    ...['cli/access', 'cli/home', 'cli/context.ts'],
  ],
};

/** Exceptions from the layers, each with its reason. */
const EXCEPTIONS: readonly { readonly from: string; readonly to: string; readonly why: string }[] = [
  { from: 'router/testing', to: 'agents/host.ts', why: 'the router of a test hosts agents like a real one' },
  { from: 'agents/guarded-client.test.ts', to: 'router/testing', why: 'this test starts such a router' },
  {
    from: 'agents/neo',
    to: 'mcp-host',
    why: 'a library: it runs the servers of an agent inside the process of the agent',
  },
  { from: 'router/looks', to: 'mcp-host', why: 'the same library, to ask servers of a manifest for events' },
  { from: 'mcp-http', to: 'chronos-mcp', why: 'a library: the same three tools, over HTTP' },
  { from: 'mcp-http', to: 'chronometric', why: 'a library: the same five tools, over HTTP' },
  { from: 'executor', to: 'mcp-host', why: 'the same library, for the tools that the rail calls' },
  {
    from: 'mcp-host/drift.ts',
    to: 'chronos-mcp/selftest.ts',
    why: 'a comparison of shipped files, which the daemons and the proxy make',
  },
  {
    from: 'router/public/routes.ts',
    to: 'agents/neo/http/routes.ts',
    why: 'the table of forwarded routes, so that it is written once',
  },
  { from: 'cli/commands/daemons.ts', to: '../examples/ledger', why: '"reveille ledger" runs the shipped example' },
];

/** Packages that may be imported below a folder; folders without an entry, and tests, may import any. */
const PACKAGE_TABLE: Readonly<Record<string, readonly string[]>> = { wire: ['zod'] };

export type Violation = { file: string; line: number; specifier: string; reason: string };

const SPECIFIER = /(?:\bfrom\s*|\bimport\s*\(\s*|\bimport\s+)(['"])([^'"\n]+)\1/g;

/** Comments become blanks, so that line numbers stay. */
function withoutComments(source: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, ' ');
  // Strings are matched first, so that `//` inside an address is not taken for a comment.
  return source.replace(/('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, (all, text) =>
    text === undefined ? blank(all) : all,
  );
}

/** The specifiers of a source's imports and exports, types included, with their lines. */
export function specifiersIn(text: string): { specifier: string; line: number }[] {
  const source = withoutComments(text);
  let line = 1;
  let read = 0;
  return [...source.matchAll(SPECIFIER)].map((match) => {
    for (; read < match.index; read++) if (source[read] === '\n') line++;
    return { specifier: match[2]!, line };
  });
}

/** Helpers that tests share, in any folder. */
const SUPPORT = '../test/support';
export const isOfTests = (path: string) => path.endsWith('.test.ts') || path.includes('/testing/');

const covers = (place: string, path: string) => path === place || path.startsWith(`${place}/`);

/** The most specific entry of the table for a path below `src`. */
function entryOf(file: string): string | undefined {
  // A test is beside the file that it tests.
  const path = file.replace(/\.test\.ts$/, '.ts');
  return Object.keys(IMPORT_TABLE)
    .filter((entry) => covers(entry, path))
    .sort((one, other) => other.length - one.length)[0];
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function checkSpecifier(root: string, file: string, specifier: string): string | undefined {
  const path = relative(root, file).split(sep).join('/');
  const entry = entryOf(path);
  if (entry === undefined) return 'is in a folder without an entry in the table';
  if (specifier.startsWith('node:')) return undefined;
  if (!specifier.startsWith('.')) {
    if (path.endsWith('.test.ts')) return undefined;
    const allowed = Object.entries(PACKAGE_TABLE).find(([folder]) => covers(folder, path))?.[1];
    return allowed && !allowed.includes(packageOf(specifier))
      ? `${entry} may import no package but ${allowed.join(', ')}`
      : undefined;
  }
  const target = resolve(dirname(file), specifier);
  if (!existsSync(target)) return 'leads to no file';
  // Real paths: a link into another folder is an import of that folder.
  const imported = relative(root, realpathSync(target)).split(sep).join('/');
  if (EXCEPTIONS.some(({ from, to }) => covers(from, path) && covers(to, imported))) return undefined;
  if (imported.startsWith('..')) {
    if (isOfTests(path) && covers(SUPPORT, imported)) return undefined;
    return covers('wire', path) || imported.endsWith('.json') ? undefined : 'leads out of src';
  }
  if (entryOf(imported) === entry) return undefined;
  const allowed = [...(entry === 'wire' ? [] : LEAVES), ...IMPORT_TABLE[entry]!];
  return allowed.some((place) => covers(place, imported)) ? undefined : `${entry} may not import ${imported}`;
}

/**
 * The relative imports of an example outside of itself, `wire` and the kits: an example uses only what any package
 * could.
 */
export function foreignImports(folder: string, src: string): string[] {
  return globSync('**/*.ts', { cwd: folder }).flatMap((name) => {
    const file = join(folder, name);
    const places = [folder, join(src, 'wire'), join(src, 'kit'), ...(isOfTests(name) ? [join(src, SUPPORT)] : [])];
    return specifiersIn(readFileSync(file, 'utf8'))
      .map(({ specifier }) => specifier)
      .filter((specifier) => specifier.startsWith('.'))
      .filter((specifier) => !places.some((place) => covers(place, resolve(dirname(file), specifier))))
      .map((specifier) => `${name}: ${specifier}`);
  });
}

/**
 * Reads every TypeScript file below a folder with the layout of `src`.
 *
 * @returns the violations of the table
 */
export function findViolations(root: string): Violation[] {
  const violations: Violation[] = [];
  const realRoot = realpathSync(root);
  for (const found of globSync('**/*.ts', { cwd: realRoot }).sort()) {
    const file = realpathSync(join(realRoot, found));
    for (const { specifier, line } of specifiersIn(readFileSync(file, 'utf8'))) {
      const reason = checkSpecifier(realRoot, file, specifier);
      if (reason) violations.push({ file: found, line, specifier, reason });
    }
  }
  return violations;
}
