/**
 * Claiming what is due.
 *
 * The order is earliest due first over all owners, but an owner has only so many places in flight. Walking one index by
 * due instant would step over the whole backlog of an owner whose places are full, at every claim. So the walk goes
 * over owners instead, in the order of what each is owed first (`owners.next_due`), takes from each no more than there
 * are places, and merges. A claim of n occurrences looks at n owners at most, and at those who are saturated.
 *
 * A claim writes a lease and nothing else. `owners.next_due` stays as it was until the lease ends; in between, what
 * falls due next is known in memory.
 */

import type { DatabaseSync } from 'node:sqlite';
import type { Logger } from '../../../kit/log/log.ts';
import type { AlarmState, Occurrence } from '../../alarm/alarm.ts';
import { settleInterrupted } from '../../alarm/settlement.ts';
import { checkTransition, withoutLease } from '../difference.ts';
import type { Claim, ClaimRequest, LeaseKey } from '../store.ts';
import type { Lease } from './leases.ts';
import type { DueKey } from './occurrences.ts';
import { prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

// Extending leases.

export function prepareRenew({ leases }: Tables) {
  return (keys: readonly LeaseKey[], leaseUntil: number): Set<string> => {
    const renewed = new Set<string>();
    for (const key of keys) {
      const lease = leases.held(key);
      if (!lease) continue;
      leases.extend(lease, leaseUntil);
      renewed.add(key.fireId);
    }
    return renewed;
  };
}

// When there will be something to claim or a lease to end, and how much there is to claim.

export function prepareNextDue({ owners, leases }: Tables) {
  return (saturated: ReadonlySet<string>): number | undefined => {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { leaseUntil, key } of leases.all())
      if (leaseUntil < earliest && !saturated.has(key.owner)) earliest = leaseUntil;
    for (const { owner, nextDue, exactly } of owners.queue(Number.MAX_SAFE_INTEGER, saturated.size + 1)) {
      if (nextDue >= earliest) break;
      if (exactly < earliest && !saturated.has(owner)) earliest = exactly;
    }
    return earliest === Number.POSITIVE_INFINITY ? undefined : earliest;
  };
}

export function prepareCountDue(db: DatabaseSync) {
  const count = prepareQuery(
    db,
    `SELECT count(*) FROM (
       SELECT 1 FROM owners AS w INDEXED BY owners_queue CROSS JOIN owed AS o INDEXED BY owed_due
       WHERE w.next_due <= ?1 AND o.owner = w.seq AND o.due_at <= ?1 AND NOT EXISTS (
         SELECT 1 FROM leases AS l WHERE l.alarm = o.alarm AND l.scheduled_for = o.scheduled_for) LIMIT ?2 + 0)`,
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

  function endLease(lease: Lease, now: number): void {
    const stored = tables.ofLease(lease);
    const { seq, ownerSeq } = stored.place;
    const { fireId } = lease.key;
    const held = stored.state.occurrences.find((occurrence) => occurrence.fireId === fireId)!;
    const opened = tables.write(stored, settled(withoutLease(stored.state, fireId), fireId, now), fireId);
    tables.ledger.interrupted(seq, held, now);
    tables.owners.refresh(ownerSeq, opened);
  }

  return {
    /** Ends every lease that ran out at or before an instant. */
    ranOut(now: number): void {
      for (const lease of tables.leases.until(now)) endLease(lease, now);
    },

    /**
     * Ends every lease there is: only the process that owns the file leases, so each belongs to an earlier one, which
     * is gone.
     *
     * @returns how many there were
     */
    ofEarlierOwner(now: number): number {
      const held = tables.leases.until(Number.MAX_SAFE_INTEGER);
      for (const lease of held) endLease(lease, now);
      return held.length;
    },
  };
}

/** What is to be taken, and whose it is. */
type Candidate = DueKey & { owner: number };

/** Occurrences in the order in which they are to be taken. Holds some hundreds at most. */
class WaitingLine {
  readonly #line: Candidate[] = [];
  #from = 0;

  add(candidate: Candidate): void {
    let low = this.#from;
    let high = this.#line.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#line[middle]!.dueAt <= candidate.dueAt) low = middle + 1;
      else high = middle;
    }
    this.#line.splice(low, 0, candidate);
  }

  /** Takes the first, if it is due at or before an instant. */
  shift(until: number): Candidate | undefined {
    const first = this.#line[this.#from];
    if (first === undefined || first.dueAt > until) return undefined;
    this.#from++;
    return first;
  }
}

/** What to claim, earliest due first; and of the owners that were looked at, what each is owed in its order. */
function choose({ owners, occurrences }: Tables, request: ClaimRequest) {
  const { now, limit, perOwner, inFlight } = request;
  const waiting = new WaitingLine();
  const chosen: Candidate[] = [];
  const looked = new Map<number, DueKey[]>();

  const takeUntil = (instant: number) => {
    while (chosen.length < limit) {
      const candidate = waiting.shift(instant);
      if (!candidate) return;
      chosen.push(candidate);
    }
  };

  for (const { seq, owner, nextDue, exactly } of owners.queue(now, limit + inFlight.size)) {
    // No owner further down is owed anything before `nextDue`: whatever waits up to then comes first.
    takeUntil(nextDue);
    if (chosen.length === limit) break;
    const places = Math.min(perOwner - (inFlight.get(owner) ?? 0), limit - chosen.length);
    if (places <= 0 || exactly > now) continue;
    // One more than there are places: it says what is due next.
    const free = occurrences.free(seq, places + 1);
    looked.set(seq, free);
    for (const candidate of free.slice(0, places))
      if (candidate.dueAt <= now) waiting.add({ ...candidate, owner: seq });
  }
  takeUntil(now);
  return { chosen, looked };
}

export function prepareClaim(tables: Tables) {
  const { alarms, leases, owners } = tables;

  return (request: ClaimRequest): Claim[] => {
    const { now: claimedAt, leaseUntil } = request;
    const { chosen, looked } = choose(tables, request);
    const taken = new Map<number, number>();
    const claims = chosen.map(({ owner, alarm: seq, scheduledFor }): Claim => {
      const { alarm, occurrence: free } = alarms.owing(seq, scheduledFor)!;
      const occurrence: Occurrence = {
        ...free,
        attempt: free.attempt + 1,
        fence: free.fence + 1,
        leaseUntil,
        claimedAt,
      };
      const { attempt, fence, fireId } = occurrence;
      const key = { owner: alarm.owner, alarmId: alarm.id, fireId };
      leases.take({ alarm: seq, owner, scheduledFor, key, attempt, fence, claimedAt, leaseUntil, row: alarm });
      taken.set(owner, (taken.get(owner) ?? 0) + 1);
      return { alarm, occurrence };
    });
    // What is taken of an owner is what came first.
    for (const [owner, count] of taken) owners.claimed(owner, looked.get(owner)![count]?.dueAt);
    return claims;
  };
}
