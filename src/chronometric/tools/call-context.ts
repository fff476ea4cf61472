/** The context of every tool call, the current time and the user's profile, and the answer of `get_time_context`. */
import { isoDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { TimeContext } from '../../wire/chronometric.ts';
import { dayOfWeek } from '../../wire/chronometric-vocabulary.ts';
import { ChronometricError } from '../chronometric-error.ts';
import { type LocalTime, localTimeAt, logicalDay, zoneAt } from '../profile/day-rules.ts';
import type { Profile } from '../profile/profile.ts';
import { formatTimeOfDay } from '../profile/time-of-day.ts';
import type { Session } from '../state/state.ts';

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

/** The instant, if it is plausible. @throws ChronometricError `INTERNAL_CLOCK_UNAVAILABLE` */
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

/** The state's data about the user; `unavailable`: why there is none. */
export type Known = {
  readonly lastPromptAt?: number | undefined;
  /** The open one. */
  readonly session?: Session | undefined;
  readonly unavailable?: string | undefined;
};

/** Never negative: a clock may have stepped back. */
export const sessionLength = ({ now }: CallContext, { startedAt }: Session): string =>
  isoDuration(Math.max(0, now - startedAt));

export function timeContext(context: CallContext, { lastPromptAt, session, unavailable }: Known): TimeContext {
  const { now, timezone, local, profile } = context;
  const { rules, pastEndOfDay } = logicalDay(profile, local);
  const { calendarPhase, deadlineClusterAwareness, motorFatigueAware } = profile;
  return {
    now: formatWithOffset(timezone, now),
    day_of_week: dayOfWeek(local.day),
    time_since_last_prompt: lastPromptAt === undefined ? null : isoDuration(Math.max(0, now - lastPromptAt)),
    current_session_length: session === undefined ? null : sessionLength(context, session),
    active_length: session === undefined ? null : isoDuration(session.activeMs),
    energy_zone: zoneAt(profile, local.day, local.minute),
    ...(rules.endOfDay && { effective_end_of_day_local: formatTimeOfDay(rules.endOfDay.value) }),
    ...(pastEndOfDay !== undefined && { past_end_of_day: pastEndOfDay }),
    ...(calendarPhase !== undefined && { calendar_phase: calendarPhase }),
    ...(deadlineClusterAwareness !== undefined && { deadline_cluster_awareness: deadlineClusterAwareness }),
    ...(motorFatigueAware !== undefined && { motor_fatigue_aware: motorFatigueAware }),
    ...(unavailable !== undefined && { state_unavailable: unavailable }),
  };
}
