/** A configuration file of another program: read whole, replaced in one step, with a backup beside it. */
import { lstatSync, mkdirSync, readFileSync, realpathSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { replaceFile } from '../../kit/identity/private-file.ts';
import { ReveilleError, systemCodeOf } from '../../wire/errors.ts';

/** Limit of their size; `~/.claude.json` has some megabytes. */
const MOST_BYTES = 64 * 1024 * 1024;
const BYTE_ORDER_MARK = '\uFEFF';

export type ConfigFile = {
  /** The path that the client uses. */
  readonly path: string;
  /** The real path when `path` is a link; else the same. */
  readonly target: string;
  /** Its bytes; `undefined` without a file. */
  readonly bytes: Buffer | undefined;
  /** Its text, without a byte order mark; empty without a file. */
  readonly text: string;
  /** Permission bits for the new file. */
  readonly mode: number;
};

const refused = (path: string, why: string) => new ReveilleError('conflict', `${path} ${why}; nothing was written`);

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return false;
    throw refused(path, `cannot be read (${(cause as Error).message})`);
  }
}

/** The nearest existing folder above a path. */
function folderAbove(path: string): string {
  const folder = dirname(path);
  return isThere(folder) || folder === path ? folder : folderAbove(folder);
}

/**
 * Links are followed: many users link such files. Within a project, which may come from another person, neither the file
 * nor a folder above it may point outside.
 *
 * @param path of an existing file
 */
function targetOf(path: string, project: string | undefined): string {
  let target: string;
  try {
    target = realpathSync(path);
  } catch {
    throw refused(path, 'is a link to a missing file; remove it or create its target');
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
 * @param project the folder that links must not leave
 * @throws ReveilleError `conflict` for a file of another user or another type, or without text
 */
export function readConfigFile(path: string, project?: string): ConfigFile {
  if (!isThere(path)) {
    targetOf(folderAbove(path), project);
    return { path, target: path, bytes: undefined, text: '', mode: 0o600 };
  }
  const target = targetOf(path, project);
  const stat = statSync(target);
  if (!stat.isFile()) throw refused(path, 'is not a regular file');
  if (stat.size > MOST_BYTES) throw refused(path, `has ${stat.size} bytes, more than a configuration`);
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

export const backupOf = (path: string): string => `${path}.before-reveille`;

const hasMark = ({ bytes }: ConfigFile) => bytes?.subarray(0, 3).equals(Buffer.from(BYTE_ORDER_MARK)) === true;

/** @throws ReveilleError `conflict` when the file is read-only */
export function checkWritable({ path, target, bytes, mode }: ConfigFile): void {
  if (bytes !== undefined && (mode & 0o200) === 0)
    throw refused(
      path,
      `is read-only (mode ${mode.toString(8).padStart(4, '0')}); to change it run: chmod u+w ${target}`,
    );
}

/** Throws when the file has changed since it was read, for example by its program. */
function checkUnchanged({ path, target, bytes }: ConfigFile): void {
  const now = isThere(target) ? readFileSync(target) : undefined;
  const isSame = bytes === undefined ? now === undefined : now?.equals(bytes) === true;
  if (!isSame) throw refused(path, 'was changed by another program; run the command again');
}

/** Replaces the file in one step and keeps its permissions. */
export function writeConfigFile(file: ConfigFile, text: string): void {
  const content = hasMark(file) ? `${BYTE_ORDER_MARK}${text}` : text;
  // Other settings of that client may be secret.
  if (file.bytes === undefined) mkdirSync(dirname(file.target), { recursive: true, mode: 0o700 });
  replaceFile(file.target, content, { mode: file.mode, check: () => checkUnchanged(file) });
}

/** Writes the backup, with the file's permissions. */
export function writeBackup({ path, bytes, mode }: ConfigFile): void {
  if (bytes !== undefined) replaceFile(backupOf(path), bytes, { mode });
}

/** Restores these bytes, or removes the file. */
export function restoreConfigFile(file: ConfigFile, before: Buffer | undefined): void {
  if (before !== undefined) {
    replaceFile(file.target, before, { mode: file.mode, check: () => checkUnchanged(file) });
    return;
  }
  checkUnchanged(file);
  rmSync(file.target);
}

/** Whether the folder of a file was made with it: by the times of their creation, at most a second apart. */
export function isFolderMadeWith({ target }: ConfigFile): boolean {
  try {
    const ageMs = statSync(target).birthtimeMs - statSync(dirname(target)).birthtimeMs;
    return ageMs >= 0 && ageMs < 1000;
  } catch {
    return false;
  }
}

/** Removes the folder of a deleted file when it is empty, and none of the kept ones. */
export function removeEmptyFolder(file: ConfigFile, kept: readonly string[]): void {
  const folder = dirname(file.target);
  if (kept.some((one) => one === folder || realpathSync(one) === folder)) return;
  try {
    rmdirSync(folder);
  } catch {
    // It has other files.
  }
}

export function readBackup(path: string): ConfigFile | undefined {
  const backup = readConfigFile(backupOf(path));
  return backup.bytes === undefined ? undefined : backup;
}

export function removeBackup(path: string): void {
  rmSync(backupOf(path), { force: true });
}

/** A path with `~` for the home folder. */
export function shortPath(path: string, home: string): string {
  return path.startsWith(join(home, sep)) ? `~${path.slice(home.length)}` : path;
}
