/** The package as `npm run package` makes it, made once for all test files of a run, and installed as a user would. */
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './eventually.ts';
import { startRegistry } from './stand-ins/registry.ts';
import { type Owner, temporaryFolder } from './temporary.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const DIST = join(ROOT, 'dist');
const CACHE = join(ROOT, 'node_modules', '.cache');
/** Maximum time that another file may take to make it. */
const MADE_WITHIN_MS = 180_000;

/** Contents of the package, and files that define them. */
const SOURCES = [
  '{bin,src,examples,packaging,site}/**/*.{ts,mjs,json,sql,css,js}',
  '{agents,skills,schemas,docs}/**/*.{json,mtx,yaml,md}',
  '{integrations/**/,integrations/**/.*/,.claude-plugin/}{*,.mcp}.{json,md,toml}',
  '{package,package-lock}.json',
  '{README,CHANGELOG,ARCHITECTURE}.md',
];

const changedAt = (file: string) => statSync(file).mtimeMs;

/** The existing tarball, if nothing has changed since. */
function current(): string | undefined {
  const [tarball] = globSync('*.tgz', { cwd: DIST }).map((name) => join(DIST, name));
  if (tarball === undefined) return undefined;
  const exclude = ['**/*.test.ts', '**/testing/**'];
  const sources = globSync(SOURCES, { cwd: ROOT, exclude }).map((name) => changedAt(join(ROOT, name)));
  return Math.max(...sources) < changedAt(tarball) ? tarball : undefined;
}

function taken(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    return false;
  }
}

/** Lets one process at a time make the files that all test files share. */
async function alone<T>(make: () => Promise<T>): Promise<T> {
  const lock = join(CACHE, 'packing');
  mkdirSync(CACHE, { recursive: true });
  await eventually('no other process makes the package', () => taken(lock), MADE_WITHIN_MS);
  try {
    return await make();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

async function packed(): Promise<string> {
  if (current() === undefined) await run('npm', ['run', '--silent', 'package'], { cwd: ROOT });
  return current()!;
}

/** @returns the path of a package of the current sources */
export const packedTarball = (): Promise<string> => alone(packed);

export type InstalledPackage = {
  /** An empty folder, except for the installation. */
  readonly folder: string;
  /** The environment of its commands: a home that was empty, and nothing else of this process. */
  readonly env: Record<string, string>;
  /** The entry of the installed package. */
  readonly program: string;
};

async function emptyFolder(owner: Owner): Promise<InstalledPackage> {
  const folder = temporaryFolder(owner);
  const registry = await startRegistry(owner, DIST);
  const env = { PATH: process.env.PATH ?? '', HOME: temporaryFolder(owner), npm_config_registry: registry };
  return { folder, env, program: join(folder, 'node_modules', 'reveille', 'bin', 'reveille.mjs') };
}

/** Installs the package from a registry into an empty folder, with an empty home and no lifecycle scripts. */
export async function installPackage(owner: Owner): Promise<InstalledPackage> {
  await packedTarball();
  const place = await emptyFolder(owner);
  await install(place);
  return place;
}

async function install({ folder, env }: InstalledPackage): Promise<void> {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
  await run('npm', ['install', ...flags, 'reveille'], { cwd: folder, env });
}

/** As {@link installPackage}, for tests of other subjects: copies an earlier installation, if there is one. */
export async function installedPackage(owner: Owner): Promise<InstalledPackage> {
  const place = await emptyFolder(owner);
  const shared = join(CACHE, 'installed');
  const stamp = join(shared, 'of');
  await alone(async () => {
    const made = String(changedAt(await packed()));
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === made) {
      await run('cp', ['-R', join(shared, 'node_modules'), place.folder]);
      return;
    }
    // In another folder first: below the repository npm would change the repository.
    await install(place);
    rmSync(shared, { recursive: true, force: true });
    mkdirSync(shared, { recursive: true });
    await run('cp', ['-R', join(place.folder, 'node_modules'), shared]);
    writeFileSync(stamp, made);
  });
  return place;
}
