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
  type ClaimedRow,
  type ClaimRange,
  type ClaimResult,
  claimCall,
  OwnerSlots,
  readClaimResult,
  type StandingRequest,
} from './claim-query.ts';
import type { DueIndex } from './due-index.ts';
import type { PrimaryPool } from './pool.ts';
import { readStates } from './state.ts';
import type { Row } from './statement.ts';

/** Maximum number of rows of a query, when it widens to get past owners without free slots. */
const WIDEST_QUERY = 4096;

/** The first query of a claim from a bucket, and its result. */
type FirstQuery = {
  range: ClaimRange;
  isBeginning: boolean;
  /** Whether it excluded no owner. */
  isOfAll: boolean;
  rows: Row[];
};

type Options = {
  pool: PrimaryPool;
  buckets: Buckets;
  dueIndex: DueIndex;
  /** The rows of claims that can be completed directly. */
  claimed: WeakMap<Claim, ClaimedRow>;
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
      isApart: buckets.distributed !== undefined,
    });

  async function take(rows: readonly Row[], slots: OwnerSlots): Promise<ClaimResult> {
    const found = readClaimResult(rows, (claim, row) => claimed.set(claim, row));
    if (found.incomplete.length > 0) await complete(found.incomplete);
    for (const { occurrence } of found.claims) slots.take(occurrence.owner);
    return found;
  }

  /** Reads the alarms of claims. */
  async function complete(claims: readonly Claim[]): Promise<void> {
    const keys = claims.map(({ occurrence: { owner, alarmId } }) => ({ owner, id: alarmId }));
    const states = await readStates(pool, buckets, keys);
    const alarms = new Map(states.map(({ state: { alarm } }) => [`${alarm.owner} ${alarm.id}`, alarm]));
    for (const claim of claims) {
      const { owner, alarmId } = claim.occurrence;
      claim.alarm = alarms.get(`${owner} ${alarmId}`) ?? claim.alarm;
    }
  }

  /** Continues in a bucket after the first query, until the limit is reached or nothing more is available. */
  async function takeUpTo({ bucket, limit }: Portion, first: FirstQuery, request: StandingRequest, slots: OwnerSlots) {
    const claims: Claim[] = [];
    const range: ClaimRange = { ...first.range };
    let { rows } = first;
    for (;;) {
      const found = await take(rows, slots);
      claims.push(...found.claims);
      // Skipped rows belong to owners without free slots, or to another replica.
      if (found.seen < range.width || found.next !== undefined) {
        const full = slots.full().filter((owner) => buckets.of(owner) === bucket);
        // Something may be due before the range.
        dueIndex.recordQuery(bucket, first.isBeginning ? found.next : undefined, full);
        return claims;
      }
      if (claims.length >= limit) {
        dueIndex.recordQuery(bucket, found.until, undefined, found.left);
        if (first.isOfAll && range.limit === limit && found.claims.length === found.seen)
          dueIndex.recordClaimed(bucket, found.until, first.isBeginning);
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
    const queries = portions.map(({ bucket, limit }) => {
      const { from, isBeginning } = dueIndex.claimFrom(bucket);
      dueIndex.beginQuery(bucket);
      const range = { from, width: limit, limit };
      const isOfAll = !slots.full().some((owner) => buckets.of(owner) === bucket);
      return { range, isBeginning, isOfAll, call: claimCallFor(bucket, request, slots, range) };
    });
    const answers = await buckets.query(
      pool,
      queries.map(({ call }) => call),
    );
    return Promise.allSettled(
      answers.map(async (answer, index) => {
        if (answer.status === 'rejected') {
          onFailure();
          throw answer.reason;
        }
        return takeUpTo(portions[index]!, { ...queries[index]!, rows: answer.value }, request, slots);
      }),
    );
  }

  return async (request: StandingRequest): Promise<Claim[]> => {
    if (request.limit <= 0 || request.perOwner <= 0) return [];
    const slots = new OwnerSlots(request);
    return order.claim(request, (portions) => claimFrom(portions, request, slots));
  };
}
