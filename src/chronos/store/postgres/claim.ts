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
import { type Look, lookAt, Places, type Reach, readLook } from './look.ts';
import type { Outlook } from './outlook.ts';
import type { PrimaryPool } from './pool.ts';
import type { ClaimedStates } from './state.ts';
import { readStates } from './state.ts';
import type { Row } from './statement.ts';
import type { prepareSweep } from './sweep.ts';

/** Maximum number of rows of a query, when it widens to get past owners without free slots. */
const WIDEST_LOOK = 4096;
/** A due time within this period after a claim is recorded even if leases end before it. */
const LEASES_ASIDE_MS = 1000;
/** Buckets that are claimed from at once: in one transaction, or each separately where they are on several servers. */
const AT_ONCE = { together: 16, apart: 4 };

function inOrder({ occurrence: one }: Claim, { occurrence: other }: Claim): number {
  return one.dueAt! - other.dueAt! || (one.alarmId + one.fireId < other.alarmId + other.fireId ? -1 : 1);
}

type Options = {
  pool: PrimaryPool;
  buckets: Buckets;
  outlook: Outlook;
  sweeps: ReturnType<typeof prepareSweep>;
  claimed: ClaimedStates;
  /** Whether another replica prefers a bucket, so that this one waits for a moment. */
  standsBack: (bucket: number) => boolean;
  log: Logger;
};

/** The most to take from a bucket. */
type Portion = { bucket: number; limit: number };

export function prepareClaim({ pool, buckets, outlook, sweeps, claimed, standsBack, log }: Options) {
  const atOnce = buckets.citus ? AT_ONCE.apart : AT_ONCE.together;

  const lookCall = (bucket: number, request: ClaimRequest, places: Places, reach: Reach) =>
    lookAt(bucket, request, places, reach, {
      mine: (owner) => buckets.of(owner) === bucket,
      depth: buckets.count === 1 ? 0 : request.limit,
    });

  async function take(rows: readonly Row[], places: Places): Promise<Look> {
    const found = readLook(rows);
    for (const { claim, revision } of found.whole) claimed.remember(claim, revision);
    if (found.torn.length > 0) await mend(found.torn);
    for (const { occurrence } of found.claims) places.take(occurrence.owner);
    return found;
  }

  /** Reads alarms again that changed during the claim of their occurrences. */
  async function mend(torn: Claim[]): Promise<void> {
    const states = await readStates(
      pool,
      buckets,
      torn.map(({ occurrence }) => ({ owner: occurrence.owner, id: occurrence.alarmId })),
    );
    const alarms = new Map(states.map(({ state: { alarm } }) => [`${alarm.owner} ${alarm.id}`, alarm]));
    for (const claim of torn) {
      const { owner, alarmId } = claim.occurrence;
      claim.alarm = alarms.get(`${owner} ${alarmId}`) ?? claim.alarm;
    }
  }

  /** Continues in a bucket after the first query, until the limit is reached or nothing more is available. */
  async function takeUpTo({ bucket, limit }: Portion, first: Row[], request: ClaimRequest, places: Places) {
    const claims: Claim[] = [];
    const reach: Reach = { from: Number.MIN_SAFE_INTEGER, width: limit, limit };
    let rows = first;
    for (;;) {
      const found = await take(rows, places);
      claims.push(...found.claims);
      // Skipped rows belong to owners without free slots, or to another replica.
      if (found.seen < reach.width || found.next !== undefined) {
        const full = places.full().filter((owner) => buckets.of(owner) === bucket);
        // Leases may end before a later due time.
        const next = found.next !== undefined && found.next <= request.now + LEASES_ASIDE_MS ? found.next : undefined;
        outlook.learn(bucket, next, full);
        return claims;
      }
      if (claims.length >= limit) {
        outlook.learn(bucket, found.until, undefined, found.left);
        return claims;
      }
      reach.from = found.until;
      reach.limit = limit - claims.length;
      reach.width = Math.min(reach.width * 4, Math.max(WIDEST_LOOK, limit));
      const { statement, values } = lookCall(bucket, request, places, reach);
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
  async function claimFrom(portions: readonly Portion[], request: ClaimRequest, places: Places) {
    const calls = portions.map(({ bucket, limit }) => {
      outlook.begin(bucket);
      return lookCall(bucket, request, places, { from: Number.MIN_SAFE_INTEGER, width: limit, limit });
    });
    const answers = await buckets.ask(pool, calls);
    return Promise.allSettled(
      answers.map(async (answer, index) => {
        if (answer.status === 'rejected') throw answer.reason;
        return takeUpTo(portions[index]!, answer.value, request, places);
      }),
    );
  }

  /** Buckets with due occurrences, or unknown ones, the most overdue first. */
  function dueBuckets({ now, inFlight, perOwner }: ClaimRequest): number[] {
    if (buckets.count === 1) return [0];
    const full = new Set([...inFlight].filter(([, count]) => count >= perOwner).map(([owner]) => owner));
    return outlook
      .overview(full, now)
      .map((due, bucket) => ({ bucket, due: due ?? (standsBack(bucket) ? now : outlook.lastLook(bucket, full, now)) }))
      .filter(({ due }) => due <= now)
      .sort((one, other) => one.due - other.due)
      .map(({ bucket }) => bucket);
  }

  /**
   * Removes the first buckets from the list, with a limit for each: its known number of due occurrences, or an even
   * share.
   */
  function deal(due: number[], room: number): Portion[] {
    const even = Math.ceil(room / Math.min(due.length, atOnce));
    const portions: Portion[] = [];
    for (let left = room; due.length > 0 && left > 0 && portions.length < atOnce; ) {
      const bucket = due.shift()!;
      const limit = Math.min(outlook.left(bucket) || even, left);
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
    const places = new Places(request);
    const claims: Claim[] = [];
    let due = nothingElse ? [] : dueBuckets(request);
    while (due.length > 0 && claims.length < limit) {
      const portions = deal(due, limit - claims.length);
      const found = await claimFrom(portions, request, places);
      /** Buckets that reached their limit and may have more. */
      const rich: number[] = [];
      for (const [index, each] of found.entries()) {
        const { bucket, limit: most } = portions[index]!;
        // One of several servers may be unavailable: occurrences on the others must not wait for it.
        if (each.status === 'rejected') failures.push(each.reason);
        else if (claims.push(...each.value) > 0 && each.value.length >= most) rich.push(bucket);
      }
      // Claimed occurrences must not wait for later buckets: the next claim begins with those.
      if (claims.length > 0) due = rich;
      else if (found.every((each) => each.status === 'rejected')) break;
    }
    if (failures.length > 0 && claims.length === 0) throw failures[0];
    if (failures.length > 0) log.warn({ err: failures[0], claimed: claims.length }, 'a claim ended early');
    return buckets.count === 1 ? claims : claims.sort(inOrder);
  };
}
