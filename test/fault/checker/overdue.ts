/** Whether an overdue occurrence is neglected: it is unclaimed although a process could claim it. */
import type { Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import type { Evidence } from './evidence.ts';
import { at } from './finding.ts';
import type { Policy } from './history.ts';

/** An interval of work for one owner. */
type Span = { from: number; until: number };

/** Whether as many intervals as slots overlapped at some moment of a window. */
function allSlotsUsed(spans: readonly Span[], slots: number, window: Span): boolean {
  const inside = spans.filter(({ from, until }) => from <= window.until && until >= window.from);
  return inside.some(({ from }) => {
    const moment = Math.max(from, window.from);
    return inside.filter((span) => span.from <= moment && span.until >= moment).length >= slots;
  });
}

/** Hanging or slow wakes used all slots of the owner within the time that an overdue occurrence may wait. */
function waitsForOwnSlots({ owner }: Occurrence, evidence: Evidence, policy: Policy): boolean {
  const { readAt, attempts, occurrences } = evidence.history.database;
  const spans: Span[] = [
    ...attempts
      .filter((attempt) => attempt.owner === owner)
      .map(({ startedAt, finishedAt }) => ({ from: startedAt, until: finishedAt })),
    ...occurrences.flatMap((claimed) =>
      claimed.owner === owner && claimed.claimedAt !== null ? [{ from: claimed.claimedAt, until: readAt }] : [],
    ),
  ];
  return allSlotsUsed(spans, policy.userConcurrency, { from: readAt - policy.overdueLimitMs, until: readAt });
}

/**
 * The violation of an occurrence that has been due for too long without a claim; `undefined` without a violation. That
 * means: it is not due, is due for a short time only, is claimed, or waits for other deliveries of its owner.
 */
export function neglectOf(occurrence: Occurrence, evidence: Evidence): string | undefined {
  const { database, policy } = evidence.history;
  const { dueAt, claimedAt, fireId } = occurrence;
  if (dueAt === null || claimedAt !== null) return undefined;
  const since = Math.max(dueAt, database.wholeSince ?? Number.NEGATIVE_INFINITY);
  const overdueMs = database.readAt - since;
  if (overdueMs <= policy.overdueLimitMs || waitsForOwnSlots(occurrence, evidence, policy)) return undefined;
  return `${fireId} was due at ${at(dueAt)} and by ${at(database.readAt)} it was not claimed`;
}
