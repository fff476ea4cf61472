/** Small files that hold a secret: 0600, written whole or not at all, never written over. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';

const MAX_BYTES = 64 * 1024;

/** Windows has no permission bits to look at. */
const HAS_MODES = process.platform !== 'win32';

function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : undefined;
}

function refuse(path: string, verb: string, cause: unknown): ReveilleError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new ReveilleError('unavailable', `${path} cannot be ${verb}: ${why}`, { retryable: false, cause });
}

function syncFolder(folder: string): void {
  if (!HAS_MODES) return;
  const fd = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Writes a new file that only its owner can read, and its folder (0700) when that is missing. Readers see the whole
 * file or none, also after a power cut.
 *
 * @throws ReveilleError `conflict` when there is a file already (it is left as it is), `unavailable` when the disk
 *   refuses
 */
export function writePrivateFile(path: string, text: string): void {
  const folder = dirname(path);
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const fd = openSync(draft, 'wx', 0o600);
    try {
      writeFileSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    // A link, unlike a rename, fails when the name is taken.
    linkSync(draft, path);
    syncFolder(folder);
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') {
      throw new ReveilleError('conflict', `${path} exists already and is never overwritten; move it away first`, {
        cause,
      });
    }
    throw refuse(path, 'written', cause);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Reads a file that nobody but its owner may be able to read.
 *
 * @returns its text, or `undefined` when there is no such file
 * @throws ReveilleError `forbidden` when group or others have any right to it, `unavailable` when it cannot be read
 */
export function readPrivateFile(path: string): string | undefined {
  let fd: number;
  try {
    // Without O_NONBLOCK a pipe of that name would hang the process.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined;
    throw refuse(path, 'read', cause);
  }
  try {
    const { mode, size } = checkKind(path, fd);
    if (HAS_MODES && (mode & 0o077) !== 0) {
      const bits = (mode & 0o777).toString(8).padStart(4, '0');
      throw new ReveilleError(
        'forbidden',
        `${path} can be used by others (mode ${bits}); run: chmod 600 ${shellWord(path)}`,
      );
    }
    if (size > MAX_BYTES)
      throw refuse(path, 'read', new Error(`it has ${size} bytes, at most ${MAX_BYTES} are expected`));
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

function checkKind(path: string, fd: number): { mode: number; size: number } {
  const stat = fstatSync(fd);
  if (!stat.isFile()) throw refuse(path, 'read', new Error('it is not a regular file'));
  return stat;
}

/** The path as one word of a POSIX shell, for commands that people are asked to run. */
export function shellWord(path: string): string {
  return /^[\w./~+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

/**
 * Puts a file in the place of whatever was there, in one step, readable by its owner alone, and makes its folder (0700)
 * when that is missing. For records that describe the present; a secret is never replaced.
 *
 * @throws ReveilleError `unavailable` when the disk refuses
 */
export function replacePrivateFile(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw refuse(path, 'written', cause);
  }
  replaceFile(path, text, { mode: 0o600 });
}

/**
 * Puts a file in the place of whatever was there, in one step, with these permissions.
 *
 * @param check looks at what is about to be replaced, when all is written but the last step; what it throws is passed on
 * @throws ReveilleError `unavailable` when the disk refuses
 */
export function replaceFile(
  path: string,
  content: string | Buffer,
  { mode, check = () => {} }: { mode: number; check?: () => void },
): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const fd = openSync(draft, 'wx', 0o600);
    try {
      writeFileSync(fd, content);
      if (mode !== 0o600) fchmodSync(fd, mode);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    check();
    renameSync(draft, path);
    syncFolder(dirname(path));
  } catch (cause) {
    throw cause instanceof ReveilleError ? cause : refuse(path, 'written', cause);
  } finally {
    rmSync(draft, { force: true });
  }
}
