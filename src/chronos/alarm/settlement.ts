/**
 * Applies an attempt's outcome to its alarm. Pure; runs inside the store's transaction on the current state. The alarm
 * may have been edited, paused or cancelled during the attempt.
 */

import { backoff } from '../../kit/clock/backoff.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Alarm, type AlarmState, type Attempt, NOT_DEFERRED, type Occurrence, withoutSchedule } from './alarm.ts';
import { afterTrigger, isOwnTrigger } from './backfill.ts';
import { followersOf } from './chain.ts';
import { afterCheckedWake, afterSkip, type Checked } from './checks.ts';
import { afterEventFire, isEventFire, isLastWake, isLook } from './events.ts';
import { type Calendars, NO_CALENDARS } from './holidays.ts';
import { park } from './lifecycle.ts';
import { optionsOf } from './options.ts';
import { nextOccurrence } from './series.ts';

// Retry delays (docs/reference/api.md, "chronosd: alarms").

export const LONGEST_DELAY_MS = 15 * 60_000;
const delayAfter = backoff({ first: 30_000, longest: LONGEST_DELAY_MS });
/** A computed delay is shortened by up to this share, so that no wait exceeds `min(30 s · 2ⁿ, 15 min)`. */
const JITTER_SHARE = 0.1;
/** Minimum delay for a receiver that requests none. Without it all attempts would be used up in seconds. */
const SHORTEST_DELAY_MS = 1_000;

/**
 * How long to wait after a failed attempt: the receiver's `Retry-After`, limited to 1 second to 15 minutes. Without it,
 * the wait is `min(30 s · 2ⁿ, 15 min)`, shortened by up to 10 % so that alarms that failed together are not retried
 * together. A requested wait is never shortened.
 *
 * @param failure n, zero-based: 0 after the first failure of an occurrence
 * @param options.random uniform in [0, 1)
 * @param options.retryAfterSeconds the receiver's `Retry-After`, when it sent one; ignored when negative or not a
 *   number
 * @returns whole milliseconds, 1 000 to 900 000
 */
export function retryDelayMs(
  failure: number,
  options: { random: number; retryAfterSeconds?: number | undefined },
): number {
  const { random, retryAfterSeconds } = options;
  if (retryAfterSeconds !== undefined && retryAfterSeconds >= 0) {
    return Math.min(Math.max(Math.ceil(retryAfterSeconds * 1000), SHORTEST_DELAY_MS), LONGEST_DELAY_MS);
  }
  return Math.round(delayAfter(failure + 1) * (1 - JITTER_SHARE * random));
}

/** The ledger's error for an attempt without a recorded outcome. */
export const INTERRUPTED =
  'the process that made this attempt stopped before it could record the outcome; the wake may or may not have arrived';

function occurrenceOf(state: AlarmState, fireId: string): { settled: Occurrence; others: Occurrence[] } {
  const settled = state.occurrences.find((occurrence) => occurrence.fireId === fireId);
  if (!settled) throw new Error(`the store settled ${fireId} without passing it to the transition`);
  return { settled, others: state.occurrences.filter((occurrence) => occurrence !== settled) };
}

function followingOccurrence(
  alarm: Alarm,
  nominal: number,
  calendars: Calendars,
): Occurrence | ReveilleError | undefined {
  try {
    return nextOccurrence(alarm, nominal, calendars);
  } catch (error) {
    if (error instanceof ReveilleError) return error;
    throw error;
  }
}

/** Records when an alarm became final: its retention counts from then. */
function ended(before: AlarmState, after: AlarmState, at: number | undefined): AlarmState {
  const { alarm } = after;
  const ends = (alarm.status === 'fired' || alarm.status === 'failed') && alarm.status !== before.alarm.status;
  if (!ends || at === undefined) return after;
  return { ...after, alarm: { ...alarm, updatedAt: Math.max(alarm.updatedAt, at) } };
}

function isPending(occurrences: readonly Occurrence[], { fireId }: Occurrence): boolean {
  return occurrences.some((occurrence) => occurrence.fireId === fireId);
}

