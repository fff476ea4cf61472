/**
 * Claims due occurrences.
 *
 * The order is earliest due first over all owners of a bucket. Rows that another replica is claiming are skipped. Each
 * owner has a limited number of slots. Owners without a free slot are excluded. An owner whose slots fill up within a
 * claim is excluded from the next query, which continues where the last one ended. So one owner's backlog does not hide
 * the occurrences of others.
 */
import type { Logger } from '../../../kit/log/log.ts';
import type { Claim } from '../store.ts';
import type { Buckets, ClaimOrder, Portion } from './buckets.ts';
import {
  type ClaimRange,
  type ClaimResult,
  claimCall,
  OwnerSlots,
  readClaimResult,
  type StandingRequest,
} from './claim-query.ts';
import type { DueIndex } from './due-index.ts';
import type { PrimaryPool } from './pool.ts';
import type { ClaimedStates } from './state.ts';
import { readStates } from './state.ts';
import type { Row } from './statement.ts';

/** Maximum number of rows of a query, when it widens to get past owners without free slots. */
const WIDEST_QUERY = 4096;

type Options = {
  pool: PrimaryPool;
  buckets: Buckets;
  dueIndex: DueIndex;
  claimed: ClaimedStates;
  order: ClaimOrder;
  log: Logger;
  /** Called when a statement has failed that may have claimed something. */
  onFailure: () => void;
};

export function prepareClaim({ pool, buckets, dueIndex, claimed, order, log, onFailure }: Options) {
  const claimCallFor = (bucket: number, request: StandingRequest, slots: OwnerSlots, range: ClaimRange) =>
    claimCall(bucket, request, slots, range, {
      mine: (owner) => buckets.of(owner) === bucket,
      depth: order.countedDue(request.limit),
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
  async function takeUpTo({ bucket, limit }: Portion, first: Row[], request: StandingRequest, slots: OwnerSlots) {
    const claims: Claim[] = [];
    const range: ClaimRange = { from: Number.MIN_SAFE_INTEGER, width: limit, limit };
    let rows = first;
    for (;;) {
      const found = await take(rows, slots);
      claims.push(...found.claims);
      // Skipped rows belong to owners without free slots, or to another replica.
      if (found.seen < range.width || found.next !== undefined) {
        const full = slots.full().filter((owner) => buckets.of(owner) === bucket);
        dueIndex.recordQuery(bucket, found.next, full);
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
        // Occurrences that are already claimed belong to this replica: return them.
        onFailure();
        if (claims.length === 0) throw error;
        log.warn({ err: error, claimed: claims.length }, 'a claim ended early');
        return claims;
      }
    }
  }

  /** Claims from several buckets; returns for each the claims, or why it failed. */
  async function claimFrom(portions: readonly Portion[], request: StandingRequest, slots: OwnerSlots) {
    const calls = portions.map(({ bucket, limit }) => {
      dueIndex.beginQuery(bucket);
      return claimCallFor(bucket, request, slots, { from: Number.MIN_SAFE_INTEGER, width: limit, limit });
    });
    const answers = await buckets.query(pool, calls);
    return Promise.allSettled(
      answers.map(async (answer, index) => {
        if (answer.status === 'rejected') {
          onFailure();
          throw answer.reason;
        }
        return takeUpTo(portions[index]!, answer.value, request, slots);
      }),
    );
  }

  return async (request: StandingRequest): Promise<Claim[]> => {
    if (request.limit <= 0 || request.perOwner <= 0) return [];
    const slots = new OwnerSlots(request);
    return order.claim(request, (portions) => claimFrom(portions, request, slots));
  };
}
