/** Claims due occurrences. The queue of due occurrences (`due-queue.ts`) determines the order. */
import type { DatabaseSync } from 'node:sqlite';
import type { Logger } from '../../../kit/log/log.ts';
import type { Occurrence } from '../../alarm/alarm.ts';
import { isLook } from '../../alarm/events.ts';
import type { Calendars } from '../../alarm/holidays.ts';
import { interruptedState, withoutClaim } from '../difference.ts';
import type { Claim, ClaimRequest } from '../store.ts';
import type { ClaimRow } from './claims.ts';
import { prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

// The next due time, and the number of due occurrences.

export function prepareNextDue({ owners, dueQueue }: Tables) {
  return (saturated: ReadonlySet<string>): number | undefined =>
    dueQueue.next(new Set([...saturated].flatMap((owner) => owners.seqOf(owner) ?? [])));
}

const DUE = `SELECT alarm, scheduled_for FROM progress INDEXED BY progress_due WHERE due_at <= ?1
  UNION ALL SELECT alarm, scheduled_for FROM triggers INDEXED BY triggers_due WHERE due_at <= ?1`;

export function prepareCountDue(db: DatabaseSync) {
  const count = prepareQuery(
    db,
    `SELECT count(*) FROM (
       SELECT 1 FROM (${DUE}) AS o WHERE NOT EXISTS (
         SELECT 1 FROM claims AS l WHERE l.alarm = o.alarm AND l.scheduled_for = o.scheduled_for) LIMIT ?2 + 0)`,
    ([found]) => found as number,
  );
  return ({ now, atMost }: { now: number; atMost: number }): number => count.get(now, atMost)!;
}

// Ends the claims of an earlier process.

export function prepareEndOrphanedClaims(
  tables: Tables,
  context: { readonly log: Logger; readonly calendars?: Calendars | undefined },
) {
  function end(row: ClaimRow, now: number): void {
    const stored = tables.ofClaim(row);
    const { seq, ownerSeq } = stored.row.location;
    const { fireId } = row.key;
    const claimed = stored.state.occurrences.find((occurrence) => occurrence.fireId === fireId)!;
    const wanted = interruptedState(withoutClaim(stored.state, fireId), fireId, now, context);
    const opened = tables.write(stored, wanted, fireId);
    if (!isLook(stored.state.alarm, claimed)) tables.ledger.interrupted(seq, claimed, now);
    tables.owners.addToTotals(ownerSeq, opened);
  }

  /**
   * Only the process that owns the file claims, so each claim belongs to an earlier process, which has ended.
   *
   * @returns their number
   */
  return (now: number): number => {
    const claims = tables.claims.all();
    for (const row of claims) end(row, now);
    return claims.length;
  };
}

export function prepareClaim({ alarms, triggers, claims, owners, dueQueue }: Tables) {
  return (request: ClaimRequest): Claim[] => {
    const { now: claimedAt, inFlight } = request;
    const busy = new Map<number, number>();
    for (const [owner, count] of inFlight) {
      const seq = owners.seqOf(owner);
      if (seq !== undefined) busy.set(seq, count);
    }
    const due = dueQueue.take(request, busy);
    const stored = new Map(alarms.at(due.map(({ alarm }) => alarm)).map((found) => [found.location.seq, found]));
    return due.flatMap(({ owner, alarm: seq, scheduledFor }): Claim[] => {
      const found = stored.get(seq);
      // Missing only if another program has written to the file.
      if (!found) return [];
      const { alarm, scheduled, location, hasTriggers, hasAttempt } = found;
      const isScheduled = scheduled?.scheduledFor === scheduledFor;
      const free = isScheduled ? scheduled : triggers.of(location).find((each) => each.scheduledFor === scheduledFor);
      if (!free) return [];
      const occurrence: Occurrence = {
        ...free,
        attempt: free.attempt + 1,
        fence: free.fence + 1,
        claimedAt,
      };
      const claim = { alarm, occurrence };
      claims.take({
        alarm: seq,
        owner,
        scheduledFor,
        key: occurrence,
        attempt: occurrence.attempt,
        fence: occurrence.fence,
        claimedAt,
        hasAttempt,
        isUntouched: isScheduled && !hasTriggers,
        claim,
      });
      return [claim];
    });
  };
}
