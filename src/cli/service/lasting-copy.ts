/** A permanent copy of the running program with its dependencies. A package of `npx` is in a cache, which a service must not use. */
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { ask } from './ask.ts';

/** Names and versions become folder names, so they must not contain path separators. */
const packageName = z
  .string()
  .regex(/^(?:@[A-Za-z0-9~-][\w.~-]*\/)?[A-Za-z0-9~-][\w.~-]*$/, 'must be the name of a package');
const packageSchema = z.object({
  name: packageName,
  version: z.string().regex(/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/, 'must be a version such as 1.2.3'),
  dependencies: z.record(packageName, z.string()).default({}),
  optionalDependencies: z.record(packageName, z.string()).default({}),
});

const VERSION_MS = 30_000;

export const packageAt = (folder: string): z.output<typeof packageSchema> =>
  packageSchema.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')));

/** The program in a folder that npm, or {@link copyProgram}, has installed it into. */
export const programIn = (folder: string): string =>
  join(folder, 'node_modules', packageAt(PACKAGE_ROOT).name, 'bin', 'reveille.mjs');

/** Whether this program is the repository itself, which is not copied. */
export const isCheckout = (root = PACKAGE_ROOT): boolean => !root.split(sep).includes('node_modules');

/**
 * The Node program at a permanent location.
 *
 * @throws ReveilleError `conflict` when it is in a temporary folder or a cache
 */
export function lastingNode(path = realpathSync(process.execPath)): string {
  const isTemporary = path.startsWith(realpathSync(tmpdir()) + sep) || /[/\\]_npx[/\\]/.test(path);
  if (!isTemporary) return path;
  throw new ReveilleError(
    'conflict',
    `Node runs from ${path}, which is temporary; install Node 24 or newer permanently, and run the command again with it`,
  );
}

/** The location of a dependency of a package: in the `node_modules` folders upwards. */
function resolveFrom(folder: string, name: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const found = join(at, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return realpathSync(found);
    if (dirname(at) === at) return undefined;
  }
}

/**
 * Copies a package with its dependencies. Nested dependencies stay nested, siblings go to the top, and a second version
 * of a name goes below the package that needs it. Missing dependencies are skipped; the copy is tested afterwards.
 */
function copyTree(root: string, target: string): void {
  const placed = new Map<string, string>();
  const visited = new Set<string>();
  const visit = (source: string, place: string) => {
    if (visited.has(source)) return;
    visited.add(source);
    const { dependencies, optionalDependencies } = packageAt(source);
    for (const wanted of new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)])) {
      const found = resolveFrom(source, wanted);
      if (found === undefined) continue;
      if (found.startsWith(source + sep)) visit(found, join(place, relative(source, found)));
      else put(found, wanted, place);
    }
  };
  const put = (source: string, name: string, below: string) => {
    // Already copied with its parent.
    if ([...placed.values()].some((copied) => source.startsWith(copied + sep))) return;
    const top = join(target, 'node_modules', name);
    const place = placed.has(top) && placed.get(top) !== source ? join(below, 'node_modules', name) : top;
    if (placed.get(place) === source) return;
    placed.set(place, source);
    const filter = (path: string) => !relative(source, path).split(sep).includes('.cache');
    cpSync(source, place, { recursive: true, filter, mode: 0 });
    visit(source, place);
  };
  put(root, packageAt(root).name, target);
}

/** Checks that the program in a folder starts. @throws ReveilleError `conflict` when it does not */
export async function checkProgram(node: string, folder: string, version: string): Promise<void> {
  const program = programIn(folder);
  const { status, stdout, stderr } = await ask(node, [program, '--version'], { limitMs: VERSION_MS });
  if (status === 0 && stdout.trim() === version) return;
  const said = (stderr || stdout).trim().split('\n').at(-1) ?? '';
  throw new ReveilleError('conflict', `the program in ${folder} does not start as version ${version}: ${said}`);
}

/**
 * Copies this program to a permanent location, unless it is there already.
 *
 * @returns the folder of its version
 * @throws ReveilleError `unavailable` when the folder cannot be written
 */
export async function copyProgram(versions: string, node: string, root = PACKAGE_ROOT): Promise<string> {
  const { version } = packageAt(root);
  const folder = join(versions, version);
  if (existsSync(folder)) {
    await checkProgram(node, folder, version);
    return folder;
  }
  const draft = join(versions, `.new-${process.pid}`);
  try {
    mkdirSync(draft, { recursive: true, mode: 0o755 });
    copyTree(root, draft);
    await checkProgram(node, draft, version);
    renameSync(draft, folder);
    return folder;
  } catch (thrown) {
    throw notWritten(versions, thrown);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Adds the folder and a remedy to a write error. */
export function notWritten(folder: string, thrown: unknown): unknown {
  if (thrown instanceof ReveilleError || !(thrown instanceof Error && 'code' in thrown)) return thrown;
  const remedy = 'make it writable for this user, or name another data folder with XDG_DATA_HOME';
  return new ReveilleError('unavailable', `${folder} cannot be written to (${thrown.message}); ${remedy}`, {
    retryable: false,
    cause: thrown,
  });
}