/** The state after an occurrence beside the schedule has ended; `at` is when, and `isWoken` whether it was delivered. */
function afterBeside(
  alarm: Alarm,
  settled: Occurrence,
  others: Occurrence[],
  calendars: Calendars,
  end: { at: number; isWoken: boolean },
): AlarmState {
  if (isEventFire(alarm, settled)) return afterEventFire(alarm, settled, others, end);
  return afterTrigger(alarm, settled, others, calendars);
}

/** Advances a series past a settled occurrence, or ends it. */
function advance(
  { alarm }: AlarmState,
  settled: Occurrence,
  others: Occurrence[],
  calendars: Calendars,
  { at = settled.nominal, isWoken = false }: { at?: number | undefined; isWoken?: boolean } = {},
): AlarmState {
  if (settled.source === 'trigger') return afterBeside(alarm, settled, others, calendars, { at, isWoken });
  if (alarm.status === 'cancelled') return { alarm, occurrences: others };
  if (alarm.kind === 'once') return { alarm: { ...alarm, status: 'fired' }, occurrences: others };
  if (alarm.kind === 'event') return afterEventFire(alarm, settled, others, { at, isWoken });
  let next = followingOccurrence(alarm, settled.nominal, calendars);
  // A trigger is already pending for this instant: it fires, and the series advances past it.
  while (next && !(next instanceof ReveilleError) && isPending(others, next)) {
    next = followingOccurrence(alarm, next.nominal, calendars);
  }
  // A zone or expression can become invalid when time zone data change: the alarm fails visibly instead of stopping
  // silently.
  if (next instanceof ReveilleError)
    return { alarm: { ...alarm, status: 'failed', lastError: next.message }, occurrences: others };
  if (!next) return { alarm: { ...alarm, status: 'fired' }, occurrences: others };
  return { alarm, occurrences: [...others, alarm.status === 'paused' ? park(next) : next] };
}

/**
 * The wake was accepted: a `once` alarm has fired, a series continues.
 *
 * @param checked the check that let it through
 */
export function settleDelivered(
  state: AlarmState,
  fireId: string,
  deliveredAt: number,
  calendars = NO_CALENDARS,
  checked?: Checked,
): AlarmState {
  return ended(state, delivered(state, fireId, deliveredAt, { calendars, checked }), deliveredAt);
}

function delivered(
  state: AlarmState,
  fireId: string,
  deliveredAt: number,
  { calendars, checked }: { calendars: Calendars; checked: Checked | undefined },
): AlarmState {
  const { settled, others } = occurrenceOf(state, fireId);
  const woken = afterCheckedWake(state.alarm, deliveredAt, checked);
  const alarm = { ...woken, fireCount: woken.fireCount + 1, lastFiredAt: deliveredAt };
  const end = { at: deliveredAt, isWoken: true };
  if (settled.source === 'trigger') return afterBeside(alarm, settled, others, calendars, end);
  const scheduledFires = alarm.scheduledFires + 1;
  const after = { ...alarm, scheduledFires, failureCount: 0, lastError: null };
  return advance({ ...state, alarm: after }, settled, others, calendars, end);
}

/** Members of an alarm that a delivery may change. */
export type Progress = Pick<
  Alarm,
  'status' | 'failureCount' | 'lastError' | 'updatedAt' | 'lastFiredAt' | 'fireCount' | 'scheduledFires'
>;

/**
 * What a delivery changes where the delivered occurrence is the only pending one: the alarm's progress, and the
 * occurrence that takes its place, `null` where the alarm has ended.
 */
export type DeliveryEffect = { readonly progress: Progress; readonly next: Occurrence | null };

/**
 * The effect of {@link settleDelivered} on an alarm with this occurrence alone, which a store can write without reading
 * and comparing a state.
 *
 * @param claimed the occurrence as it was claimed
 * @returns `undefined` for a trigger, and where the effect is not progress alone
 */
