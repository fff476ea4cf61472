/**
 * The files that a program can load: its entries and their imports, resolved as Node does. The package omits all others,
 * such as the CommonJS variant, the source maps and the tests of a dependency.
 *
 * The trace reads source text, so it also follows an import inside a string. It does not see a name that is computed at
 * run time; such files are entries (`PROGRAMS` and `SERVERS` in `main.ts`).
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const IMPORT = /(?:\bfrom\s*|\bimport\s*\(\s*|\bimport\s*)(['"])([^'"\n\s]+)\1/g;
const LATE_IMPORT = /\bimport\s*\(\s*(['"])([^'"\n\s]+)\1/g;
const REQUIRE = /\brequire\d*(?:\.resolve)?\(\s*(['"])([^'"\n\s]+)\1\s*\)/g;
/** A worker's or a child process's program: `new URL('./thread.js', import.meta.url)`. */
const PROGRAM = /new URL\(\s*(['"])(\.[^'"\n]+\.[cm]?js)\1,\s*import\.meta\.url\)/g;

/** The nearest folder above a file that has a `package.json` with a name: the root of its package. */
export function packageRootOf(file: string): string {
  const folder = dirname(file);
  const manifest = join(folder, 'package.json');
  if (existsSync(manifest) && 'name' in JSON.parse(readFileSync(manifest, 'utf8'))) return folder;
  if (folder === dirname(folder)) throw new Error(`${file} belongs to no package`);
  return packageRootOf(folder);
}

/** The `package.json` files that Node reads for a file, to decide whether it is a module. */
function manifestsOf(file: string): string[] {
  const root = packageRootOf(file);
  const folders = [dirname(file)];
  while (folders.at(-1) !== root) folders.push(dirname(folders.at(-1)!));
  return folders.map((folder) => join(folder, 'package.json')).filter((manifest) => existsSync(manifest));
}

function isModule(file: string, source: string): boolean {
  if (/\.[cm]js$/.test(file)) return file.endsWith('.mjs');
  const { type } = JSON.parse(readFileSync(manifestsOf(file)[0]!, 'utf8')) as { type?: string };
  return type === undefined ? /^\s*(?:import|export)\b/m.test(source) : type === 'module';
}

/** Whether an offset is in a line of a comment; JSDoc names types by imports. */
const isComment = (source: string, at: number) =>
  /^\s*(?:\*|\/[*/])/.test(source.slice(source.lastIndexOf('\n', at - 1) + 1, at));

const found = (source: string, pattern: RegExp) =>
  [...source.matchAll(pattern)].filter(({ index }) => !isComment(source, index)).map((match) => match[2]!);

/** `undefined` for a specifier without a file: an optional package that is not installed, or text in a comment. */
function resolved(resolve: () => string): string | undefined {
  try {
    const path = resolve();
    return path.startsWith('file:') ? fileURLToPath(path) : path;
  } catch {
    return undefined;
  }
}

/** The files that one file loads. */
function loadedBy(file: string): string[] {
  const source = readFileSync(file, 'utf8');
  const asModule = isModule(file, source);
  const hasRequire = !asModule || source.includes('createRequire');
  const imports = found(source, asModule ? IMPORT : LATE_IMPORT);
  const address = pathToFileURL(file).href;
  // With a parent, `import.meta.resolve` needs `--experimental-import-meta-resolve`; nothing else knows all of Node's rules.
  const ways = [
    ...imports.map((name) => [name, () => import.meta.resolve(name, address)] as const),
    ...found(source, PROGRAM).map((name) => [name, () => new URL(name, address).href] as const),
    ...(hasRequire ? found(source, REQUIRE) : []).map(
      (name) => [name, () => createRequire(address).resolve(name)] as const,
    ),
  ];
  return ways.flatMap(([name, resolve]) => (isBuiltin(name) ? [] : (resolved(resolve) ?? [])));
}

/**
 * @param entries absolute paths
 * @param isLeftOut whether a file is neither kept nor read any further
 * @returns absolute paths of all files that they can load, themselves and the `package.json` files on the way included
 */
export function traceFiles(entries: readonly string[], isLeftOut: (file: string) => boolean): Set<string> {
  const files = new Set<string>();
  const open = [...entries];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (files.has(file) || isLeftOut(file) || !statSync(file, { throwIfNoEntry: false })?.isFile()) continue;
    files.add(file);
    for (const manifest of manifestsOf(file)) files.add(manifest);
    if (/\.[cm]?js$/.test(basename(file))) open.push(...loadedBy(file));
  }
  return files;
}

/** Whether a file belongs to a dependency. */
export const isInstalled = (file: string): boolean => file.includes(`${sep}node_modules${sep}`);
