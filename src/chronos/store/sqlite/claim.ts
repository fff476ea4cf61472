/**
 * Claiming what is due.
 *
 * The order is earliest due first over all owners, but an owner has only so many places in flight. Walking one index by due
 * instant would step over the whole backlog of an owner whose places are full, at every claim. So the walk goes over owners
 * instead, in the order of what each is owed first (`owners.next_due`), takes from each no more than there are places, and
 * merges. A claim of n occurrences looks at n owners at most, and at those who are saturated.
 */
import type { Occurrence } from '../../alarm/alarm.ts';
import type { Claim, ClaimRequest } from '../store.ts';
import type { Tables } from './tables.ts';

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
