/**
 * How long the house took to recover, read off the ledger: from the end of a fault until nothing is overdue any more,
 * which is to say that an attempt has begun at everything that was owed. Pure.
 */
import type { Attempt } from '../../../src/chronos/alarm/alarm.ts';
import { INTERRUPTED } from '../../../src/chronos/alarm/settlement.ts';
import type { DatabaseLog } from '../checker/history.ts';

/** Translates instants of the store's clock into the machine's, which does not jump. */
export type StoreClock = {
  /** When, from a moment on, it first showed this instant or a later one. */
  whenReached(instant: number, since: number): number;
  /** When it showed this instant, which it did. */
  whenShown(instant: number): number;
};

/** For a store that goes by the machine's clock. */
export const MACHINE_CLOCK: StoreClock = { whenReached: (instant) => instant, whenShown: (instant) => instant };

/** A time in which something was owed and nobody had begun with it; the machine's clock, epoch milliseconds. */
export type Wait = { fireId: string; owner: string; attempt: number; from: number; until: number };

export type Ledger = Pick<DatabaseLog, 'alarms' | 'attempts' | 'occurrences' | 'readAt'>;

/** What waits for less than this waits for its turn and not for a recovery. */
const NOTICEABLE_MS = 500;

/** Says that an attempt was made by somebody who was not heard of again. */
const wasInterrupted = ({ outcome, error }: Attempt) => outcome === 'unknown' && error === INTERRUPTED;

/**
 * How long everything waited. A first attempt is owed since its occurrence was due; one that follows an attempt that
 * was never heard of again, since that one began. What waits on the retry ladder is owed when the ladder says, which
 * the ledger does not keep: it is taken to be in time.
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
  for (const { fireId, alarmId, owner, dueAt, leaseUntil, attempt } of occurrences) {
    if (dueAt === null || leaseUntil !== null || dueAt > readAt) continue;
    const from = clock.whenReached(dueAt, created.get(alarmId) ?? 0);
    waits.push({ fireId, owner, attempt: attempt + 1, from: Math.min(from, end), until: end });
  }
  return waits;
}

/**
 * Milliseconds from the end of a fault until nothing was overdue; backlog that grew while the older one was worked off
 * counts with it.
 *
 * @param next when the next fault began: what became due from then on is that one's
 */
export function recoveryMs(waits: readonly Wait[], since: number, next = Number.POSITIVE_INFINITY): number {
  let over = since;
  const overdue = waits.filter(({ from, until }) => from < next && until - from >= NOTICEABLE_MS);
  for (const { from, until } of overdue.sort((one, other) => one.from - other.from)) {
    if (from > over) break;
    over = Math.max(over, until);
  }
  return over - since;
}
