/** Reads a profile's bytes from the disk without blocking, whatever is at its path. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import { type ProfileReading, readProfile, unreadable } from './read-profile.ts';

const LARGEST_BYTES = 64 * 1024;
/** Attempts to read a file that changes meanwhile. */
const TRIES = 3;

/** Identifies one state of a file. */
export type FileMark = {
  readonly inode: bigint;
  readonly size: bigint;
  readonly modifiedNs: bigint;
  readonly changedNs: bigint;
};

type Stat = { ino: bigint; dev: bigint; size: bigint; mtimeNs: bigint; ctimeNs: bigint };

const markOf = ({ ino, dev, size, mtimeNs, ctimeNs }: Stat): FileMark => ({
  inode: (dev << 64n) | ino,
  size,
  modifiedNs: mtimeNs,
  changedNs: ctimeNs,
});

export const sameMark = (one: FileMark, other: FileMark): boolean =>
  one.inode === other.inode &&
  one.size === other.size &&
  one.modifiedNs === other.modifiedNs &&
  one.changedNs === other.changedNs;

const codeOf = (thrown: unknown) => (thrown as NodeJS.ErrnoException).code;

/** Whether a path exists; an inaccessible one counts as existing. */
export function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR';
  }
}

/** The state of a path; `undefined` when unknown. */
export function markAt(path: string): FileMark | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && markOf(stat);
}

function failureText(error: unknown): string {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'this user may not read it';
    case 'ENOENT':
      return 'it is a link to a missing file';
    case 'ELOOP':
      return 'it is a link to itself';
    default:
      return (error as Error).message;
  }
}

/** Reads at most one byte more than the limit of a profile. */
function readBounded(fd: number): Buffer {
  const bytes = Buffer.alloc(LARGEST_BYTES + 1);
  let length = 0;
  for (;;) {
    const read = readSync(fd, bytes, length, bytes.length - length, length);
    length += read;
    if (read === 0 || length === bytes.length) return bytes.subarray(0, length);
  }
}

function kindProblem(stat: { isFile(): boolean; isDirectory(): boolean }): string | undefined {
  if (stat.isFile()) return undefined;
  return stat.isDirectory() ? 'it is a folder' : 'it is not a regular file';
}

/** The bytes of one state of the file. */
function readState(path: string): { bytes: Buffer; mark: FileMark } | { problem: string; mark?: FileMark } {
  // Checked before opening: opening may already affect a device.
  const wrongKind = kindProblem(statSync(path));
  if (wrongKind !== undefined) return { problem: wrongKind };
  // Without O_NONBLOCK a pipe in its place would block.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    for (let tried = 1; ; tried++) {
      const before = fstatSync(fd, { bigint: true });
      const mark = markOf(before);
      const problem = kindProblem(before);
      if (problem !== undefined) return { problem };
      const bytes = readBounded(fd);
      if (bytes.length > LARGEST_BYTES)
        return { problem: `it has more than the ${LARGEST_BYTES / 1024} KiB that a profile may have`, mark };
      // A file that is being written may be a mixture.
      if (tried === TRIES || sameMark(mark, markOf(fstatSync(fd, { bigint: true })))) return { bytes, mark };
    }
  } finally {
    closeSync(fd);
  }
}

/** @returns the file's content, and the state in which it was read, if known */
export function readProfileFile(path: string): { reading: ProfileReading; mark?: FileMark } {
  const refused = (why: string) => unreadable(`the profile ${path} cannot be read: ${why}`, path);
  try {
    const state = readState(path);
    if ('problem' in state) return { reading: refused(state.problem), ...(state.mark && { mark: state.mark }) };
    return { reading: readBytes(state.bytes, path, refused), mark: state.mark };
  } catch (error) {
    return { reading: refused(failureText(error)) };
  }
}

function readBytes(bytes: Uint8Array, path: string, refused: (why: string) => ProfileReading): ProfileReading {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refused('it must be UTF-8 text; it contains other bytes');
  }
  return readProfile(text, path);
}
