/**
 * The order of claims from several buckets.
 *
 * The most overdue bucket comes first and may fill all free slots: a backlog is claimed in batches of one bucket each.
 * So an occurrence is overtaken by at most one batch of each other bucket.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { Buckets, ClaimOrder, Portion, Preference } from '../postgres/buckets.ts';
import { type DueIndex, FRESH_MS } from '../postgres/due-index.ts';
import type { Claim, ClaimRequest } from '../store.ts';
import { ReplicaMembership } from './membership.ts';

/** How long a replica waits before it claims from a bucket that another one prefers. */
export const PREFERENCE_DELAY_MS = 50;
/** How long a due time is valid while something is due in another bucket. */
const BUSY_MS = 1000;
/** Buckets that are claimed from at once: in one transaction, or each separately where they are on several servers. */
const AT_ONCE = { together: 16, apart: 4 };

function inOrder({ occurrence: one }: Claim, { occurrence: other }: Claim): number {
  return one.dueAt! - other.dueAt! || (one.alarmId + one.fireId < other.alarmId + other.fireId ? -1 : 1);
}

type Options = {
  buckets: Buckets;
  dueIndex: DueIndex;
  preference: Preference;
  clock: Clock;
  log: Logger;
};

export function orderOfSeveral({ buckets, dueIndex, preference, clock, log }: Options): ClaimOrder {
  let membership: ReplicaMembership | undefined;
  const prefers =
    typeof preference === 'function' ? preference : (bucket: number) => membership?.prefers(bucket) ?? true;
  const atOnce = buckets.distributed ? AT_ONCE.apart : AT_ONCE.together;

  /** When this replica may claim from a bucket; `undefined` where a query is needed. */
  function claimableAt(bucket: number, saturated: ReadonlySet<string>, now: number, freshMs = FRESH_MS) {
    const due = dueIndex.cachedDue(bucket, saturated, now, freshMs);
    if (due === undefined || prefers(bucket)) return due;
    const at = due + PREFERENCE_DELAY_MS;
    return at <= now && dueIndex.ageMs(bucket) > PREFERENCE_DELAY_MS / 2 ? undefined : at;
  }

  /**
   * When this replica may claim from each bucket. While something is due in one of them, results for the others are
   * valid longer.
   */
  function dueTimes(saturated: ReadonlySet<string>, now: number): (number | undefined)[] {
    const known = buckets.all().map((bucket) => claimableAt(bucket, saturated, now));
    if (!known.some((due) => due !== undefined && due <= now)) return known;
    return known.map((due, bucket) => due ?? claimableAt(bucket, saturated, now, BUSY_MS));
  }

  /**
   * The due time by which a bucket without a cached due time is sorted. If its owners had no free slot, it counts as
   * due since its last query, and several slots are free by its turn. A bucket of another replica is due now. Any other
   * bucket comes first.
   */
  function assumedDue(bucket: number, saturated: ReadonlySet<string>, now: number): number {
    if (!prefers(bucket)) return now;
    return dueIndex.isFreed(bucket, saturated) ? now - dueIndex.ageMs(bucket) : Number.NEGATIVE_INFINITY;
  }

  /** Buckets with due occurrences, or unknown ones, the most overdue first. */
  function dueBuckets({ now, inFlight, perOwner }: ClaimRequest): number[] {
    const full = new Set([...inFlight].filter(([, count]) => count >= perOwner).map(([owner]) => owner));
    return dueTimes(full, now)
      .map((due, bucket) => ({ bucket, due: due ?? assumedDue(bucket, full, now) }))
      .filter(({ due }) => due <= now)
      .sort((one, other) => one.due - other.due)
      .map(({ bucket }) => bucket);
  }

  /**
   * Removes the first buckets from the list, with a limit for each: its known number of due occurrences, or an even
   * share.
   */
  function nextPortions(due: number[], freeSlots: number): Portion[] {
    const even = Math.ceil(freeSlots / Math.min(due.length, atOnce));
    const portions: Portion[] = [];
    for (let left = freeSlots; due.length > 0 && left > 0 && portions.length < atOnce; ) {
      const bucket = due.shift()!;
      const limit = Math.min(dueIndex.remaining(bucket) || even, left);
      portions.push({ bucket, limit });
      left -= limit;
    }
    return portions;
  }

  return {
    join(notifications) {
      if (preference !== 'rendezvous' || buckets.count === 1) return;
      const { sender: self } = notifications;
      const notify = (message: string) => notifications.sendMembership(message);
      membership = new ReplicaMembership({ self, buckets: buckets.count, clock, notify });
      notifications.onMember = (member, message) => membership?.receive(member, message);
    },
    recordClaim: () => membership?.recordClaim(),
    leave: () => membership?.stop(),

    waitMs: (bucket) => (prefers(bucket) ? 0 : PREFERENCE_DELAY_MS),

    countedDue: (limit) => limit,

    lookAhead(saturated, now) {
      const times = dueTimes(saturated, now);
      const known = times.filter((due) => due !== undefined);
      const isDue = known.some((due) => due <= now);
      const unknown = buckets
        .all()
        .filter((bucket) => times[bucket] === undefined && !(isDue && dueIndex.isFreed(bucket, saturated)));
      return { known, unknown };
    },

    async claim(request, claimFrom) {
      const claims: Claim[] = [];
      /** They count only when nothing can be claimed. */
      const failures: unknown[] = [];
      let due = dueBuckets(request);
      while (due.length > 0 && claims.length < request.limit) {
        const portions = nextPortions(due, request.limit - claims.length);
        const found = await claimFrom(portions);
        /** Buckets that reached their limit and may have more. */
        const backlogged: number[] = [];
        for (const [index, result] of found.entries()) {
          const { bucket, limit: most } = portions[index]!;
          // One of several servers may be unavailable: occurrences on the others must not wait for it.
          if (result.status === 'rejected') failures.push(result.reason);
          else if (claims.push(...result.value) > 0 && result.value.length >= most) backlogged.push(bucket);
        }
        // Claimed occurrences must not wait for later buckets: the next claim begins with those.
        if (claims.length > 0) due = backlogged;
        else if (found.every((result) => result.status === 'rejected')) break;
      }
      if (failures.length > 0 && claims.length === 0) throw failures[0];
      if (failures.length > 0) log.warn({ err: failures[0], claimed: claims.length }, 'a claim ended early');
      return claims.sort(inOrder);
    },
  };
}
