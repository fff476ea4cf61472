/** The context of every tool call: the current time and the user's profile. */
import { ChronometricError } from '../chronometric-error.ts';
import { type LocalTime, localTimeAt } from '../profile/day-rules.ts';
import type { Profile } from '../profile/profile.ts';

export type CallContext = {
  /** Epoch milliseconds. */
  readonly now: number;
  /** IANA: the profile's, or the computer's. */
  readonly timezone: string;
  readonly local: LocalTime;
  readonly profile: Profile;
  /** Why the profile could not be read, if so. */
  readonly unreadable?: string | undefined;
};

/** Instants beyond these have no four-digit year in every zone. */
const FIRST_INSTANT = Date.UTC(1970, 0, 2);
const LAST_INSTANT = Date.UTC(9999, 11, 30);

function unavailable(what: string): ChronometricError {
  return new ChronometricError('INTERNAL_CLOCK_UNAVAILABLE', what);
}

/**
 * The instant, if it is plausible.
 *
 * @throws ChronometricError `INTERNAL_CLOCK_UNAVAILABLE`
 */
export function usableTime(now: number): number {
  if (now >= FIRST_INSTANT && now <= LAST_INSTANT) return now;
  throw unavailable("the computer's clock has no usable time; set it and call again");
}

function localTime(timezone: string, now: number): LocalTime {
  try {
    return localTimeAt(timezone, now);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw unavailable(`the time zone ${timezone} is unknown; set chronometric.timezone in the profile`);
  }
}

/**
 * @param now usable
 * @param machineZone IANA; `undefined` when the computer has none
 * @throws ChronometricError `INTERNAL_CLOCK_UNAVAILABLE` without a time zone: none is assumed
 */
export function callContextOf(
  now: number,
  machineZone: string | undefined,
  { profile, unreadable }: { profile: Profile; unreadable?: string | undefined },
): CallContext {
  const timezone = profile.timezone ?? machineZone;
  if (timezone === undefined)
    throw unavailable("the computer's time zone cannot be read; set TZ, or chronometric.timezone in the profile");
  return { now, timezone, local: localTime(timezone, now), profile, unreadable };
}
