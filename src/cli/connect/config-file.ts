/**
 * A configuration file of another program, as it lies there: read whole, replaced in one step, with what it was before
 * beside it.
 */
import { lstatSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { replaceFile } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';

/** More than any of them has; `~/.claude.json` comes to some megabytes. */
const MOST_BYTES = 64 * 1024 * 1024;
const BYTE_ORDER_MARK = '\uFEFF';

export type ConfigFile = {
  /** As the client names it. */
  readonly path: string;
  /** Where it lies, when `path` is a link to it; else the same. */
  readonly target: string;
  /** Its bytes; `undefined` when there is no such file. */
  readonly bytes: Buffer | undefined;
  /** Its characters, without a byte order mark; empty when there is no such file. */
  readonly text: string;
  /** Permission bits for what is written. */
  readonly mode: number;
};

const refused = (path: string, why: string) => new ReveilleError('conflict', `${path} ${why}; nothing was written`);

const codeOf = (thrown: unknown) => (thrown instanceof Error && 'code' in thrown ? thrown.code : undefined);

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return false;
    throw refused(path, `cannot be looked at (${(cause as Error).message})`);
  }
}

/** The nearest folder above a path that is there. */
function folderAbove(path: string): string {
  const folder = dirname(path);
  return isThere(folder) || folder === path ? folder : folderAbove(folder);
}

/**
 * Links are followed: many people keep such files elsewhere and link to them. Within a project, which may come from
 * somebody else, neither the file nor a folder above it may lead out.
 *
 * @param path of what is there
 */
function targetOf(path: string, project: string | undefined): string {
  let target: string;
  try {
    target = realpathSync(path);
  } catch {
    throw refused(path, 'is a link to something that is not there; remove it or make what it points to');
  }
  const isOutside = project !== undefined && relative(realpathSync(project), target).split(sep)[0] === '..';
  if (isOutside) throw refused(path, `is a link out of the project, to ${target}`);
  return target;
}

function decoded(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refused(path, 'is not UTF-8 text');
  }
}

/**
 * @param project the folder that links must not lead out of
 * @throws ReveilleError `conflict` for what is no file of this user's, or is not text
 */
export function readConfigFile(path: string, project?: string): ConfigFile {
  if (!isThere(path)) {
    targetOf(folderAbove(path), project);
    return { path, target: path, bytes: undefined, text: '', mode: 0o600 };
  }
  const target = targetOf(path, project);
  const stat = statSync(target);
  if (!stat.isFile()) throw refused(path, 'is not a regular file');
  if (stat.size > MOST_BYTES) throw refused(path, `has ${stat.size} bytes, which is no configuration`);
  const me = process.getuid?.();
  if (me !== undefined && stat.uid !== me) throw refused(path, 'belongs to another user; run this as that user');
  const bytes = readFileSync(target);
  const text = decoded(path, bytes);
  return {
    path,
    target,
    bytes,
    text: text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text,
    mode: stat.mode & 0o777,
  };
}

/** Where what was there before is kept. */
export const backupOf = (path: string): string => `${path}.before-reveille`;

const hasMark = ({ bytes }: ConfigFile) => bytes?.subarray(0, 3).equals(Buffer.from(BYTE_ORDER_MARK)) === true;

/** @throws ReveilleError `conflict` when somebody may not write to it */
export function checkWritable({ path, target, bytes, mode }: ConfigFile): void {
  if (bytes !== undefined && (mode & 0o200) === 0)
    throw refused(path, `is read-only (mode ${mode.toString(8).padStart(4, '0')}); chmod u+w ${target} if you mean it`);
}

/** Throws when the file is another one than it was read as: its program may have written it meanwhile. */
function checkUnchanged({ path, target, bytes }: ConfigFile): void {
  const now = isThere(target) ? readFileSync(target) : undefined;
  const isSame = bytes === undefined ? now === undefined : now?.equals(bytes) === true;
  if (!isSame) throw refused(path, 'was changed meanwhile by somebody else; run this again');
}

/** Replaces the file by this text, in one step, with the permissions that it had. */
export function writeConfigFile(file: ConfigFile, text: string): void {
  const content = hasMark(file) ? `${BYTE_ORDER_MARK}${text}` : text;
  // What it has in common with other settings of that client may be secret.
  if (file.bytes === undefined) mkdirSync(dirname(file.target), { recursive: true, mode: 0o700 });
  replaceFile(file.target, content, { mode: file.mode, check: () => checkUnchanged(file) });
}

/** Keeps what is there now as what was there before, with its permissions. */
export function writeBackup({ path, bytes, mode }: ConfigFile): void {
  if (bytes !== undefined) replaceFile(backupOf(path), bytes, { mode });
}

/** Puts these bytes, or no file, back in the place of what is there. */
export function restoreConfigFile(file: ConfigFile, before: Buffer | undefined): void {
  if (before !== undefined) {
    replaceFile(file.target, before, { mode: file.mode, check: () => checkUnchanged(file) });
    return;
  }
  checkUnchanged(file);
  rmSync(file.target);
}

/** The bytes from before, if they are kept. */
export function readBackup(path: string): ConfigFile | undefined {
  const backup = readConfigFile(backupOf(path));
  return backup.bytes === undefined ? undefined : backup;
}

export function removeBackup(path: string): void {
  rmSync(backupOf(path), { force: true });
}

/** As people write a path: with `~` for their home. */
export function shortPath(path: string, home: string): string {
  return path.startsWith(join(home, sep)) ? `~${path.slice(home.length)}` : path;
}
