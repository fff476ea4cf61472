/** The break status of an open session: due, or when. Pure. */

import { isoDuration } from '../../kit/clock/duration.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import { logicalDay } from '../profile/day-rules.ts';
import type { Session } from '../state/state.ts';
import { breakRequest } from '../tools/break-request.ts';
import type { CallContext } from '../tools/call-context.ts';

const MINUTE_MS = 60_000;

/**
 * As `request_break_if_needed`, with the profile's threshold or the first step of the ladder.
 *
 * @returns `undefined` when the profile cannot be read
 */
export function breakView(session: Session, context: CallContext): DayView['break'] {
  if (context.unreadable !== undefined) return undefined;
  const { rules } = logicalDay(context.profile, context.local);
  const threshold = rules.breakMinutes?.value ?? rules.ladder.value[0];
  const elapsed = Math.max(0, session.activeSinceBreakMs);
  const known = { elapsed: isoDuration(elapsed), threshold_minutes: threshold };
  const request = breakRequest(context, session, threshold);
  if (request === null) return { ...known, due: false, due_in: isoDuration(threshold * MINUTE_MS - elapsed) };
  const { level, protected_window_label: label } = request;
  return { ...known, due: true, level, ...(label !== undefined && { protected_window_label: label }) };
}
