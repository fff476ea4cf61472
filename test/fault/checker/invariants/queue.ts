/** 9. No lease outlives its expiry by more than a sweep, and due occurrences are claimed: the queue drains. */
import type { Occurrence } from '../../../../src/chronos/alarm/alarm.ts';
import type { Evidence } from '../evidence.ts';
import { at, type Finding } from '../finding.ts';
import { neglectOf } from '../overdue.ts';

/** A lease that expired, and that was not ended although there was time for it. */
function expiredLeases({ fireId, leaseUntil }: Occurrence, { history }: Evidence): string | undefined {
  const { database, policy } = history;
  if (leaseUntil === null) return undefined;
  const since = Math.max(leaseUntil, database.wholeSince ?? Number.NEGATIVE_INFINITY);
  if (database.readAt - since <= policy.sweepMs) return undefined;
  return `the lease of ${fireId} expired at ${at(leaseUntil)}, and at ${at(database.readAt)} it still existed`;
}

export function queueDrains(evidence: Evidence): Finding {
  const { occurrences, readAt } = evidence.history.database;
  const isDue = ({ dueAt, leaseUntil }: Occurrence) => dueAt !== null && dueAt <= readAt && leaseUntil === null;
  return {
    number: 9,
    title: 'no lease outlives its expiry, and the queue drains',
    judged: occurrences.length,
    unit: 'occurrences in the queue',
    violations: occurrences
      .map((occurrence) => expiredLeases(occurrence, evidence) ?? neglectOf(occurrence, evidence))
      .filter((sentence) => sentence !== undefined),
    counts: {
      'occurrences leased': occurrences.filter(({ leaseUntil }) => leaseUntil !== null).length,
      'occurrences due and about to be claimed': occurrences.filter(isDue).length,
    },
  };
}