export function deliveryEffect(
  alarm: Alarm,
  claimed: Occurrence,
  deliveredAt: number,
  calendars = NO_CALENDARS,
): DeliveryEffect | undefined {
  // An event alarm remembers its events, and a checked one its value, beside its progress.
  const isPlain = alarm.options === null || (alarm.kind !== 'event' && optionsOf(alarm).check === undefined);
  if (claimed.source === 'trigger' || alarm.status !== 'active' || !isPlain) return undefined;
  const after = settleDelivered({ alarm, occurrences: [claimed] }, claimed.fireId, deliveredAt, calendars);
  const [next = null] = after.occurrences;
  const { status, failureCount, lastError, updatedAt, lastFiredAt, fireCount, scheduledFires } = after.alarm;
  return {
    progress: { status, failureCount, lastError, updatedAt, lastFiredAt, fireCount, scheduledFires },
    next,
  };
}

/** An attempt that was not accepted. */
export type Failure = {
  error: string;
  /** When it failed; also the end of an alarm that this failure ends. */
  at?: number;
  /** No further attempt can help. */
  final: boolean;
  /** When to try again, for the failure with this zero-based number. */
  retryAt: (failure: number) => number;
};

/** The wake was not accepted, or its outcome is unknown: schedules a retry, or gives up after the last one. */
export function settleFailed(
  state: AlarmState,
  fireId: string,
  failure: Failure,
  calendars = NO_CALENDARS,
): AlarmState {
  return ended(state, failed(state, fireId, failure, calendars), failure.at);
}

/** Whether a failure of this attempt ends the occurrence. @param occurrence as it was claimed */
export function isGivenUp(alarm: Alarm, { source, attempt }: Occurrence, isFinal: boolean): boolean {
  return isFinal || (source === 'trigger' ? attempt : alarm.failureCount + 1) >= alarm.maxFailures;
}

/** Pauses a series that is to be paused on failure: an occurrence was given up, or a turn failed. */
function pausedOnFailure(alarm: Alarm, error: string, at: number | undefined): Alarm {
  if (alarm.status !== 'active' || optionsOf(alarm).pause_on_failure !== true) return alarm;
  const lastError = `paused on failure, continue with resume: ${error}`;
  return { ...alarm, status: 'paused', lastError, updatedAt: Math.max(alarm.updatedAt, at ?? alarm.updatedAt) };
}

/** The only or last wake of an alarm was given up or missed: the alarm has failed, and can be redriven. */
function failedWithLast(alarm: Alarm, settled: Occurrence, others: Occurrence[]): AlarmState | undefined {
  const isOpen = alarm.status === 'active' || alarm.status === 'paused';
  const isLast =
    settled.source === 'schedule' && alarm.kind === 'once'
      ? alarm.status !== 'cancelled'
      : isOpen && isLastWake(alarm, settled);
  return isLast
    ? { alarm: { ...alarm, status: 'failed' }, occurrences: [...withoutSchedule(others), park(settled)] }
    : undefined;
}

/** Parks what the schedule of a paused series has waiting. */
function parkSchedule({ alarm, occurrences }: AlarmState): AlarmState {
  if (alarm.status !== 'paused') return { alarm, occurrences };
  const ofSchedule = (one: Occurrence) => one.source === 'schedule' || isOwnTrigger(alarm, one);
  return { alarm, occurrences: occurrences.map((one) => (ofSchedule(one) ? park(one) : one)) };
}

