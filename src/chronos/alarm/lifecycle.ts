/**
 * Operations of an owner on an alarm, besides its definition. They are pure transitions, run inside the store's
 * transaction.
 *
 * A running attempt cannot be stopped. All operations park its occurrence (`dueAt` null): the attempt finishes and is
 * not retried.
 */
import { ReveilleError } from '../../wire/errors.ts';
import { fireIdOf } from '../../wire/fire-id.ts';
import { type AlarmState, isClaimed, NOT_DEFERRED, type Occurrence, scheduledOccurrence } from './alarm.ts';
import { isBackfill, isOwnTrigger, withoutBackfill } from './backfill.ts';
import { isEventFire, resumedEvents, triggeredAt } from './events.ts';
import { type Calendars, NO_CALENDARS } from './holidays.ts';
import { withOtherSecret } from './hook.ts';
import { isScheduledFor, nextOccurrence } from './series.ts';

/** Makes the occurrence pending without a due time. A deferral of it ends. */
export function park(occurrence: Occurrence): Occurrence {
  return { ...occurrence, dueAt: null, ...NOT_DEFERRED };
}

/** How many triggered occurrences of one alarm may wait. */
export const MAX_WAITING_TRIGGERS = 100;

/**
 * Cancels the alarm: it is not tried from now on. A final alarm (fired, cancelled, failed) stays unchanged, except for
 * waiting triggers and a backfill, which are dropped.
 */
export function cancelAlarm(state: AlarmState, now: number): AlarmState {
  const { alarm, occurrences } = withoutBackfill(state);
  const open = alarm.status === 'active' || alarm.status === 'paused';
  const kept = occurrences.filter((occurrence) => isClaimed(occurrence) || (!open && occurrence.source === 'schedule'));
  return {
    alarm: open ? { ...alarm, status: 'cancelled', updatedAt: now } : alarm,
    occurrences: kept.map(park),
  };
}

/**
 * Suspends the schedule, a backfill, and the wakes of events, until {@link resumeAlarm}. Pausing a paused alarm changes
 * nothing.
 */
export function pauseAlarm(state: AlarmState, now: number): AlarmState {
  const { alarm } = state;
  if (alarm.status === 'paused') return state;
  if (alarm.status !== 'active')
    throw new ReveilleError('conflict', `only an active alarm can be paused; this one is ${alarm.status}`);
  return {
    alarm: { ...alarm, status: 'paused', updatedAt: now },
    occurrences: state.occurrences.map((occurrence) =>
      occurrence.source === 'schedule' || isOwnTrigger(alarm, occurrence) ? park(occurrence) : occurrence,
    ),
  };
}

/**
 * Ends what a credential can still cause through an alarm that it made: the alarm is paused, its waiting triggers are
 * dropped, and what its senders know proves nothing any more. A final alarm stays unchanged.
 *
 * @param secret a new one for its address
 */
export function endAccess(state: AlarmState, now: number, secret: string): AlarmState {
  const { status } = state.alarm;
  if (status !== 'active' && status !== 'paused') return state;
  const { alarm, occurrences } = pauseAlarm(state, now);
  const isKept = (one: Occurrence) => one.source === 'schedule' || isClaimed(one) || isOwnTrigger(alarm, one);
  return { alarm: withOtherSecret(alarm, secret), occurrences: occurrences.filter(isKept).map(park) };
}

/** The pending occurrence of a resumed alarm; `undefined` when its series has ended meanwhile. */
function pendingOnResume(state: AlarmState, now: number, calendars: Calendars, cause: string): Occurrence | undefined {
  const parked = scheduledOccurrence(state);
  const hasAttempt = parked !== undefined && parked.attempt > 0;
  // Occurrences that passed during a pause do not count as missed: the owner asked for the pause.
  const passed = !hasAttempt && (!parked || parked.scheduledFor <= now);
  if (state.alarm.kind !== 'once' && passed) return nextOccurrence(state.alarm, now, calendars);
  const pending = parked && { ...parked, dueAt: Math.max(parked.scheduledFor, hasAttempt ? now : 0), ...NOT_DEFERRED };
  return pending && overdueBy(pending, now, cause);
}

/** An occurrence whose instant has passed fires because of the request that makes it due. */
const overdueBy = (pending: Occurrence, now: number, cause: string): Occurrence =>
  pending.scheduledFor <= now ? { ...pending, cause } : pending;

/**
 * Resumes the schedule: a series with its next occurrence after `now`, a `once` alarm at its instant or, when that has
 * passed, at once. Resuming an active alarm changes nothing.
 *
 * @param cause of what is due because of it (`storedCause`)
 */
