/** Small files with a secret: mode 0600, written atomically, overwritten only by {@link movePrivateFile}. */
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
import { ReveilleError, systemCodeOf, thrownText } from '../../wire/errors.ts';

const MAX_BYTES = 64 * 1024;

/** Windows has no permission bits. */
const HAS_MODES = process.platform !== 'win32';

function refuse(path: string, verb: string, cause: unknown): ReveilleError {
  const why = thrownText(cause);
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
 * Writes a new file that only its owner can read, and creates its folder (0700) if it is missing. Readers see the whole
 * file or none, also after a power failure.
 *
 * @throws ReveilleError `conflict` if the file exists (it stays unchanged), `unavailable` if writing fails
 */
export function writePrivateFile(path: string, text: string): void {
  makePrivateFolder(path);
  try {
    // A link, unlike a rename, fails if the name is taken.
    withDraft(path, text, 0o600, (draft) => linkSync(draft, path));
  } catch (cause) {
    if (systemCodeOf(cause) === 'EEXIST')
      throw new ReveilleError('conflict', `${path} exists and is never overwritten; move it away first`, { cause });
    throw refuse(path, 'written', cause);
  }
}

/** @throws ReveilleError `unavailable` */
function makePrivateFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw refuse(path, 'written', cause);
  }
}

/** Writes a durable file beside `path`; `place` gives it its name, which becomes durable too. */
function withDraft(path: string, content: string | Buffer, mode: number, place: (draft: string) => void): void {
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
    place(draft);
    syncFolder(dirname(path));
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Reads a file that only its owner may be able to read.
 *
 * @returns its text, or `undefined` if there is no such file
 * @throws ReveilleError `forbidden` if group or others have any right to it, `unavailable` if it cannot be read
 */
export function readPrivateFile(path: string): string | undefined {
  let fd: number;
  try {
    // Without O_NONBLOCK, a FIFO with that name would block the process.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return undefined;
    throw refuse(path, 'read', cause);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw refuse(path, 'read', new Error('it is not a regular file'));
    const { mode, size } = stat;
    if (HAS_MODES && (mode & 0o077) !== 0) {
      const bits = (mode & 0o777).toString(8).padStart(4, '0');
      throw new ReveilleError(
        'forbidden',
        `${path} can be used by others (mode ${bits}); run: chmod 600 ${shellWord(path)}`,
      );
    }
    if (size > MAX_BYTES)
      throw refuse(path, 'read', new Error(`it has ${size} bytes, more than the limit of ${MAX_BYTES}`));
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

/** Moves a private file to the place of another one, durably. @throws ReveilleError `unavailable` */
export function movePrivateFile(from: string, to: string): void {
  try {
    renameSync(from, to);
    syncFolder(dirname(to));
  } catch (cause) {
    throw refuse(to, 'written', cause);
  }
}

/** Quotes a path for a POSIX shell, for commands in messages. */
export function shellWord(path: string): string {
  return /^[\w./~+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

/**
 * Replaces a file atomically, readable only by its owner, and creates its folder (0700) if it is missing. For records
 * of the current state; {@link movePrivateFile} replaces secrets.
 *
 * @throws ReveilleError `unavailable` if writing fails
 */
export function replacePrivateFile(path: string, text: string): void {
  makePrivateFolder(path);
  replaceFile(path, text, { mode: 0o600 });
}

/**
 * Replaces a file atomically, with these permissions.
 *
 * @param check called after everything is written, just before the replacement; its errors are passed on
 * @throws ReveilleError `unavailable` if writing fails
 */
export function replaceFile(
  path: string,
  content: string | Buffer,
  { mode, check = () => {} }: { mode: number; check?: () => void },
): void {
  try {
    withDraft(path, content, mode, (draft) => {
      check();
      renameSync(draft, path);
    });
  } catch (cause) {
    throw cause instanceof ReveilleError ? cause : refuse(path, 'written', cause);
  }
}