function failed(state: AlarmState, fireId: string, failure: Failure, calendars: Calendars): AlarmState {
  const { settled, others } = occurrenceOf(state, fireId);
  const alarm = { ...state.alarm, lastError: failure.error };
  if (alarm.status === 'cancelled') return { alarm, occurrences: others };
  const parked = settled.dueAt === null;
  const givenUp = () => pausedOnFailure(alarm, failure.error, failure.at);

  if (settled.source === 'trigger') {
    // A parked trigger belongs to a schedule that was replaced, unless it is one of a paused alarm's own. Other triggers
    // count their own attempts.
    if (parked && !isOwnTrigger(alarm, settled)) return { alarm, occurrences: others };
    if (isGivenUp(alarm, settled, failure.final)) {
      const after = failedWithLast(alarm, settled, others);
      return (
        after ?? parkSchedule(advance({ ...state, alarm: givenUp() }, settled, others, calendars, { at: failure.at }))
      );
    }
    const dueAt = parked ? null : failure.retryAt(settled.attempt - 1);
    return { alarm, occurrences: [...others, { ...settled, dueAt, ...NOT_DEFERRED }] };
  }

  const failures = alarm.failureCount + 1;
  if (!isGivenUp(alarm, settled, failure.final)) {
    const dueAt = parked ? null : failure.retryAt(failures - 1);
    return {
      alarm: { ...alarm, failureCount: failures },
      occurrences: [...others, { ...settled, dueAt, ...NOT_DEFERRED }],
    };
  }
  const after = failedWithLast({ ...alarm, failureCount: failures }, settled, others);
  if (after) return after;
  const series = { ...state, alarm: { ...givenUp(), failureCount: 0 } };
  return parkSchedule(advance(series, settled, others, calendars, { at: failure.at }));
}

/**
 * The turn of a fire has failed, according to its machine: a series that is to be paused on failure is paused.
 *
 * @param error why it failed; `null` when that is unknown
 */
export function pauseOnFailedTurn(state: AlarmState, error: string | null, now: number): AlarmState {
  const alarm = pausedOnFailure(state.alarm, `the turn failed${error === null ? '' : `: ${error}`}`, now);
  return alarm === state.alarm ? state : parkSchedule({ alarm, occurrences: state.occurrences });
}

/** What is held by this reason was tried for the last time by a process that is gone. */
const NOTICE_DUE = 'it is given up once the alarms that follow it know that';

export const endsAfterNotice = ({ heldReason }: Occurrence): boolean => heldReason === NOTICE_DUE;

/**
 * The process of a claim is gone without an outcome, so it is unknown whether the wake arrived. It counts as a failure,
 * so that a wake that crashes its process is not repeated for ever. The retry is immediate, because the occurrence has
 * waited since the claim.
 */
export function settleInterrupted(
  state: AlarmState,
  fireId: string,
  at?: number,
  calendars = NO_CALENDARS,
): AlarmState {
  const { settled, others } = occurrenceOf(state, fireId);
  // A look is repeated: it is not a wake.
  if (isLook(state.alarm, settled)) return { ...state, occurrences: [...others, { ...settled, attempt: 0 }] };
  const when = at === undefined ? {} : { at };
  const { alarm } = state;
  if (settled.dueAt !== null && followersOf(alarm).length > 0 && isGivenUp(alarm, settled, false)) {
    const held = { ...settled, heldReason: NOTICE_DUE, heldUntil: settled.dueAt };
    return { alarm: { ...alarm, lastError: INTERRUPTED }, occurrences: [...others, held] };
  }
  const failure = { error: INTERRUPTED, ...when, final: false, retryAt: () => settled.dueAt! };
  return settleFailed(state, fireId, failure, calendars);
}

/** The outcome of an attempt cannot be applied because of a defect: the occurrence is tried again later. */
export function settlePostponed(state: AlarmState, fireId: string, dueAt: number): AlarmState {
  const isPostponed = (occurrence: Occurrence) => occurrence.fireId === fireId && occurrence.dueAt !== null;
  const occurrences = state.occurrences.map((one) => (isPostponed(one) ? { ...one, dueAt } : one));
  return { alarm: state.alarm, occurrences };
}

/** The occurrence could not start within `max_lateness_seconds`: it is missed. */
export function settleMissed(
  state: AlarmState,
  fireId: string,
  reason: string,
  at?: number,
  calendars = NO_CALENDARS,
): AlarmState {
  return ended(state, missed(state, fireId, reason, at, calendars), at);
}

