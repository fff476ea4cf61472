/** `get_time_context`: what time it is for the person. Pure. */

import { isoDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { TimeContext } from '../../wire/chronometric.ts';
import { logicalDay, zoneAt } from '../profile/day-rules.ts';
import type { MinuteOfDay } from '../profile/profile.ts';
import type { Session } from '../state/state.ts';
import type { Occasion } from './occasion.ts';

const two = (number: number) => String(number).padStart(2, '0');

/** `18:05` */
export function clockTime(minute: MinuteOfDay): string {
  return `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;
}

/** @param session the open one */
export function timeContext(occasion: Occasion, session: Session | undefined): TimeContext {
  const { now, timezone, local, profile, lastCallAt } = occasion;
  const { rules, pastEndOfDay } = logicalDay(profile, local);
  const { calendarPhase, deadlineClusterAwareness, motorFatigueAware } = profile;
  return {
    now: formatWithOffset(timezone, now),
    day_of_week: local.day,
    time_since_last_prompt: lastCallAt === undefined ? null : isoDuration(now - lastCallAt),
    current_session_length: session === undefined ? null : isoDuration(session.activeMs),
    energy_zone: zoneAt(profile, local.day, local.minute),
    ...(rules.endOfDay && { effective_end_of_day_local: clockTime(rules.endOfDay.value) }),
    ...(pastEndOfDay !== undefined && { past_end_of_day: pastEndOfDay }),
    ...(calendarPhase !== undefined && { calendar_phase: calendarPhase }),
    ...(deadlineClusterAwareness !== undefined && { deadline_cluster_awareness: deadlineClusterAwareness }),
    ...(motorFatigueAware !== undefined && { motor_fatigue_aware: motorFatigueAware }),
  };
}
