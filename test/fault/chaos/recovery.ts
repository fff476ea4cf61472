/**
 * Recovery time of the installation, computed from the ledger: from the end of a fault until nothing is overdue, which
 * means that every due occurrence has a started attempt. Pure.
 */
import type { Attempt } from '../../../src/chronos/alarm/alarm.ts';
import { INTERRUPTED } from '../../../src/chronos/alarm/settlement.ts';
import type { DatabaseLog } from '../checker/history.ts';

/** Translates times of the store's clock into the machine's clock, which does not jump. */
export type StoreClock = {
  /** First moment, from a given one on, at which the clock shows this time or a later one. */
  whenReached(instant: number, since: number): number;
  /** Moment at which the clock showed this time. */
  whenShown(instant: number): number;
};

/** For a store that uses the machine's clock. */
export const MACHINE_CLOCK: StoreClock = { whenReached: (instant) => instant, whenShown: (instant) => instant };

/** An interval in which an occurrence was due without an attempt; the machine's clock, epoch milliseconds. */
export type Wait = { fireId: string; owner: string; attempt: number; from: number; until: number };

export type Ledger = Pick<DatabaseLog, 'alarms' | 'attempts' | 'occurrences' | 'readAt'>;

/** A shorter wait counts as waiting in the queue, not as a recovery. */
const NOTICEABLE_MS = 500;

/** Whether an attempt has no recorded outcome. */
const wasInterrupted = ({ outcome, error }: Attempt) => outcome === 'unknown' && error === INTERRUPTED;

/**
 * The waiting time of every occurrence. A first attempt is due when its occurrence is. An attempt after one without an
 * outcome is due since that one started. An attempt of the retry ladder is due when the ladder says, which the ledger
 * does not store: it counts as punctual.
 */
export function waitsOf({ alarms, attempts, occurrences, readAt }: Ledger, clock: StoreClock): Wait[] {
  const waits: Wait[] = [];
  const created = new Map(alarms.map(({ id, createdAt }) => [id, clock.whenShown(createdAt)]));
  for (const [alarmId, ofAlarm] of Map.groupBy(attempts, (attempt) => attempt.alarmId)) {
    let since = created.get(alarmId) ?? 0;
    let before: Attempt | undefined;
    const inTime = ofAlarm
      .map((attempt) => ({ attempt, until: clock.whenShown(attempt.startedAt) }))
      .sort((one, other) => one.until - other.until);
    for (const { attempt, until } of inTime) {
      const from =
        attempt.attempt === 1
          ? clock.whenReached(attempt.scheduledFor, since)
          : before && wasInterrupted(before)
            ? clock.whenShown(before.startedAt)
            : until;
      waits.push({ fireId: attempt.fireId, owner: attempt.owner, attempt: attempt.attempt, from, until });
      since = until;
      before = attempt;
    }
  }
  const end = clock.whenShown(readAt);
  for (const { fireId, alarmId, owner, dueAt, claimedAt, attempt } of occurrences) {
    if (dueAt === null || claimedAt !== null || dueAt > readAt) continue;
    const from = clock.whenReached(dueAt, created.get(alarmId) ?? 0);
    waits.push({ fireId, owner, attempt: attempt + 1, from: Math.min(from, end), until: end });
  }
  return waits;
}

/**
 * Milliseconds from the end of a fault until nothing is overdue; backlog that grows during the recovery is included.
 *
 * @param next when the next fault began: later due times belong to that one
 */
export function recoveryMs(waits: readonly Wait[], since: number, next = Number.POSITIVE_INFINITY): number {
  let recoveredAt = since;
  const overdue = waits.filter(({ from, until }) => from < next && until - from >= NOTICEABLE_MS);
  for (const { from, until } of overdue.sort((one, other) => one.from - other.from)) {
    if (from > recoveredAt) break;
    recoveredAt = Math.max(recoveredAt, until);
  }
  return recoveredAt - since;
}
