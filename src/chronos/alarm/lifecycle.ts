/**
 * What an owner can do to an alarm besides defining it. Pure transitions; the store runs them inside its transaction.
 *
 * The rule that all of them share: an attempt under way cannot be called back. Its occurrence is parked (`dueAt` null),
 * so that it runs to its end and is not tried again.
 */
import { ReveilleError } from '../../wire/errors.ts';
import { fireIdOf } from '../../wire/fire-id.ts';
import { type AlarmState, isLeased, NOT_HELD, type Occurrence, scheduledOccurrence } from './alarm.ts';
import { isScheduledFor, nextOccurrence } from './series.ts';

/** Owed, but not to be tried until somebody says so; what held it back does not matter meanwhile. */
export function park(occurrence: Occurrence): Occurrence {
  return { ...occurrence, dueAt: null, ...NOT_HELD };
}

/** How many triggered occurrences of one alarm may wait at once. */
export const MAX_WAITING_TRIGGERS = 100;

/**
 * Cancels the alarm: nothing of it is tried from now on. One that has come to its end (fired, cancelled, failed) stays
 * as it is, but for triggers that still wait.
 */
export function cancelAlarm(state: AlarmState, now: number): AlarmState {
  const { alarm } = state;
  const open = alarm.status === 'active' || alarm.status === 'paused';
  const kept = state.occurrences.filter(
    (occurrence) => isLeased(occurrence, now) || (!open && occurrence.source === 'schedule'),
  );
  return {
    alarm: open ? { ...alarm, status: 'cancelled', updatedAt: now } : alarm,
    occurrences: kept.map(park),
  };
}

/** Holds the schedule back until {@link resumeAlarm}. Pausing a paused alarm changes nothing. */
export function pauseAlarm(state: AlarmState, now: number): AlarmState {
  const { alarm } = state;
  if (alarm.status === 'paused') return state;
  if (alarm.status !== 'active')
    throw new ReveilleError('conflict', `only an active alarm can be paused; this one is ${alarm.status}`);
  return {
    alarm: { ...alarm, status: 'paused', updatedAt: now },
    occurrences: state.occurrences.map((occurrence) =>
      occurrence.source === 'schedule' ? park(occurrence) : occurrence,
    ),
  };
}

/** The occurrence that a resumed alarm owes; `undefined` when its series has ended meanwhile. */
function owedOnResume(state: AlarmState, now: number): Occurrence | undefined {
  const parked = scheduledOccurrence(state);
  const begun = parked !== undefined && parked.attempt > 0;
  // What a series let pass while it was paused was not missed: its owner asked for that.
  const passed = !begun && (!parked || parked.scheduledFor <= now);
  if (state.alarm.kind === 'cron' && passed) return nextOccurrence(state.alarm, now);
  return parked && { ...parked, dueAt: Math.max(parked.scheduledFor, begun ? now : 0), ...NOT_HELD };
}

/**
 * Takes the schedule up again: a series with its next occurrence after `now`, a `once` alarm at its instant or, when
 * that has passed, at once. Resuming an active alarm changes nothing.
 */
export function resumeAlarm(state: AlarmState, now: number): AlarmState {
  const { alarm } = state;
  if (alarm.status === 'active') return state;
  if (alarm.status !== 'paused')
    throw new ReveilleError('conflict', `only a paused alarm can be resumed; this one is ${alarm.status}`);
  const owed = owedOnResume(state, now);
  const others = state.occurrences.filter((occurrence) => occurrence.source !== 'schedule');
  return {
    alarm: { ...alarm, status: owed ? 'active' : 'fired', updatedAt: now },
    occurrences: owed ? [...others, owed] : others,
  };
}

/** Fires now, beside the schedule, which goes on as if nothing had happened. */
export function triggerAlarm(state: AlarmState, now: number): { state: AlarmState; fireId: string } {
  const { alarm } = state;
  if (alarm.status !== 'active' && alarm.status !== 'paused') {
    const remedy = alarm.status === 'failed' ? 'redrive it instead' : 'set a new one';
    throw new ReveilleError('conflict', `this alarm is ${alarm.status} and cannot be triggered; ${remedy}`);
  }
  return ringNow(state, now);
}

/** Adds an occurrence that is due now, beside the schedule. */
function ringNow(state: AlarmState, now: number): { state: AlarmState; fireId: string } {
  const { alarm, occurrences } = state;
  const waiting = occurrences.filter(({ source, dueAt }) => source === 'trigger' && dueAt !== null);
  if (waiting.length >= MAX_WAITING_TRIGGERS)
    throw new ReveilleError(
      'rate_limited',
      `${MAX_WAITING_TRIGGERS} triggers of this alarm are waiting to be delivered`,
    );
  const taken = new Set(occurrences.map((occurrence) => occurrence.fireId));
  let at = now;
  while (taken.has(fireIdOf(alarm.id, at)) || isScheduledFor(alarm, at)) at++;
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
    leaseUntil: null,
    claimedAt: null,
    ...NOT_HELD,
  };
  return { state: { alarm, occurrences: [...occurrences, triggered] }, fireId };
}

/** How the turn of an alarm's latest fire stands, as its machine told it. */
export type LastTurn = 'none' | 'under_way' | 'waits' | 'ok' | 'failed';

const NOT_TO_REDRIVE: Readonly<Record<Exclude<LastTurn, 'failed'>, string>> = {
  none: 'only a failed alarm, or one whose last turn failed, can be redriven',
  ok: 'its last turn is done, so there is nothing to redrive',
  under_way: 'its last turn is still under way',
  waits: 'its last turn is tried again by itself',
};

/**
 * Re-arms a failed alarm: the same occurrence, by the same fire id, with a fresh retry ladder. Its owner wants it now,
 * however late, so a `max_lateness_seconds` that let it go is lifted.
 *
 * Of an alarm that was delivered, and whose turn failed, that occurrence has had its turn: it rings now, by a fire id of
 * its own. Redriving it again while that waits changes nothing.
 */
export function redriveAlarm(state: AlarmState, now: number, lastTurn: LastTurn = 'none'): AlarmState {
  const { alarm } = state;
  if (alarm.status !== 'failed') {
    if (alarm.status === 'cancelled' || lastTurn !== 'failed') {
      const why = alarm.status === 'cancelled' ? NOT_TO_REDRIVE.none : NOT_TO_REDRIVE[lastTurn as 'none'];
      throw new ReveilleError('conflict', `${why}; this one is ${alarm.status}`);
    }
    return state.occurrences.some(({ source }) => source === 'trigger') ? state : ringNow(state, now).state;
  }
  const parked = scheduledOccurrence(state);
  // A series fails only when its next occurrence could not be told, so it owes none: it starts again from now.
  const owed = parked ? { ...parked, dueAt: now, ...NOT_HELD } : nextOccurrence(alarm, now);
  if (!owed) throw new ReveilleError('conflict', 'the series of this alarm is over; set a new one');
  return {
    alarm: { ...alarm, status: 'active', failureCount: 0, maxLatenessSeconds: null, updatedAt: now },
    occurrences: [...state.occurrences.filter((occurrence) => occurrence !== parked), owed],
  };
}