function missed(
  state: AlarmState,
  fireId: string,
  reason: string,
  at: number | undefined,
  calendars: Calendars,
): AlarmState {
  const { settled, others } = occurrenceOf(state, fireId);
  const alarm = { ...state.alarm, lastError: reason };
  const last = failedWithLast(alarm, settled, others);
  if (last) return last;
  const series = settled.source === 'trigger' ? alarm : { ...alarm, failureCount: 0 };
  return advance({ ...state, alarm: series }, settled, others, calendars, { at });
}

/**
 * The occurrence is dropped, and the alarm goes on: the turn of an earlier fire runs (`overlap: "skip"`), or its check
 * said no.
 *
 * @param checked the check that said no
 */
export function settleSkipped(
  state: AlarmState,
  fireId: string,
  at: number,
  calendars = NO_CALENDARS,
  checked?: Checked,
): AlarmState {
  const { settled, others } = occurrenceOf(state, fireId);
  const alarm = checked ? afterSkip(state.alarm, checked) : state.alarm;
  return ended(state, advance({ ...state, alarm }, settled, others, calendars, { at }), at);
}

/**
 * A wake may not start before `until`. The dispatcher tries it again at `dueAt`, because the router may decide otherwise
 * then. The reason is the router's; `null` for a wait for the turn of an earlier fire.
 */
type RequestedDeferral = { until: number; dueAt: number; reason: string | null };

/**
 * The wake is deferred. It is no attempt: the ledger has no entry and no failure is counted. The attempt number
 * of the claim is given back, so that the numbers have no gaps.
 */
export function settleDeferred(state: AlarmState, fireId: string, deferral: RequestedDeferral): AlarmState {
  const { settled, others } = occurrenceOf(state, fireId);
  const { alarm } = state;
  const parked = settled.dueAt === null;
  // The occurrence is obsolete: the alarm was cancelled, or its schedule was replaced, during the request to the
  // router.
  const isReplaced = parked && settled.source === 'trigger' && !isOwnTrigger(alarm, settled);
  if (alarm.status === 'cancelled' || isReplaced) return { alarm, occurrences: others };
  const attempt = Math.max(0, settled.attempt - 1);
  if (parked) return { alarm, occurrences: [...others, { ...settled, attempt, ...NOT_DEFERRED }] };
  const { until: heldUntil, dueAt, reason: heldReason } = deferral;
  return { alarm, occurrences: [...others, { ...settled, attempt, dueAt, heldReason, heldUntil }] };
}

/** A later occurrence of the series replaces one that became stale during downtime. */
export function settleReplaced(state: AlarmState, fireId: string, replacement: Occurrence): AlarmState {
  const { settled, others } = occurrenceOf(state, fireId);
  // After a cancellation or an edit the occurrence is obsolete. After a pause it stays parked, as if it had not been
  // claimed.
  if (state.alarm.status === 'cancelled' || settled.source === 'trigger')
    return { alarm: state.alarm, occurrences: others };
  if (settled.dueAt === null) return { alarm: state.alarm, occurrences: [...others, { ...settled, attempt: 0 }] };
  return { alarm: state.alarm, occurrences: [...others, replacement] };
}

/**
 * The attempt of a claim without an outcome.
 *
 * @param endedAt when its process counts as gone, or when its owner removed the occurrence
 */
export function interruptedAttempt(claimed: Occurrence, endedAt: number): Attempt {
  return {
    fireId: claimed.fireId,
    alarmId: claimed.alarmId,
    owner: claimed.owner,
    scheduledFor: claimed.scheduledFor,
    attempt: claimed.attempt,
    startedAt: claimed.claimedAt!,
    // The clock may have been set back since the claim.
    finishedAt: Math.max(claimed.claimedAt!, endedAt),
    outcome: 'unknown',
    httpStatus: null,
    error: INTERRUPTED,
    missedCount: claimed.missedCount,
    machineReadyMs: null,
    lateBecause: null,
    cause: claimed.cause,
  };
}
