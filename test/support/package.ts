/** The package as `npm run package` makes it, made once for all test files of a run, and installed as a user would. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './eventually.ts';
import { listening, type Owner, temporaryFolder } from './temporary.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const DIST = join(ROOT, 'dist');
/** Longest that another file may take to make it. */
const MADE_WITHIN_MS = 180_000;

/** What goes into the package, or says how. */
const SOURCES = [
  '{bin,src,examples,packaging}/**/*.{ts,mjs,json,sql,css,js}',
  '{agents,skills,schemas,docs}/**/*.{json,mtx,yaml,md}',
  '{integrations/**/,integrations/**/.*/,.claude-plugin/}{*,.mcp}.{json,md,toml}',
  '{package,package-lock}.json',
  '{README,CHANGELOG}.md',
];

const changedAt = (file: string) => statSync(file).mtimeMs;

/** The tarball that is there, if nothing was changed since. */
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

/** @returns the path of a package of the sources as they are */
export async function packedTarball(): Promise<string> {
  const lock = join(ROOT, 'node_modules', '.cache', 'packing');
  mkdirSync(join(ROOT, 'node_modules', '.cache'), { recursive: true });
  await eventually('nobody else makes the package', () => taken(lock), MADE_WITHIN_MS);
  try {
    if (current() === undefined) await run('npm', ['run', '--silent', 'package'], { cwd: ROOT });
    return current()!;
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/**
 * A registry that has this package alone, as far as npm asks one (npm's "package metadata" and tarballs).
 *
 * @returns its address
 */
export async function startRegistry(owner: Owner, tarball: string): Promise<string> {
  const bytes = readFileSync(tarball);
  const manifest = JSON.parse(readFileSync(join(DIST, 'package', 'package.json'), 'utf8'));
  const { name, version } = manifest;
  const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', url).pathname;
    if (path === '/package.tgz') return void response.end(bytes);
    if (path !== `/${name}`) return void response.writeHead(404).end('{}');
    const dist = { tarball: `${url}/package.tgz`, integrity };
    const versions = { [version]: { ...manifest, dist } };
    response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
  });
  const url = await listening(owner, server);
  return url;
}

export type InstalledPackage = {
  /** An empty folder, but for what the installation put into it. */
  readonly folder: string;
  /** What the commands there run with: a home that was empty, and nothing else of this process. */
  readonly env: Record<string, string>;
  /** The entry of the installed package. */
  readonly program: string;
};

/** Installs the package from a registry into an empty folder, with an empty home and no lifecycle scripts. */
export async function installPackage(owner: Owner): Promise<InstalledPackage> {
  const registry = await startRegistry(owner, await packedTarball());
  const folder = temporaryFolder(owner);
  const home = temporaryFolder(owner);
  const env = { PATH: process.env.PATH ?? '', HOME: home, npm_config_registry: registry };
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
  await run('npm', ['install', ...flags, 'reveille'], { cwd: folder, env });
  return { folder, env, program: join(folder, 'node_modules', 'reveille', 'bin', 'reveille.mjs') };
}
