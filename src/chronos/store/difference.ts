/**
 * Computes a transition's changes and checks that they are allowed: the common part of `update`, `complete` and the
 * end of lost claims in every store. No I/O except for a log line.
 */
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Alarm, AlarmState, Attempt, Occurrence } from '../alarm/alarm.ts';
import type { Calendars } from '../alarm/holidays.ts';
import { settleInterrupted } from '../alarm/settlement.ts';
import { IDENTITY } from './columns.ts';
import type { ClaimKey } from './store.ts';

/** The rows to write to get from one state to the other. */
export type Difference = {
  /** The alarm's members with different values. */
  alarm: ReadonlySet<keyof Alarm>;
  added: readonly Occurrence[];
  changed: readonly Occurrence[];
  removed: readonly Occurrence[];
};

const CLAIM = ['fence', 'claimedAt'] as const satisfies (keyof Occurrence)[];

function differingMembers<T extends object>(one: T, other: T): (keyof T)[] {
  if (one === other) return [];
  return (Object.keys(one) as (keyof T)[]).filter((member) => one[member] !== other[member]);
}

function illegal(alarm: Alarm, what: string): ReveilleError {
  return new ReveilleError('internal', `a transition of alarm ${alarm.id} ${what}`, { retryable: false });
}

function checkOccurrences(before: AlarmState, after: AlarmState): void {
  const { alarm } = before;
  const earlier = new Map(before.occurrences.map((occurrence) => [occurrence.fireId, occurrence]));
  const seen = new Set<string>();
  let scheduled = 0;
  for (const occurrence of after.occurrences) {
    const { fireId } = occurrence;
    if (seen.has(fireId)) throw new ReveilleError('conflict', `the alarm already has a pending ${fireId}`);
    seen.add(fireId);
    if (occurrence.source === 'schedule' && ++scheduled > 1)
      throw illegal(alarm, 'left it with two occurrences of its own schedule');
    if (occurrence.owner !== alarm.owner || occurrence.alarmId !== alarm.id)
      throw illegal(alarm, `added ${fireId}, which belongs to another alarm`);
    const was = earlier.get(fireId);
    if (!was) {
      if (occurrence.claimedAt !== null) throw illegal(alarm, `added ${fireId} as claimed; only a claim may do that`);
      continue;
    }
    const touched = CLAIM.find((member) => was[member] !== occurrence[member]);
    if (touched) throw illegal(alarm, `changed ${touched} of ${fireId}; only claim and complete may change it`);
  }
}

/**
 * Checks that a transition changed only what it may.
 *
 * @param before the state it was given
 * @param after the state it returned
 * @throws ReveilleError `conflict` when an occurrence is pending twice; `internal` when it changed a member that a
 *   transition must not change
 */
export function checkTransition(before: AlarmState, after: AlarmState): void {
  const fixed = IDENTITY.find((member) => before.alarm[member] !== after.alarm[member]);
  if (fixed) throw illegal(before.alarm, `changed ${fixed}, which must not change`);
  // Another alarm may have its idempotency key by now.
  if (before.alarm.status === 'cancelled' && after.alarm.status !== 'cancelled')
    throw illegal(before.alarm, `took it back from cancelled to ${after.alarm.status}`);
  checkOccurrences(before, after);
}

/** The state without one occurrence's claim, as input of a settlement. */
export function withoutClaim(state: AlarmState, fireId: string): AlarmState {
  const occurrences = state.occurrences.map((occurrence) =>
    occurrence.fireId === fireId ? { ...occurrence, claimedAt: null } : occurrence,
  );
  return { alarm: state.alarm, occurrences };
}

/** Refuses an attempt of another alarm or owner than the one whose claim was proved. */
export function checkAttempt(key: ClaimKey, attempt: Attempt): void {
  if (attempt.owner === key.owner && attempt.alarmId === key.alarmId && attempt.fireId === key.fireId) return;
  const message = `a completion of ${key.fireId} carries an attempt at ${attempt.fireId}`;
  throw new ReveilleError('internal', message, { retryable: false });
}

/** Compares the stored state with the wanted one. */
export function differenceOf(stored: AlarmState, wanted: AlarmState): Difference {
  const kept = new Map(stored.occurrences.map((occurrence) => [occurrence.fireId, occurrence]));
  const came: Occurrence[] = [];
  const changed: Occurrence[] = [];
  for (const occurrence of wanted.occurrences) {
    const was = kept.get(occurrence.fireId);
    kept.delete(occurrence.fireId);
    if (!was) came.push(occurrence);
    else if (differingMembers(was, occurrence).length > 0) changed.push(occurrence);
  }
  const alarm = new Set(differingMembers(stored.alarm, wanted.alarm));
  return { alarm, added: came, changed, removed: [...kept.values()] };
}

/**
 * Settles an interruption. An alarm that cannot be settled must not block every claim: only its claim ends, and the log
 * reports it.
 *
 * @param given without the claim
 * @param endedAt as in `interruptedAttempt`
 */
export function interruptedState(
  given: AlarmState,
  fireId: string,
  endedAt: number,
  { log, calendars }: { readonly log: Logger; readonly calendars?: Calendars | undefined },
): AlarmState {
  try {
    const wanted = settleInterrupted(given, fireId, endedAt, calendars);
    checkTransition(given, wanted);
    return wanted;
  } catch (error) {
    log.error({ err: error, fire_id: fireId }, 'an interrupted attempt could not be settled; only its claim is ended');
    return given;
  }
}
