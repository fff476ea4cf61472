/** A profile's bytes from the disk, from whatever stands at its path, and never waiting for it. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import { type ProfileReading, readProfile, unreadable } from './read-profile.ts';

const LARGEST_BYTES = 64 * 1024;
/** How often a file is read that changes while it is read. */
const TRIES = 3;

/** What tells one state of a file from another. */
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

/** Whether something stands at a path; what cannot be looked at is there. */
export function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR';
  }
}

/** The state that a path is in; `undefined` where it cannot be said. */
export function markAt(path: string): FileMark | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && markOf(stat);
}

function failureWords(error: unknown): string {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'this user may not read it';
    case 'ENOENT':
      return 'it is a link that leads nowhere';
    case 'ELOOP':
      return 'it is a link that leads back to itself';
    default:
      return (error as Error).message;
  }
}

/** Reads at most one byte more than a profile may have, however much there is. */
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
  // Looked at before it is opened: opening may already do something to a device.
  const wrongKind = kindProblem(statSync(path));
  if (wrongKind !== undefined) return { problem: wrongKind };
  // Without O_NONBLOCK a pipe that took its place meanwhile would be waited for.
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
      // Read while somebody writes, it may be a mixture.
      if (tried === TRIES || sameMark(mark, markOf(fstatSync(fd, { bigint: true })))) return { bytes, mark };
    }
  } finally {
    closeSync(fd);
  }
}

/** @returns what the file says, and the state that it was read in, where it could be */
export function readProfileFile(path: string): { reading: ProfileReading; mark?: FileMark } {
  const refused = (why: string) => unreadable(`the profile ${path} cannot be read: ${why}`, path);
  try {
    const state = readState(path);
    if ('problem' in state) return { reading: refused(state.problem), ...(state.mark && { mark: state.mark }) };
    return { reading: readBytes(state.bytes, path, refused), mark: state.mark };
  } catch (error) {
    return { reading: refused(failureWords(error)) };
  }
}

function readBytes(bytes: Uint8Array, path: string, refused: (why: string) => ProfileReading): ProfileReading {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refused('it must be UTF-8 text, and holds bytes that are not');
  }
  return readProfile(text, path);
}
