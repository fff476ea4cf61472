/** Having npm install a version beside the others, and saying in a sentence why it could not. */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { ask } from './ask.ts';
import type { Service } from './installation.ts';
import { checkProgram, notWritten, packageAt, programIn } from './lasting-copy.ts';
import { currentVersion, draftFolder, forgetDrafts } from './place.ts';

const NPM_MS = 600_000;
const IS_WINDOWS = process.platform === 'win32';

const FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=dev'];
/** Somebody waits: npm's own pauses between attempts are 10 s and a minute. */
const PATIENCE = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=10000'];

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'ERR_SOCKET_TIMEOUT',
]);

/** Who was asked: `http://127.0.0.1:9/reveille` of npm's words. */
const hostIn = (said: string) => {
  const address = /https?:\/\/[^\s/,]+/.exec(said)?.[0];
  return address === undefined ? 'the registry' : `the registry ${address}`;
};

/** What npm printed, as one sentence with what to do. */
export function npmSentence(what: string, printed: string): string {
  const lines = printed.split('\n').flatMap((line) => /^npm (?:error|ERR!) (.*)$/.exec(line)?.[1] ?? []);
  const code = /^code (\S+)/.exec(lines.find((line) => line.startsWith('code ')) ?? '')?.[1] ?? '';
  const said =
    lines.find((line) => !/^(?:code|syscall|errno|path|dest) /.test(line) && line.trim() !== '') ?? printed.trim();
  if (UNREACHABLE.has(code))
    return `${hostIn(said)} cannot be reached (${code}), so ${what} was not fetched; look at the network and at "npm config get registry", or name a file that npm pack made`;
  if (code === 'EINTEGRITY')
    return `what the registry sent as ${what} is not what it says it is (its integrity differs), and was thrown away; try again, and if it stays so, do not trust that registry`;
  if (code === 'E404' || code === 'ETARGET')
    return `the registry has no ${what}; see what it has with: npm view ${what.replace(/@[^@]*$/, '')} versions`;
  return `npm could not install ${what}: ${said}`;
}

/**
 * Installs a version beside the others.
 *
 * @param wanted a version, a tag, or a file that `npm pack` made
 * @returns its folder; that of the version which runs, where it is that one
 * @throws ReveilleError and leaves nothing behind when it cannot be had, or does not start
 */
export async function fetchVersion(
  { environment }: CliContext,
  { place }: Service,
  wanted: string,
  node: string,
): Promise<string> {
  const { name } = packageAt(PACKAGE_ROOT);
  forgetDrafts(place);
  const draft = draftFolder(place);
  const isFile = /\.tgz$/.test(wanted);
  const what = isFile ? resolve(wanted) : `${name}@${wanted}`;
  if (isFile && !existsSync(what))
    throw new ReveilleError('not_found', `${what} cannot be read: there is no such file`);
  try {
    mkdirSync(draft, { recursive: true, mode: 0o755 });
    const words = ['install', '--prefix', draft, ...FLAGS, ...PATIENCE, what];
    const npm = IS_WINDOWS ? 'npm.cmd' : 'npm';
    const { status, stderr, missing } = await ask(npm, words, { env: environment, limitMs: NPM_MS, cwd: draft });
    if (missing)
      throw new ReveilleError('unavailable', 'there is no npm here to install it with; install npm beside Node');
    if (status !== 0) throw new ReveilleError('unavailable', npmSentence(what, stderr));
    const root = join(draft, 'node_modules', name);
    if (!existsSync(join(root, 'package.json')) || !existsSync(programIn(draft)))
      throw new ReveilleError('invalid_request', `${what} is not a package of Reveille; name a version or its file`);
    const { version } = packageAt(root);
    const folder = join(place.versions, version);
    if (folder === currentVersion(place)) return folder;
    await checkProgram(node, draft, version);
    rmSync(folder, { recursive: true, force: true });
    renameSync(draft, folder);
    return folder;
  } catch (thrown) {
    throw notWritten(place.versions, thrown);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
