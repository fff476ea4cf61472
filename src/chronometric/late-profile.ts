/**
 * The person's profile, whose reader is loaded once there is one to read: a server without a profile starts without
 * YAML.
 */
import { lstatSync } from 'node:fs';
import type { Clock } from '../kit/clock/clock.ts';
import { DEFAULT_PROFILE } from './profile/default-profile.ts';
import { type Environment, findProfile } from './profile/find-profile.ts';
import type { ProfileSource } from './profile/profile.ts';

export type LateProfile = ProfileSource & {
  /** To be awaited before {@link ProfileSource.read}, so that a profile that has come to be there counts. */
  ready(): Promise<void>;
};

const NONE: ReturnType<ProfileSource['read']> = { profile: DEFAULT_PROFILE, problems: [] };

/** What cannot be looked at is there: whoever reads it will say so. */
function mayBeThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** @param environment says where it may be */
export function lateProfile(environment: Environment, clock: Clock): LateProfile {
  let source: ProfileSource | undefined;
  return {
    async ready() {
      if (source || findProfile(environment, mayBeThere).path === undefined) return;
      const { profileSource } = await import('./profile/profile-source.ts');
      source ??= profileSource(environment, clock);
    },
    read: () => source?.read() ?? NONE,
  };
}