export function resumeAlarm(state: AlarmState, now: number, calendars = NO_CALENDARS, cause = 'agent'): AlarmState {
  if (state.alarm.status === 'active') return state;
  if (state.alarm.status !== 'paused')
    throw new ReveilleError('conflict', `only a paused alarm can be resumed; this one is ${state.alarm.status}`);
  if (state.alarm.kind === 'event') return resumedEvents(state, now, cause);
  const { alarm } = state;
  const pending = pendingOnResume(state, now, calendars, cause);
  const others = state.occurrences
    .filter((occurrence) => occurrence.source !== 'schedule')
    .map((occurrence) =>
      isBackfill(alarm, occurrence) ? { ...occurrence, dueAt: Math.max(now, occurrence.scheduledFor) } : occurrence,
    );
  return {
    alarm: { ...alarm, status: pending ? 'active' : 'fired', updatedAt: now },
    occurrences: pending ? [...others, pending] : others,
  };
}

/** Fires now, in addition to the schedule, which does not change. @param cause `storedCause` */
export function triggerAlarm(
  state: AlarmState,
  now: number,
  calendars = NO_CALENDARS,
  cause = 'agent',
): { state: AlarmState; fireId: string } {
  const { alarm } = state;
  if (alarm.status !== 'active' && alarm.status !== 'paused') {
    const remedy = alarm.status === 'failed' ? 'redrive it instead' : 'set a new one';
    throw new ReveilleError('conflict', `this alarm is ${alarm.status} and cannot be triggered; ${remedy}`);
  }
  return fireNow(state, now, calendars, cause);
}

/** Adds an occurrence that is due now, in addition to the schedule. */
function fireNow(
  state: AlarmState,
  now: number,
  calendars: Calendars,
  cause: string,
): { state: AlarmState; fireId: string } {
  const { alarm, occurrences } = state;
  const waiting = occurrences.filter(({ source, dueAt }) => source === 'trigger' && dueAt !== null);
  if (waiting.length >= MAX_WAITING_TRIGGERS)
    throw new ReveilleError(
      'rate_limited',
      `${MAX_WAITING_TRIGGERS} triggers of this alarm are waiting to be delivered`,
    );
  const taken = new Set(occurrences.map((occurrence) => occurrence.fireId));
  // A wake of events may have ended within this millisecond.
  let at = alarm.kind === 'event' ? now + 1 : now;
  while (taken.has(fireIdOf(alarm.id, at)) || isScheduledFor(alarm, at, calendars)) at++;
  const fireId = fireIdOf(alarm.id, at);
  const triggered: Occurrence = {
    fireId,
    alarmId: alarm.id,
    owner: alarm.owner,
    source: 'trigger',
    scheduledFor: at,
    nominal: at,
    dueAt: at,
    attempt: 0,
    missedCount: 0,
    fence: 0,
    claimedAt: null,
    ...NOT_DEFERRED,
    cause,
  };
  return { state: { alarm: triggeredAt(alarm, at), occurrences: [...occurrences, triggered] }, fireId };
}

/** The status of the turn of an alarm's latest fire, according to its turn reports. */
export type LastTurn = 'none' | 'under_way' | 'waits' | 'ok' | 'failed';

const REDRIVE_REFUSALS: Readonly<Record<Exclude<LastTurn, 'failed'>, string>> = {
  none: 'only a failed alarm, or one whose last turn failed, can be redriven',
  ok: 'its last turn has succeeded, so there is nothing to redrive',
  under_way: 'its last turn is still running',
  waits: 'its last turn is retried automatically',
};

/**
 * Re-arms a failed alarm: the same occurrence, with the same fire id and no failures. The owner wants it now, however
 * late, so `max_lateness_seconds` is removed.
 *
 * A delivered alarm whose turn failed fires now under a new fire id, because its occurrence was already delivered.
 * Redriving it again while that fire waits changes nothing.
 *
 * @param cause of the fire (`storedCause`)
 */
export function redriveAlarm(
  state: AlarmState,
  now: number,
  lastTurn: LastTurn = 'none',
  calendars = NO_CALENDARS,
  cause = 'agent',
): AlarmState {
  const { alarm } = state;
  if (alarm.status !== 'failed') {
    if (alarm.status === 'cancelled' || lastTurn !== 'failed') {
      const reason = alarm.status === 'cancelled' ? REDRIVE_REFUSALS.none : REDRIVE_REFUSALS[lastTurn as 'none'];
      throw new ReveilleError('conflict', `${reason}; this one is ${alarm.status}`);
    }
    const waits = state.occurrences.some(({ source }) => source === 'trigger');
    return waits ? state : fireNow(state, now, calendars, cause).state;
  }
  const parked = state.occurrences.find((one) => isEventFire(alarm, one)) ?? scheduledOccurrence(state);
  // A series fails only when its next occurrence could not be computed, so none is pending: it restarts from now.
  const pending = parked ? { ...parked, dueAt: now, ...NOT_DEFERRED, cause } : nextOccurrence(alarm, now, calendars);
  if (!pending) throw new ReveilleError('conflict', 'the series of this alarm has ended; set a new one');
  return {
    alarm: { ...alarm, status: 'active', failureCount: 0, maxLatenessSeconds: null, updatedAt: now },
    occurrences: [...state.occurrences.filter((occurrence) => occurrence !== parked), pending],
  };
}
