/** Whether an occurrence that is overdue lies about: nobody holds it although somebody could. */
import type { Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import type { Evidence } from './evidence.ts';
import { at } from './finding.ts';
import type { Policy } from './history.ts';

/** A span of work for one owner. */
type Span = { from: number; until: number };

/** Whether as many spans as there are places overlapped at some moment of a window. */
function wereFull(spans: readonly Span[], places: number, window: Span): boolean {
  const inside = spans.filter(({ from, until }) => from <= window.until && until >= window.from);
  return inside.some(({ from }) => {
    const moment = Math.max(from, window.from);
    return inside.filter((span) => span.from <= moment && span.until >= moment).length >= places;
  });
}

/**
 * The owner's places were taken, by wakes that hang or are slow, within the time that an overdue occurrence may wait.
 */
function isBehindItsOwner({ owner }: Occurrence, evidence: Evidence, policy: Policy): boolean {
  const { readAt, attempts, occurrences } = evidence.history.database;
  const spans: Span[] = [
    ...attempts
      .filter((attempt) => attempt.owner === owner)
      .map(({ startedAt, finishedAt }) => ({ from: startedAt, until: finishedAt })),
    ...occurrences.flatMap((held) =>
      held.owner === owner && held.leaseUntil !== null
        ? [{ from: held.claimedAt ?? readAt, until: held.leaseUntil }]
        : [],
    ),
  ];
  return wereFull(spans, policy.userConcurrency, { from: readAt - policy.overdueLimitMs, until: readAt });
}

/**
 * What is wrong with an occurrence that has been due for too long while nobody held it; `undefined` when all is well:
 * it is not due, not for long, in somebody's hands, or waiting for other deliveries to its own owner.
 */
export function neglectOf(occurrence: Occurrence, evidence: Evidence): string | undefined {
  const { database, policy } = evidence.history;
  const { dueAt, leaseUntil, fireId } = occurrence;
  if (dueAt === null || leaseUntil !== null) return undefined;
  const since = Math.max(dueAt, database.wholeSince ?? Number.NEGATIVE_INFINITY);
  const overdueMs = database.readAt - since;
  if (overdueMs <= policy.overdueLimitMs || isBehindItsOwner(occurrence, evidence, policy)) return undefined;
  return `${fireId} was due at ${at(dueAt)} and by ${at(database.readAt)} nobody had taken it`;
}
