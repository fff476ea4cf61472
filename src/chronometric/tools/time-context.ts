/** `get_time_context`: the current time for the user. Pure. */

import { isoDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { TimeContext } from '../../wire/chronometric.ts';
import { dayOfWeek } from '../../wire/chronometric-vocabulary.ts';
import { logicalDay, zoneAt } from '../profile/day-rules.ts';
import { formatTimeOfDay } from '../profile/time-of-day.ts';
import type { Session } from '../state/state.ts';
import type { CallContext } from './call-context.ts';

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
