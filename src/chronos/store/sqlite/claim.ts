/**
 * Claiming what is due.
 *
 * The order is earliest due first over all owners, but an owner has only so many places in flight. Walking one index by
 * due instant would step over the whole backlog of an owner whose places are full, at every claim. So the walk goes
 * over owners instead, in the order of what each is owed first (`owners.next_due`), takes from each no more than there
 * are places, and merges. A claim of n occurrences looks at n owners at most, and at those who are saturated.
 */

import type { DatabaseSync } from 'node:sqlite';
import type { Logger } from '../../../kit/log/log.ts';
import type { AlarmState, Occurrence } from '../../alarm/alarm.ts';
import { settleInterrupted } from '../../alarm/settlement.ts';
import { checkTransition, withoutLease } from '../difference.ts';
import type { Claim, ClaimRequest, LeaseKey } from '../store.ts';
import { prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

// Extending leases.

export function prepareRenew({ occurrences }: Tables) {
  return (keys: readonly LeaseKey[], leaseUntil: number): Set<string> =>
    new Set(keys.filter((key) => occurrences.renew(key, leaseUntil)).map(({ fireId }) => fireId));
}

// When there will be something to claim or a lease to end, and how much there is to claim.

export function prepareNextDue(db: DatabaseSync, { owners }: Tables) {
  const leases = db.prepare(`
    SELECT owner, lease_until FROM occurrences INDEXED BY occurrences_leased
    WHERE lease_until IS NOT NULL ORDER BY lease_until`);
  leases.setReturnArrays(true);

  function firstLeaseEnd(saturated: ReadonlySet<string>): number | undefined {
    for (const row of leases.iterate()) {
      const [owner, leaseUntil] = row as unknown as [string, number];
      if (!saturated.has(owner)) return leaseUntil;
    }
    return undefined;
  }

  return (saturated: ReadonlySet<string>): number | undefined => {
    const free = owners
      .queue(Number.MAX_SAFE_INTEGER, saturated.size + 1)
      .find(({ owner }) => !saturated.has(owner))?.nextDue;
    const earliest = Math.min(free ?? Number.POSITIVE_INFINITY, firstLeaseEnd(saturated) ?? Number.POSITIVE_INFINITY);
    return earliest === Number.POSITIVE_INFINITY ? undefined : earliest;
  };
}

export function prepareCountDue(db: DatabaseSync) {
  const count = prepareQuery(
    db,
    `SELECT count(*) FROM (
       SELECT 1 FROM owners AS w INDEXED BY owners_queue CROSS JOIN occurrences AS o INDEXED BY occurrences_free
       WHERE w.next_due <= ?1 AND o.owner = w.owner AND o.due_at <= ?1 AND o.lease_until IS NULL LIMIT ?2 + 0)`,
    ([found]) => found as number,
  );
  return ({ now, atMost }: { now: number; atMost: number }): number => count.get(now, atMost)!;
}

// Ending leases whose holder is not heard of again: they ran out, or the process that held them is gone.

export function prepareEndLeases(tables: Tables, log: Logger) {
  /**
   * What the interruption makes of the alarm. One that cannot be settled must not stand in the way of every claim: it
   * loses the lease, stays as it is otherwise, and the log says so.
   */
  function settled(given: AlarmState, fireId: string, now: number): AlarmState {
    try {
      const wanted = settleInterrupted(given, fireId, now);
      checkTransition(given, wanted);
      return wanted;
    } catch (error) {
      log.error(
        { err: error, fire_id: fireId },
        'an interrupted attempt could not be settled; only its lease is ended',
      );
      return given;
    }
  }

  function endLease(held: Occurrence, now: number): void {
    const { owner, alarmId, fireId } = held;
    const stored = tables.state(owner, alarmId)!;
    const opened = tables.write(stored, settled(withoutLease(stored, fireId), fireId, now), fireId);
    tables.ledger.interrupted(held, now);
    tables.owners.refresh(owner, opened);
  }

  return {
    /** Ends every lease that ran out at or before an instant. */
    ranOut(now: number): void {
      for (const held of tables.occurrences.leasedUntil(now)) endLease(held, now);
    },

    /**
     * Ends every lease there is: only the process that owns the file leases, so each belongs to an earlier one, which
     * is gone.
     *
     * @returns how many there were
     */
    ofEarlierOwner(now: number): number {
      const held = tables.occurrences.leasedUntil(Number.MAX_SAFE_INTEGER);
      for (const occurrence of held) endLease(occurrence, now);
      return held.length;
    },
  };
}

/** Occurrences in the order in which they are to be taken. Holds some hundreds at most. */
class WaitingLine {
  readonly #line: Occurrence[] = [];
  #from = 0;

  add(occurrence: Occurrence): void {
    let low = this.#from;
    let high = this.#line.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#line[middle]!.dueAt! <= occurrence.dueAt!) low = middle + 1;
      else high = middle;
    }
    this.#line.splice(low, 0, occurrence);
  }

  /** Takes the first, if it is due at or before an instant. */
  shift(until: number): Occurrence | undefined {
    const first = this.#line[this.#from];
    if (first === undefined || first.dueAt! > until) return undefined;
    this.#from++;
    return first;
  }
}

/** The occurrences to claim, earliest due first. */
function choose({ owners, occurrences }: Tables, request: ClaimRequest): Occurrence[] {
  const { now, limit, perOwner, inFlight } = request;
  const waiting = new WaitingLine();
  const chosen: Occurrence[] = [];

  const takeUntil = (instant: number) => {
    while (chosen.length < limit) {
      const occurrence = waiting.shift(instant);
      if (!occurrence) return;
      chosen.push(occurrence);
    }
  };

  for (const { owner, nextDue } of owners.queue(now, limit + inFlight.size)) {
    // No owner further down is owed anything before `nextDue`: whatever waits up to then comes first.
    takeUntil(nextDue);
    if (chosen.length === limit) break;
    const places = Math.min(perOwner - (inFlight.get(owner) ?? 0), limit - chosen.length);
    if (places <= 0) continue;
    for (const occurrence of occurrences.due(owner, now, places)) waiting.add(occurrence);
  }
  takeUntil(now);
  return chosen;
}

export function prepareClaim(tables: Tables) {
  const { alarms, occurrences, owners } = tables;

  return (request: ClaimRequest): Claim[] => {
    const touched = new Set<string>();
    const claims = choose(tables, request).map((occurrence): Claim => {
      const claimed: Occurrence = {
        ...occurrence,
        attempt: occurrence.attempt + 1,
        fence: occurrence.fence + 1,
        leaseUntil: request.leaseUntil,
        claimedAt: request.now,
      };
      occurrences.hold(claimed);
      touched.add(claimed.owner);
      return { alarm: alarms.find(claimed.owner, claimed.alarmId)!, occurrence: claimed };
    });
    for (const owner of touched) owners.refresh(owner);
    return claims;
  };
}
