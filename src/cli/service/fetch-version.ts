/** Installs a version with npm beside the others, and explains failures in one sentence. */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { ask } from './ask.ts';
import { currentVersion, draftFolder, forgetDrafts } from './folders.ts';
import type { Service } from './installation.ts';
import { checkProgram, notWritten, packageAt, programIn } from './lasting-copy.ts';

const NPM_MS = 600_000;
const IS_WINDOWS = process.platform === 'win32';

const FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=dev'];
/** The user waits: npm's own delays between attempts are 10 s and a minute. */
const PATIENCE = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=10000'];

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'ERR_SOCKET_TIMEOUT',
]);

/** The registry's address: `http://127.0.0.1:9/reveille` in npm's output. */
const hostIn = (said: string) => {
  const address = /https?:\/\/[^\s/,]+/.exec(said)?.[0];
  return address === undefined ? 'the registry' : `the registry ${address}`;
};

/** The output of npm as one sentence with a remedy. */
export function npmSentence(what: string, printed: string): string {
  const lines = printed.split('\n').flatMap((line) => /^npm (?:error|ERR!) (.*)$/.exec(line)?.[1] ?? []);
  const code = /^code (\S+)/.exec(lines.find((line) => line.startsWith('code ')) ?? '')?.[1] ?? '';
  const said =
    lines.find((line) => !/^(?:code|syscall|errno|path|dest) /.test(line) && line.trim() !== '') ?? printed.trim();
  if (UNREACHABLE.has(code))
    return `${hostIn(said)} cannot be reached (${code}), so ${what} was not fetched; check the network and "npm config get registry", or name a file of npm pack`;
  if (code === 'EINTEGRITY')
    return `${what} from the registry failed its integrity check and was discarded; try again, and do not trust that registry if it repeats`;
  if (code === 'E404' || code === 'ETARGET')
    return `the registry has no ${what}; list its versions with: npm view ${what.replace(/@[^@]*$/, '')} versions`;
  return `npm could not install ${what}: ${said}`;
}

/**
 * Installs a version beside the others.
 *
 * @param wanted a version, a tag, or a file of `npm pack`
 * @returns its folder; the folder of the running version when it is the same
 * @throws ReveilleError and leaves nothing behind when it cannot be installed or does not start
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
    throw new ReveilleError('not_found', `${what} cannot be read: the file does not exist`);
  try {
    mkdirSync(draft, { recursive: true, mode: 0o755 });
    const words = ['install', '--prefix', draft, ...FLAGS, ...PATIENCE, what];
    const npm = IS_WINDOWS ? 'npm.cmd' : 'npm';
    const { status, stderr, missing } = await ask(npm, words, { env: environment, limitMs: NPM_MS, cwd: draft });
    if (missing) throw new ReveilleError('unavailable', 'npm is not installed; install npm beside Node');
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
