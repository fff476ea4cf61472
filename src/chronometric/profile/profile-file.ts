/**
 * Reads a profile's bytes from the disk without blocking, whatever is at its path. Every call of a source checks the disk, so
 * withdrawn consent counts at once. The text is read again only after a change.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import type { Clock } from '../../kit/clock/clock.ts';
import { systemCodeOf } from '../../wire/errors.ts';
import { type Environment, findProfile } from './find-profile.ts';
import type { ProfileSource } from './profile.ts';
import { NO_PROFILE, type ProfileReading, readProfile, unreadable } from './read-profile.ts';

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

/** Whether a path exists; an inaccessible one counts as existing. */
export function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    return systemCodeOf(error) !== 'ENOENT' && systemCodeOf(error) !== 'ENOTDIR';
  }
}

/** The state of a path; `undefined` when unknown. */
export function markAt(path: string): FileMark | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && markOf(stat);
}

function failureText(error: unknown): string {
  switch (systemCodeOf(error)) {
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

/**
 * A file that changed less than this before a reading may change again without a visible difference: file systems count
 * time in steps of up to two seconds.
 */
const SETTLED_MS = 2500;

type CachedProfile = { readonly path: string; readonly mark: FileMark; readonly reading: ProfileReading };

/**
 * @param environment names the file, in the order of `find-profile.ts`; read on every call
 * @returns never throws; an unreadable profile is `unreadable`, without consent
 */
export function profileSource(environment: Environment, clock: Clock): ProfileSource & { read(): ProfileReading } {
  let cached: CachedProfile | undefined;

  const isSettled = ({ modifiedNs, changedNs }: FileMark) => {
    const latest = Number((modifiedNs > changedNs ? modifiedNs : changedNs) / 1_000_000n);
    return clock.now() - latest >= SETTLED_MS;
  };

  const current = (path: string): ProfileReading => {
    if (cached?.path === path) {
      const mark = tryMarkAt(path);
      if (mark && sameMark(mark, cached.mark)) return cached.reading;
    }
    const { reading, mark } = readProfileFile(path);
    cached = mark && isSettled(mark) ? { path, mark, reading } : undefined;
    return reading;
  };

  return {
    read() {
      const { path, missing } = findProfile(environment, isThere);
      if (missing !== undefined) return unreadable(missing, path);
      return path === undefined ? NO_PROFILE : current(path);
    },
  };
}

/** `undefined` after an error: the reading reports the reason. */
function tryMarkAt(path: string): FileMark | undefined {
  try {
    return markAt(path);
  } catch {
    return undefined;
  }
}
