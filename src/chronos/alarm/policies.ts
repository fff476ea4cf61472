/**
 * The policies of a series: which overdue occurrences fire (`catch_up`), and what happens to an occurrence while the turn
 * of an earlier fire runs (`overlap`). Pure. An alarm without policies costs one look at its options.
 */
import { formatInstant } from '../../wire/rfc3339.ts';
import type { TurnReport } from '../../wire/turn-report.ts';
import {
  type Alarm,
  type AlarmState,
  type Attempt,
  isClaimed,
  NOT_DEFERRED,
  type Occurrence,
  TURN_RUNS,
  waitsForTurn,
} from './alarm.ts';
import { isBackfill, isOwnTrigger } from './backfill.ts';
import { isLook } from './events.ts';
import type { StoredTurnReport } from './fire-history.ts';
import { type Calendars, NO_CALENDARS } from './holidays.ts';
import { optionsOf } from './options.ts';
import { catchUp } from './series.ts';
import { pauseOnFailedTurn } from './settlement.ts';

/** How late an occurrence may be with `catch_up: "none"`, unless a window is given. */
export const DEFAULT_WINDOW_SECONDS = 60;

/** A turn counts as over this long after its machine's last report of it. */
export const LONGEST_TURN_MS = 3_600_000;
/** A turn that is to be tried again counts as over this long after the report that says so, whatever time it gives. */
export const LONGEST_RETRY_MS = 24 * 3_600_000;
/** An accepted wake counts as a running turn for so long before its first report, if earlier turns were reported. */
export const UNREPORTED_MS = 120_000;
/** The same, as long as it is unknown whether the target reports turns. */
export const UNREPORTED_FIRST_MS = 5_000;

/** An occurrence waits so long at a time while another one of its alarm is in delivery. */
const IN_DELIVERY_MS = 5_000;

/** Attempts that are read to find running turns. */
export const TURNS_READ = 50;

/** The turns of an alarm's fires at an instant. */
export type AlarmTurns = {
  /** The turn that runs longest, and when it counts as over unless it is reported again. */
  readonly running: { readonly fireId: string; readonly scheduledFor: number; readonly until: number } | undefined;
  /** The end of the latest turn that has ended; `-Infinity` without one. */
  readonly endedAt: number;
};

const NO_TURNS: AlarmTurns = { running: undefined, endedAt: Number.NEGATIVE_INFINITY };

/** When a turn was over, or counts as over. */
function endOf(accepted: Attempt, reports: readonly StoredTurnReport[], silentMs: number): number {
  const finished = reports.find(({ stage }) => stage === 'turn_finished');
  if (finished) return finished.recordedAt;
  if (reports.length === 0) return accepted.finishedAt + silentMs;
  const lastSignOf = ({ recordedAt, retryAt }: StoredTurnReport) =>
    Math.max(recordedAt, Math.min(retryAt ?? 0, recordedAt + LONGEST_RETRY_MS));
  return Math.max(...reports.map(lastSignOf)) + LONGEST_TURN_MS;
}

/** Whether an attempt may have begun a turn. Where many occurrences are skipped, the others are far behind. */
export function mayHaveTurn({ outcome }: Attempt): boolean {
  return outcome !== 'skipped' && outcome !== 'missed';
}

/**
 * The occurrences of an alarm whose wakes another claim delivers, perhaps in another process. Of two claims, the later
 * one sees the earlier.
 *
 * @param claimedAt of the claim in question; `Infinity` when it has ended
 */
export function inDelivery(
  occurrences: readonly Occurrence[],
  { fireId, claimedAt }: { fireId: string; claimedAt: number },
): Occurrence[] {
  return occurrences.filter((one) => {
    if (one.claimedAt === null || one.fireId === fireId) return false;
    return one.claimedAt < claimedAt || (one.claimedAt === claimedAt && one.fireId < fireId);
  });
}

/**
 * The turns of an alarm's earlier fires.
 *
 * @param attempts the latest attempts at the alarm
 * @param reports reports of the fires of these attempts
 * @param about.fireId the fire in question, which is not an earlier one
 * @param about.others fires in delivery: a turn may begin at any moment
 */
