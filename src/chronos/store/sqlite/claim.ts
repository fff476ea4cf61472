/**
 * Claiming what is due.
 *
 * The order is earliest due first over all owners, but an owner has only so many places in flight. Walking one index by due
 * instant would step over the whole backlog of an owner whose places are full, at every claim. So the walk goes over owners
 * instead, in the order of what each is owed first (`owners.next_due`), takes from each no more than there are places, and merges.
 * A claim of n occurrences looks at n owners at most, and at those who are saturated.
 */
import type { Occurrence } from '../../alarm/alarm.ts';
import type { Claim, ClaimRequest } from '../store.ts';
import type { Tables } from './tables.ts';

/** Occurrences in the order in which they are to be taken. Holds a few hundred at most. */
function makeWaitingLine() {
  const line: Occurrence[] = [];
  let from = 0;
  return {
    add(occurrence: Occurrence): void {
      let low = from;
      let high = line.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (line[middle]!.dueAt! <= occurrence.dueAt!) low = middle + 1;
        else high = middle;
      }
      line.splice(low, 0, occurrence);
    },
    /** Takes the first that is due at or before an instant. */
    shift(until: number): Occurrence | undefined {
      const first = line[from];
      if (first === undefined || first.dueAt! > until) return undefined;
      from++;
      return first;
    },
  };
}

/** Counts the places that owners have left. */
function makePlaces({ perOwner, inFlight }: ClaimRequest) {
  const taken = new Map<string, number>();
  const left = (owner: string) => perOwner - (inFlight.get(owner) ?? 0) - (taken.get(owner) ?? 0);
  return {
    left,
    /** Takes one of an owner's places; false when there is none. */
    take(owner: string): boolean {
      if (left(owner) <= 0) return false;
      taken.set(owner, (taken.get(owner) ?? 0) + 1);
      return true;
    },
  };
}

/** The occurrences to claim, in order. `expired` are those whose lease ran out. */
function choose(tables: Tables, request: ClaimRequest, expired: readonly Occurrence[]): Occurrence[] {
  const { now, limit, inFlight } = request;
  const places = makePlaces(request);
  const waiting = makeWaitingLine();
  const chosen: Occurrence[] = [];

  const takeUntil = (instant: number) => {
    while (chosen.length < limit) {
      const occurrence = waiting.shift(instant);
      if (!occurrence) return;
      if (places.take(occurrence.owner)) chosen.push(occurrence);
    }
  };

  for (const occurrence of expired) waiting.add(occurrence);
  for (const { owner, nextDue } of tables.owners.queue(now, limit + inFlight.size)) {
    // No owner further down is owed anything before `nextDue`: whatever waits up to then comes first.
    takeUntil(nextDue);
    if (chosen.length === limit) return chosen;
    const wanted = Math.min(places.left(owner), limit - chosen.length);
    if (wanted <= 0) continue;
    for (const occurrence of tables.occurrences.due(owner, now, wanted)) waiting.add(occurrence);
  }
  takeUntil(now);
  return chosen;
}

export function prepareClaim(tables: Tables) {
  const { alarms, occurrences, ledger, owners } = tables;

  /** Ends the leases that ran out on what cannot be claimed now, and gives back those that can. */
  function sweep(now: number): Occurrence[] {
    const claimable: Occurrence[] = [];
    for (const occurrence of occurrences.leasedUntil(now)) {
      if (occurrence.dueAt !== null && occurrence.dueAt <= now) {
        claimable.push(occurrence);
        continue;
      }
      ledger.interrupted(occurrence);
      occurrences.hold({ ...occurrence, fence: occurrence.fence + 1, leaseUntil: null, claimedAt: null });
      owners.refresh(occurrence.owner);
    }
    return claimable;
  }

  return (request: ClaimRequest): Claim[] => {
    const { now, leaseUntil } = request;
    const expired = sweep(now);
    const touched = new Set<string>();
    const claims = choose(tables, request, expired).map((occurrence): Claim => {
      if (occurrence.leaseUntil !== null) ledger.interrupted(occurrence);
      const claimed: Occurrence = {
        ...occurrence,
        attempt: occurrence.attempt + 1,
        fence: occurrence.fence + 1,
        leaseUntil,
        claimedAt: now,
      };
      occurrences.hold(claimed);
      touched.add(claimed.owner);
      return { alarm: alarms.find(claimed.owner, claimed.alarmId)!, occurrence: claimed };
    });
    for (const owner of touched) owners.refresh(owner);
    return claims;
  };
}
