/**
 * The profile as it is now. Every call looks at the disk, so that consent that is withdrawn counts from the next call
 * on; the text is read again only when the file is another one than before.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { type Environment, findProfile } from './find-profile.ts';
import type { ProfileSource } from './profile.ts';
import { type FileMark, isThere, markAt, readProfileFile, sameMark } from './profile-file.ts';
import { NO_PROFILE, type ProfileReading, unreadable } from './read-profile.ts';

/**
 * A file that was changed less than this before it was read may be changed once more without looking different: file
 * systems count time in steps of up to two seconds.
 */
const SETTLED_MS = 2500;

type Kept = { readonly path: string; readonly mark: FileMark; readonly reading: ProfileReading };

/**
 * @param environment names the file, by the order of `find-profile.ts`; looked at on every call
 * @returns never throws; what cannot be read is `unreadable`, and then nobody has consented to anything
 */
export function profileSource(environment: Environment, clock: Clock): ProfileSource & { read(): ProfileReading } {
  let kept: Kept | undefined;

  const isSettled = ({ modifiedNs, changedNs }: FileMark) => {
    const latest = Number((modifiedNs > changedNs ? modifiedNs : changedNs) / 1_000_000n);
    return clock.now() - latest >= SETTLED_MS;
  };

  const current = (path: string): ProfileReading => {
    if (kept?.path === path) {
      const mark = lookAt(path);
      if (mark && sameMark(mark, kept.mark)) return kept.reading;
    }
    const { reading, mark } = readProfileFile(path);
    kept = mark && isSettled(mark) ? { path, mark, reading } : undefined;
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

/** A look that fails is left to the reading, which says why. */
function lookAt(path: string): FileMark | undefined {
  try {
    return markAt(path);
  } catch {
    return undefined;
  }
}
