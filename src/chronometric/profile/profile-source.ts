/**
 * The current profile. Every call checks the disk, so withdrawn consent counts at once. The text is read again only after
 * a change.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { type Environment, findProfile } from './find-profile.ts';
import type { ProfileSource } from './profile.ts';
import { type FileMark, isThere, markAt, readProfileFile, sameMark } from './profile-file.ts';
import { NO_PROFILE, type ProfileReading, unreadable } from './read-profile.ts';

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
