/** 9. No claim outlives its process, and due occurrences are claimed: the queue drains. */
import type { Occurrence } from '../../../../src/chronos/alarm/alarm.ts';
import type { Evidence } from '../evidence.ts';
import { at, type Finding } from '../finding.ts';
import { neglectOf } from '../overdue.ts';

/** A claim that is older than any delivery, and was not ended although there was time for it. */
function orphanedClaim({ fireId, claimedAt }: Occurrence, { history }: Evidence): string | undefined {
  const { database, policy } = history;
  if (claimedAt === null) return undefined;
  const since = Math.max(claimedAt, database.wholeSince ?? Number.NEGATIVE_INFINITY);
  if (database.readAt - since <= policy.longestClaimMs) return undefined;
  return `${fireId} was claimed at ${at(claimedAt)}, and at ${at(database.readAt)} it still was`;
}

export function queueDrains(evidence: Evidence): Finding {
  const { occurrences, readAt } = evidence.history.database;
  const isDue = ({ dueAt, claimedAt }: Occurrence) => dueAt !== null && dueAt <= readAt && claimedAt === null;
  return {
    number: 9,
    title: 'no claim outlives its process, and the queue drains',
    judged: occurrences.length,
    unit: 'occurrences in the queue',
    violations: occurrences
      .map((occurrence) => orphanedClaim(occurrence, evidence) ?? neglectOf(occurrence, evidence))
      .filter((sentence) => sentence !== undefined),
    counts: {
      'occurrences claimed': occurrences.filter(({ claimedAt }) => claimedAt !== null).length,
      'occurrences due and about to be claimed': occurrences.filter(isDue).length,
    },
  };
}
