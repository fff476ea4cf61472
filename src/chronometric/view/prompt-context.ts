/** The text of a prompt hook about the time. Pure. */
import { isoDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { PromptContext } from '../../wire/chronometric-view.ts';
import { dayOfWeek } from '../../wire/chronometric-vocabulary.ts';
import { REAL_BREAK_MS, type Session } from '../state/state.ts';
import { breakView } from '../tools/break-request.ts';
import type { CallContext } from '../tools/call-context.ts';

/** The data of the state; a missing field could not be read. */
export type Known = {
  /** Time of the previous prompt. */
  readonly lastPromptAt?: number | 'never';
  readonly session?: Session | 'none';
};

function sessionPart(session: Session, { now, timezone }: CallContext, withIntent: boolean) {
  return {
    started_at: formatWithOffset(timezone, session.startedAt),
    last_seen_at: formatWithOffset(timezone, session.lastSeenAt),
    active_duration: isoDuration(session.activeMs),
    // This prompt is a sign of presence; if it did not continue the session, the session has ended.
    forgotten: now - session.lastSeenAt >= REAL_BREAK_MS,
    ...(withIntent && { intent: session.intent }),
  };
}

/**
 * @param withIntent whether the intent is included: it was given to one agent, and another one would read it
 * @param problems reasons for missing data
 */
export function promptContext(
  context: CallContext,
  { lastPromptAt, session }: Known,
  withIntent: boolean,
  problems: readonly string[],
): Omit<PromptContext, 'line'> {
  const { now, timezone, local } = context;
  const open = session === 'none' ? undefined : session;
  const part = open && sessionPart(open, context, withIntent);
  const breakStatus = open && !part?.forgotten ? breakView(open, context) : undefined;
  return {
    now: formatWithOffset(timezone, now),
    day_of_week: dayOfWeek(local.day),
    timezone,
    ...(lastPromptAt !== undefined && {
      since_last_prompt: lastPromptAt === 'never' ? null : isoDuration(now - lastPromptAt),
    }),
    ...(session !== undefined && { session: part ?? null }),
    ...(breakStatus && { break: breakStatus }),
    problems: [...problems],
  };
}
