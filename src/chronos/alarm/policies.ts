/**
 * The policies of a series: which overdue occurrences fire (`catch_up`), and what happens to an occurrence while the turn
 * of an earlier fire runs (`overlap`). Pure. An alarm without policies costs one look at its options.
 */
import { formatInstant } from '../../wire/rfc3339.ts';
import type { TurnReport } from '../../wire/turn-report.ts';
import { type Alarm, type AlarmState, type Attempt, isClaimed, NOT_DEFERRED, type Occurrence } from './alarm.ts';
import { isBackfill, isOwnTrigger } from './backfill.ts';
import { isLook } from './events.ts';
import type { StoredTurnReport } from './fire-history.ts';
import { optionsOf } from './options.ts';
import { catchUp } from './series.ts';
import { pauseOnFailedTurn } from './settlement.ts';

/** How late an occurrence may be with `catch_up: "none"`, unless a window is given. */
export const DEFAULT_WINDOW_SECONDS = 60;

/** A turn counts as over this long after its machine's last report of it. */
export const LONGEST_TURN_MS = 3_600_000;
/** An accepted wake counts as a running turn for so long before its first report, if earlier turns were reported. */
export const UNREPORTED_MS = 120_000;
/** The same, as long as it is unknown whether the target reports turns. */
export const UNREPORTED_FIRST_MS = 5_000;

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
  return Math.max(...reports.map(({ recordedAt, retryAt }) => Math.max(recordedAt, retryAt ?? 0))) + LONGEST_TURN_MS;
}

/**
 * The turns of an alarm's earlier fires.
 *
 * @param attempts the latest attempts at the alarm
 * @param reports reports of the fires of these attempts
 * @param fireId the fire in question, which is not an earlier one
 */
export function turnsOf(
  attempts: readonly Attempt[],
  reports: readonly StoredTurnReport[],
  { fireId, now }: { fireId: string; now: number },
): AlarmTurns {
  // A wake whose answer was lost was accepted where its turn is reported.
  const reported = new Set(reports.map((report) => report.fireId));
  const accepted = attempts.filter(
    (attempt) => attempt.fireId !== fireId && (attempt.outcome === 'delivered' || reported.has(attempt.fireId)),
  );
  const firstMs = accepted.length === 1 ? UNREPORTED_FIRST_MS : 0;
  const silentMs = reports.length > 0 ? UNREPORTED_MS : firstMs;
  let turns = NO_TURNS;
  for (const attempt of accepted) {
    const until = endOf(
      attempt,
      reports.filter((report) => report.fireId === attempt.fireId),
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
  | { readonly action: 'wait'; readonly until: number; readonly reason: string };

const DELIVER: Verdict = { action: 'deliver' };

/** The text by which waiting occurrences are found; see {@link releaseWaiting}. */
const OVERLAP_MARK = ' (overlap: ';

/** The occurrence that takes the place of an overdue one. */
function replacementOf(alarm: Alarm, occurrence: Occurrence, now: number, turns: AlarmTurns): Occurrence | undefined {
  const { catch_up: policy = 'latest', catch_up_window_seconds: window, overlap = 'allow' } = optionsOf(alarm);
  const { running, endedAt } = turns;
  const fellDueDuringTurn = running !== undefined || occurrence.scheduledFor <= endedAt;
  if (fellDueDuringTurn && overlap === 'buffer_all') return undefined;
  if (policy !== 'all') return catchUp(alarm, occurrence, now);
  // At most one waits for a turn, or is skipped: the latest that fell due while the turn ran.
  if (fellDueDuringTurn && overlap !== 'allow') return catchUp(alarm, occurrence, running ? now : endedAt);
  return window === undefined ? undefined : catchUp(alarm, occurrence, now - window * 1000 - 1);
}

/** Why an occurrence is too late to fire. */
function missReason(alarm: Alarm, occurrence: Occurrence, now: number, turns: AlarmTurns): string | undefined {
  const { maxLatenessSeconds } = alarm;
  const { scheduledFor, heldReason, attempt, source } = occurrence;
  const latenessMs = now - scheduledFor;
  const due = `due ${formatInstant(scheduledFor)}, ${latenessMs} ms ago`;
  if (maxLatenessSeconds !== null && latenessMs > maxLatenessSeconds * 1000 && !isBackfill(alarm, occurrence)) {
    const deferral = heldReason === null ? '' : `; ${heldReason}`;
    return `could not start within max_lateness_seconds (${maxLatenessSeconds}): ${due}${deferral}`;
  }
  const { catch_up: policy = 'latest', catch_up_window_seconds } = optionsOf(alarm);
  const window = catch_up_window_seconds ?? (policy === 'none' ? DEFAULT_WINDOW_SECONDS : undefined);
  // An occurrence that was tried in time, that the router deferred, or that waited for a turn is not overdue.
  const waited = attempt > 1 || heldReason !== null || turns.running !== undefined || scheduledFor <= turns.endedAt;
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
export function verdictOf(alarm: Alarm, occurrence: Occurrence, now: number, turns = NO_TURNS): Verdict {
  if (occurrence.attempt === 1 && occurrence.source === 'schedule') {
    const by = replacementOf(alarm, occurrence, now, turns);
    if (by) return { action: 'replace', by };
  }
  const error = missReason(alarm, occurrence, now, turns);
  if (error !== undefined) return { action: 'miss', error };
  if (!turns.running) return DELIVER;
  const { overlap } = optionsOf(alarm);
  const { scheduledFor, until } = turns.running;
  const reason = `the turn of the fire due ${formatInstant(scheduledFor)} still runs${OVERLAP_MARK}${overlap})`;
  // A backfilled occurrence fires once in any case.
  if (overlap === 'skip' && occurrence.source === 'schedule') return { action: 'skip', error: reason };
  return { action: 'wait', until, reason };
}

/** Makes the occurrences due that wait for a turn, because one has ended. */
export function releaseWaiting(state: AlarmState, now: number): AlarmState {
  const waits = (one: Occurrence) => one.dueAt !== null && one.heldReason?.includes(OVERLAP_MARK) && !isClaimed(one);
  if (!state.occurrences.some(waits)) return state;
  const occurrences = state.occurrences.map((one) => (waits(one) ? { ...one, dueAt: now, ...NOT_DEFERRED } : one));
  return { alarm: state.alarm, occurrences };
}

/** Whether the end of a turn may change its alarm. */
export function regardsEndOfTurn(alarm: Pick<Alarm, 'options'>): boolean {
  const { overlap = 'allow', pause_on_failure = false } = optionsOf(alarm);
  return overlap !== 'allow' || pause_on_failure;
}

/** A turn has ended: what waits for it is due, unless the series pauses because the turn failed. */
export function afterTurn(state: AlarmState, { outcome, error }: TurnReport, now: number): AlarmState {
  const paused = outcome === 'failed' ? pauseOnFailedTurn(state, error, now) : state;
  return releaseWaiting(paused, now);
}
