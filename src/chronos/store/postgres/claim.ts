/**
 * Claims due occurrences.
 *
 * The order is earliest due first over all owners of a bucket. Rows that another replica is claiming are skipped. Each
 * owner has a limited number of slots. Owners without a free slot are excluded. An owner whose slots fill up within a
 * claim is excluded from the next query, which continues where the last one ended. So one owner's backlog does not hide
 * the occurrences of others.
 *
 * Of several buckets the most overdue comes first and may fill all free slots: a backlog is claimed in batches of one
 * bucket each. So an occurrence is overtaken by at most one batch of each other bucket.
 */
import type { Logger } from '../../../kit/log/log.ts';
import type { Claim, ClaimRequest } from '../store.ts';
import type { Buckets } from './buckets.ts';
import { type ClaimRange, type ClaimResult, claimCall, OwnerSlots, readClaimResult } from './claim-query.ts';
import type { DueIndex } from './due-index.ts';
import type { PrimaryPool } from './pool.ts';
import type { ClaimedStates } from './state.ts';
import { readStates } from './state.ts';
import type { Row } from './statement.ts';
import type { prepareSweep } from './sweep.ts';

/** Maximum number of rows of a query, when it widens to get past owners without free slots. */
const WIDEST_QUERY = 4096;
/** A due time within this period after a claim is recorded even if leases end before it. */
const IGNORED_LEASES_MS = 1000;
/** Buckets that are claimed from at once: in one transaction, or each separately where they are on several servers. */
const AT_ONCE = { together: 16, apart: 4 };

function inOrder({ occurrence: one }: Claim, { occurrence: other }: Claim): number {
  return one.dueAt! - other.dueAt! || (one.alarmId + one.fireId < other.alarmId + other.fireId ? -1 : 1);
}

type Options = {
  pool: PrimaryPool;
  buckets: Buckets;
  dueIndex: DueIndex;
  sweeps: ReturnType<typeof prepareSweep>;
  claimed: ClaimedStates;
  /** Whether another replica prefers a bucket, so that this one waits for a moment. */
  isPreferredElsewhere: (bucket: number) => boolean;
  log: Logger;
};

/** The most to take from a bucket. */
type Portion = { bucket: number; limit: number };

export function prepareClaim({ pool, buckets, dueIndex, sweeps, claimed, isPreferredElsewhere, log }: Options) {
  const atOnce = buckets.citus ? AT_ONCE.apart : AT_ONCE.together;

  const claimCallFor = (bucket: number, request: ClaimRequest, slots: OwnerSlots, range: ClaimRange) =>
    claimCall(bucket, request, slots, range, {
      mine: (owner) => buckets.of(owner) === bucket,
      depth: buckets.count === 1 ? 0 : request.limit,
    });

  async function take(rows: readonly Row[], slots: OwnerSlots): Promise<ClaimResult> {
    const found = readClaimResult(rows);
    for (const { claim, revision } of found.single) claimed.remember(claim, revision);
    if (found.stale.length > 0) await refreshStale(found.stale);
    for (const { occurrence } of found.claims) slots.take(occurrence.owner);
    return found;
  }

  /** Reads alarms again that changed during the claim of their occurrences. */
  async function refreshStale(stale: Claim[]): Promise<void> {
    const states = await readStates(
      pool,
      buckets,
      stale.map(({ occurrence }) => ({ owner: occurrence.owner, id: occurrence.alarmId })),
    );
    const alarms = new Map(states.map(({ state: { alarm } }) => [`${alarm.owner} ${alarm.id}`, alarm]));
    for (const claim of stale) {
      const { owner, alarmId } = claim.occurrence;
      claim.alarm = alarms.get(`${owner} ${alarmId}`) ?? claim.alarm;
    }
  }

  /** Continues in a bucket after the first query, until the limit is reached or nothing more is available. */
  async function takeUpTo({ bucket, limit }: Portion, first: Row[], request: ClaimRequest, slots: OwnerSlots) {
    const claims: Claim[] = [];
    const range: ClaimRange = { from: Number.MIN_SAFE_INTEGER, width: limit, limit };
    let rows = first;
    for (;;) {
      const found = await take(rows, slots);
      claims.push(...found.claims);
      // Skipped rows belong to owners without free slots, or to another replica.
      if (found.seen < range.width || found.next !== undefined) {
        const full = slots.full().filter((owner) => buckets.of(owner) === bucket);
        // Leases may end before a later due time.
        const next = found.next !== undefined && found.next <= request.now + IGNORED_LEASES_MS ? found.next : undefined;
        dueIndex.recordQuery(bucket, next, full);
        return claims;
      }
      if (claims.length >= limit) {
        dueIndex.recordQuery(bucket, found.until, undefined, found.left);
        return claims;
      }
      range.from = found.until;
      range.limit = limit - claims.length;
      range.width = Math.min(range.width * 4, Math.max(WIDEST_QUERY, limit));
      const { statement, values } = claimCallFor(bucket, request, slots, range);
      try {
        rows = await pool.query(statement, values);
      } catch (error) {
        // Occurrences that are already claimed are leased to this replica: return them.
        if (claims.length === 0) throw error;
        log.warn({ err: error, claimed: claims.length }, 'a claim ended early');
        return claims;
      }
    }
  }

  /** Claims from several buckets; returns for each the claims, or why it failed. */
  async function claimFrom(portions: readonly Portion[], request: ClaimRequest, slots: OwnerSlots) {
    const calls = portions.map(({ bucket, limit }) => {
      dueIndex.beginQuery(bucket);
      return claimCallFor(bucket, request, slots, { from: Number.MIN_SAFE_INTEGER, width: limit, limit });
    });
    const answers = await buckets.query(pool, calls);
    return Promise.allSettled(
      answers.map(async (answer, index) => {
        if (answer.status === 'rejected') throw answer.reason;
        return takeUpTo(portions[index]!, answer.value, request, slots);
      }),
    );
  }

  /** Buckets with due occurrences, or unknown ones, the most overdue first. */
  function dueBuckets({ now, inFlight, perOwner }: ClaimRequest): number[] {
    if (buckets.count === 1) return [0];
    const full = new Set([...inFlight].filter(([, count]) => count >= perOwner).map(([owner]) => owner));
    return dueIndex
      .dueTimes(full, now)
      .map((due, bucket) => ({
        bucket,
        due: due ?? (isPreferredElsewhere(bucket) ? now : dueIndex.lastQuery(bucket, full, now)),
      }))
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

  return async (request: ClaimRequest): Promise<Claim[]> => {
    const { now, limit, perOwner } = request;
    const nothingElse = limit <= 0 || perOwner <= 0;
    const failures = await sweeps.sweep(now, nothingElse ? 'all' : 'due');
    if (failures.length > 0 && !buckets.citus) throw failures[0];
    const slots = new OwnerSlots(request);
    const claims: Claim[] = [];
    let due = nothingElse ? [] : dueBuckets(request);
    while (due.length > 0 && claims.length < limit) {
      const portions = nextPortions(due, limit - claims.length);
      const found = await claimFrom(portions, request, slots);
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
    return buckets.count === 1 ? claims : claims.sort(inOrder);
  };
}
