/** The user's profile. Its reader is loaded when a profile exists, so a server without a profile starts without YAML. */
import { lstatSync } from 'node:fs';
import type { Clock } from '../kit/clock/clock.ts';
import { type Environment, findProfile } from './profile/find-profile.ts';
import { DEFAULT_PROFILE, type ProfileSource } from './profile/profile.ts';

export type LazyProfile = ProfileSource & {
  /** Must resolve before {@link ProfileSource.read}: loads the reader when a profile was created meanwhile. */
  ready(): Promise<void>;
};

const NONE: ReturnType<ProfileSource['read']> = { profile: DEFAULT_PROFILE, problems: [] };

/** An inaccessible file counts as existing: the reader reports the error. */
function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** @param environment names the file's possible locations */
export function lazyProfile(environment: Environment, clock: Clock): LazyProfile {
  let source: ProfileSource | undefined;
  return {
    async ready() {
      if (source || findProfile(environment, mayExist).path === undefined) return;
      const { profileSource } = await import('./profile/profile-file.ts');
      source ??= profileSource(environment, clock);
    },
    read: () => source?.read() ?? NONE,
  };
}
