/** Who may import whom: the table of ARCHITECTURE.md, and the reader that holds sources against it. */
import { existsSync, globSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** Leaf kits that every folder may use. */
const LEAVES = ['clock', 'log'];
const KITS = ['identity', 'http-kit', 'sqlite-kit', 'receipt-kit', 'process-kit', 'yaml-kit', 'mcp-kit', 'text-kit'];

/**
 * For each folder below `src`, what it may import besides itself and the leaves. The most specific entry counts, for the
 * importer as for the imported.
 */
export const IMPORT_TABLE: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  clock: [],
  log: [],
  identity: ['wire'],
  'http-kit': ['wire'],
  'sqlite-kit': ['wire'],
  'receipt-kit': ['wire', 'identity'],
  'process-kit': [],
  'yaml-kit': ['wire', 'text-kit'],
  'mcp-kit': [],
  'text-kit': [],
  'chronos/alarm': ['wire'],
  'chronos/store': ['wire', 'chronos/alarm'],
  'chronos/store/sqlite': ['wire', 'chronos/alarm', 'chronos/store', 'sqlite-kit'],
  'chronos/store/postgres': ['wire', 'chronos/alarm', 'chronos/store', 'sqlite-kit'],
  'chronos/store/transfer': ['wire', 'chronos/alarm', 'chronos/store', 'sqlite-kit'],
  'chronos/dispatch': ['wire', 'chronos/alarm', 'chronos/store/store.ts', 'identity'],
  'chronos/auth': ['wire', 'chronos/alarm', 'chronos/store/store.ts', 'identity'],
  'chronos/receipts': ['wire', 'identity'],
  'chronos/http': [
    'wire',
    'chronos/alarm',
    'chronos/auth',
    'chronos/dispatch',
    'chronos/receipts',
    'chronos/store/store.ts',
    'chronos/store/limits.ts',
    'http-kit',
  ],
  'chronos/client.ts': ['wire', 'chronos/client-answers.ts', 'chronos/client-exchange.ts'],
  'chronos/client-answers.ts': ['wire', 'chronos/client-exchange.ts'],
  'chronos/client-exchange.ts': ['wire'],
  'chronos/config.ts': ['wire', 'chronos/auth', 'http-kit'],
  'chronos/metrics.ts': ['wire', 'chronos/alarm', 'chronos/dispatch', 'chronos/store', 'http-kit'],
  'chronos/retention.ts': ['wire', 'chronos/store'],
  'chronos/daemon.ts': ['wire', 'chronos', ...KITS],
  'chronos-mcp': ['wire', ...KITS, 'chronos/client.ts'],
  router: ['wire', ...KITS],
  'mcp-host': ['wire', ...KITS],
  'model-kit': ['wire'],
  neo: ['wire', ...KITS, 'mcp-host', 'model-kit'],
  // It wakes agents as any agent would: by an alarm.
  executor: ['wire', ...KITS, 'mcp-host', 'model-kit', 'chronos/client.ts'],
  ledger: ['wire', 'sqlite-kit', 'mcp-kit'],
  chronometric: ['wire', ...KITS],
  cli: [
    'wire',
    ...KITS,
    'mcp-host',
    'model-kit',
    'chronos',
    'chronos-mcp',
    'router',
    'neo',
    'executor',
    'ledger',
    'chronometric',
  ],
};

/** Packages that may be imported below a folder; folders that are not named, and tests, may import any. */
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

const covers = (place: string, path: string) => path === place || path.startsWith(`${place}/`);

/** The most specific entry of the table that a path below `src` falls under. */
function entryOf(file: string): string | undefined {
  // A test stands where the file stands that it tests.
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
  if (entry === undefined) return 'stands in a folder that the table does not know';
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
  if (imported.startsWith('..')) {
    return covers('wire', path) || imported.endsWith('.json') ? undefined : 'leads out of src';
  }
  if (entryOf(imported) === entry) return undefined;
  const allowed = [...LEAVES, ...IMPORT_TABLE[entry]!];
  return allowed.some((place) => covers(place, imported)) ? undefined : `${entry} may not import ${imported}`;
}

/**
 * Reads every TypeScript file below a folder laid out as `src`.
 *
 * @returns what stands against the table
 */
export function findViolations(root: string): Violation[] {
  const violations: Violation[] = [];
  const realRoot = realpathSync(root);
  for (const found of globSync('**/*.ts', { cwd: realRoot }).sort()) {
    const file = realpathSync(join(realRoot, found));
    const source = withoutComments(readFileSync(file, 'utf8'));
    for (const match of source.matchAll(SPECIFIER)) {
      const specifier = match[2]!;
      const reason = checkSpecifier(realRoot, file, specifier);
      const line = source.slice(0, match.index).split('\n').length;
      if (reason) violations.push({ file: found, line, specifier, reason });
    }
  }
  return violations;
}