export function turnsOf(
  attempts: readonly Attempt[],
  reports: readonly StoredTurnReport[],
  { fireId, now, others = [] }: { fireId: string; now: number; others?: readonly Occurrence[] },
): AlarmTurns {
  // After the clock was set back, entries of a distant future would keep a turn running until then.
  const isCredible = (instant: number) => instant <= now + LONGEST_TURN_MS;
  // A wake whose answer was lost was accepted where its turn is reported.
  const reported = new Set(reports.map((report) => report.fireId));
  const accepted = attempts.filter(
    (attempt) =>
      attempt.fireId !== fireId &&
      isCredible(attempt.finishedAt) &&
      (attempt.outcome === 'delivered' || reported.has(attempt.fireId)),
  );
  const firstMs = accepted.length === 1 ? UNREPORTED_FIRST_MS : 0;
  const silentMs = reports.length > 0 ? UNREPORTED_MS : firstMs;
  const [other] = others;
  const delivered = other && { fireId: other.fireId, scheduledFor: other.scheduledFor, until: now + IN_DELIVERY_MS };
  let turns: AlarmTurns = { ...NO_TURNS, running: delivered };
  for (const attempt of accepted) {
    const until = endOf(
      attempt,
      reports.filter((report) => report.fireId === attempt.fireId && isCredible(report.recordedAt)),
      silentMs,
    );
    if (until <= now) turns = { ...turns, endedAt: Math.max(turns.endedAt, until) };
    else if (until > (turns.running?.until ?? 0))
      turns = { ...turns, running: { fireId: attempt.fireId, scheduledFor: attempt.scheduledFor, until } };
  }
  return turns;
}

/** Whether the turns of earlier fires matter to an occurrence. A trigger fires whenever its owner requested it. */
export function regardsTurns(alarm: Alarm, occurrence: Occurrence): boolean {
  const { overlap = 'allow' } = optionsOf(alarm);
  return (
    overlap !== 'allow' &&
    (occurrence.source === 'schedule' || isOwnTrigger(alarm, occurrence)) &&
    !isLook(alarm, occurrence)
  );
}

/** What to do with a claimed occurrence. */
export type Verdict =
  | { readonly action: 'deliver' }
  /** A later occurrence takes its place, and counts it as missed. */
  | { readonly action: 'replace'; readonly by: Occurrence }
  | { readonly action: 'miss' | 'skip'; readonly error: string }
  | { readonly action: 'wait'; readonly until: number };

const DELIVER: Verdict = { action: 'deliver' };

/** The occurrence that takes the place of an overdue one. */
function replacementOf(
  alarm: Alarm,
  occurrence: Occurrence,
  now: number,
  { turns, calendars }: { turns: AlarmTurns; calendars: Calendars },
): Occurrence | undefined {
  const { catch_up: policy = 'latest', catch_up_window_seconds: window, overlap = 'allow' } = optionsOf(alarm);
  const { running, endedAt } = turns;
  const fellDueDuringTurn = running !== undefined || occurrence.scheduledFor <= endedAt;
  if (fellDueDuringTurn && overlap === 'buffer_all') return undefined;
  if (policy !== 'all') return catchUp(alarm, occurrence, now, calendars);
  // At most one waits for a turn, or is skipped: the latest that fell due while the turn ran.
  if (fellDueDuringTurn && overlap !== 'allow') return catchUp(alarm, occurrence, running ? now : endedAt, calendars);
  return window === undefined ? undefined : catchUp(alarm, occurrence, now - window * 1000 - 1, calendars);
}

