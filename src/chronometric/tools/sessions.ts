/** `mark_session_start` and `mark_session_end`: their results, and the overlap policy. Pure. */

import { isoDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { SessionEnded, SessionStarted } from '../../wire/chronometric.ts';
import { ChronometricError } from '../chronometric-error.ts';
import type { Profile } from '../profile/profile.ts';
import type { Session } from '../state/state.ts';
import type { CallContext } from './call-context.ts';

/** An ended session in both results. */
function closed({ id, intent, startedAt, endedAt = startedAt, activeMs }: Session, timezone: string) {
  return {
    session_id: id,
    started_at: formatWithOffset(timezone, startedAt),
    ended_at: formatWithOffset(timezone, endedAt),
    duration: isoDuration(endedAt - startedAt),
    active_duration: isoDuration(activeMs),
    intent,
  };
}

/** The policy for a session that is still open. With an unreadable profile nothing is closed. */
export function overlapOf({ profile, unreadable }: CallContext): Profile['overlapPolicy'] {
  return unreadable === undefined ? profile.overlapPolicy : 'error';
}

/** The error when a session is open and must not be closed. @param thrown `SESSION_ALREADY_OPEN` of the state */
export function overlapError({ unreadable }: CallContext, thrown: ChronometricError): ChronometricError {
  if (unreadable === undefined)
    return new ChronometricError(
      thrown.code,
      'a session is open, and the profile has chronometric.session_overlap_policy: error; end it with mark_session_end first',
    );
  return new ChronometricError(
    'PROFILE_UNREADABLE',
    `a session is open, and the profile with the policy for it cannot be read (${unreadable}); correct it, or end the session with mark_session_end first`,
  );
}

export function sessionStarted(
  { session, autoClosed }: { session: Session; autoClosed?: Session },
  timezone: string,
): SessionStarted {
  return {
    session_id: session.id,
    started_at: formatWithOffset(timezone, session.startedAt),
    intent: session.intent,
    ...(autoClosed && { auto_closed_prior_session: closed(autoClosed, timezone) }),
  };
}

export function sessionEnded(session: Session, timezone: string): SessionEnded {
  return { ...closed(session, timezone), summary: session.summary ?? null };
}