/** Why an occurrence is too late to fire. */
function missReason(alarm: Alarm, occurrence: Occurrence, now: number, turns: AlarmTurns): string | undefined {
  const { maxLatenessSeconds } = alarm;
  const { scheduledFor, heldReason, heldUntil, attempt, source } = occurrence;
  const latenessMs = now - scheduledFor;
  const due = `due ${formatInstant(scheduledFor)}, ${latenessMs} ms ago`;
  if (maxLatenessSeconds !== null && latenessMs > maxLatenessSeconds * 1000 && !isBackfill(alarm, occurrence)) {
    const deferral = heldUntil === null ? '' : `; ${heldReason ?? TURN_RUNS}`;
    return `could not start within max_lateness_seconds (${maxLatenessSeconds}): ${due}${deferral}`;
  }
  const { catch_up: policy = 'latest', catch_up_window_seconds } = optionsOf(alarm);
  const window = catch_up_window_seconds ?? (policy === 'none' ? DEFAULT_WINDOW_SECONDS : undefined);
  // An occurrence that was tried in time, that the router deferred, or that waited for a turn is not overdue.
  const waited = attempt > 1 || heldUntil !== null || turns.running !== undefined || scheduledFor <= turns.endedAt;
  if (window === undefined || waited || source !== 'schedule' || latenessMs <= window * 1000) return undefined;
  const limit = catch_up_window_seconds === undefined ? `${window} s` : `catch_up_window_seconds: ${window}`;
  return `overdue by more than its catch-up window (catch_up: ${policy}, ${limit}): ${due}`;
}

/**
 * What the policies of an alarm say about a claimed occurrence, the current attempt counted in. In this order:
 *
 * 1. A later occurrence replaces it (`catch_up`).
 * 2. It is missed: later than `max_lateness_seconds`, or at its first attempt later than the catch-up window. Each of the
 *    two limits is enough.
 * 3. It is skipped, or waits, because the turn of an earlier fire runs (`overlap`).
 *
 * @param turns the turns of earlier fires; omitted where {@link regardsTurns} is false
 */
export function verdictOf(
  alarm: Alarm,
  occurrence: Occurrence,
  now: number,
  {
    turns = NO_TURNS,
    calendars = NO_CALENDARS,
  }: { turns?: AlarmTurns | undefined; calendars?: Calendars | undefined } = {},
): Verdict {
  if (occurrence.attempt === 1 && occurrence.source === 'schedule') {
    const by = replacementOf(alarm, occurrence, now, { turns, calendars });
    if (by) return { action: 'replace', by };
  }
  const error = missReason(alarm, occurrence, now, turns);
  if (error !== undefined) return { action: 'miss', error };
  if (!turns.running) return DELIVER;
  const { overlap } = optionsOf(alarm);
  const { scheduledFor, until } = turns.running;
  // A backfilled occurrence fires once in any case.
  if (overlap !== 'skip' || occurrence.source !== 'schedule') return { action: 'wait', until };
  return {
    action: 'skip',
    error: `the turn of the fire due ${formatInstant(scheduledFor)} still runs (overlap: skip)`,
  };
}

/** Makes the occurrences due that wait for a turn, because one has ended. */
export function releaseWaiting(state: AlarmState, now: number): AlarmState {
  const waits = (one: Occurrence) => one.dueAt !== null && waitsForTurn(one) && !isClaimed(one);
  if (!state.occurrences.some(waits)) return state;
  const occurrences = state.occurrences.map((one) => (waits(one) ? { ...one, dueAt: now, ...NOT_DEFERRED } : one));
  return { alarm: state.alarm, occurrences };
}

/** Whether the end of a turn may change its alarm. */
export function regardsEndOfTurn(alarm: Pick<Alarm, 'options'>): boolean {
  const { overlap = 'allow', pause_on_failure = false } = optionsOf(alarm);
  return overlap !== 'allow' || pause_on_failure;
}

/**
 * A turn has ended: what waits for it is due, unless the series pauses because the turn failed. Of a report that was
 * recorded before, the effect may be missing: the process may have stopped in between.
 *
 * @param recordedAt when it was recorded before; an alarm that was changed since keeps its status
 */
export function afterTurn(
  state: AlarmState,
  { outcome, error }: TurnReport,
  now: number,
  recordedAt = Number.POSITIVE_INFINITY,
): AlarmState {
  const pauses = outcome === 'failed' && state.alarm.updatedAt <= recordedAt;
  return releaseWaiting(pauses ? pauseOnFailedTurn(state, error, now) : state, now);
}
