/**
 * The next due time of each bucket. The result of a query is cached for a short time and updated with this process's
 * own writes. So a claim needs no preceding query whether something is due.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { Buckets, ClaimOrder } from './buckets.ts';
import type { PrimaryPool } from './pool.ts';
import { statement } from './statement.ts';

/** How long a result is valid: other replicas store alarms, too. */
export const FRESH_MS = 250;

/** The first due occurrence without a claim. Owners $2 are excluded. */
const NEXT = statement(
  'next_due',
  `
  SELECT look_at FROM progress
  WHERE bucket = $1 AND look_at IS NOT NULL AND holder IS NULL AND owner <> ALL ($2::text[])
  ORDER BY look_at LIMIT 1`,
);

type Entry = {
  /** The first due instant; Infinity when nothing is due; `undefined` when it is unknown. */
  due: number | undefined;
  /** Excluded owners; `undefined` when the query stopped at its limit: then more is probably due at `due`. */
  excluded: readonly string[] | undefined;
  /** A lower bound of the due occurrences beyond the limit of the query. */
  remaining: number | undefined;
  /** Time of the query, by the monotonic clock. */
  queriedAt: number;
  /** The earliest due time that was stored since a query began. */
  stored: number;
  /** This replica has claimed everything that was due before, as far as it was there at a time of the monotonic clock. */
  claimedTo: number;
  claimedToAt: number;
};

const BEGINNING = Number.MIN_SAFE_INTEGER;

/** The earliest due time of the alarm's unclaimed occurrences. */
export function earliestDue({ occurrences }: AlarmState): number | undefined {
  let earliest: number | undefined;
  for (const { dueAt, claimedAt } of occurrences)
    if (dueAt !== null && claimedAt === null && (earliest === undefined || dueAt < earliest)) earliest = dueAt;
  return earliest;
}

export class DueIndex {
  readonly #buckets: Buckets;
  readonly #clock: Clock;
  readonly #entries: Entry[];

  constructor(buckets: Buckets, clock: Clock) {
    this.#buckets = buckets;
    this.#clock = clock;
    this.#entries = buckets.all().map(() => ({
      due: undefined,
      excluded: [],
      remaining: undefined,
      queriedAt: 0,
      stored: Infinity,
      claimedTo: BEGINNING,
      claimedToAt: 0,
    }));
  }

  /**
   * Where a claim from a bucket begins. In a backlog it is where the last one ended, because the index has an entry for
   * every row that was claimed since the last vacuum. A claim from the beginning finds now and then what others added.
   */
  claimFrom(bucket: number): { from: number; isBeginning: boolean } {
    const { claimedTo, claimedToAt } = this.#entries[bucket]!;
    const from = this.#clock.monotonic() - claimedToAt <= FRESH_MS ? claimedTo : BEGINNING;
    return { from, isBeginning: from === BEGINNING };
  }

  /**
   * A query took all rows that it read, up to a due time.
   *
   * @param isBeginning whether it began at the beginning
   */
  recordClaimed(bucket: number, until: number, isBeginning: boolean): void {
    const entry = this.#entries[bucket]!;
    entry.claimedTo = Math.min(until, entry.stored);
    if (isBeginning) entry.claimedToAt = this.#clock.monotonic();
  }

  /** A query of a bucket begins; {@link recordQuery} ends it. */
  beginQuery(bucket: number): void {
    this.#entries[bucket]!.stored = Infinity;
  }

  /**
   * @param due the first due instant, Infinity when nothing is due; `undefined` when the query cannot determine it
   * @param excluded the excluded owners; `undefined` when the query stopped at its limit, at `due`
   * @param left a lower bound of the remaining due occurrences, when they were counted
   */
  recordQuery(bucket: number, due: number | undefined, excluded: readonly string[] | undefined, left?: number): void {
    const entry = this.#entries[bucket]!;
    entry.due = due === undefined ? undefined : Math.min(due, entry.stored);
    entry.excluded = excluded;
    entry.remaining = left;
    entry.queriedAt = this.#clock.monotonic();
  }

  /** This process has stored the alarm in this state. */
  recordStored(state: AlarmState): void {
    const due = earliestDue(state);
    if (due !== undefined) this.noteDue(this.#buckets.of(state.alarm.owner), due, state.alarm.owner);
  }

  /** An occurrence in the bucket, of this owner if it is known, may be due at that instant. */
  noteDue(bucket: number, due: number, owner?: string): void {
    const entry = this.#entries[bucket];
    if (!entry) return;
    entry.stored = Math.min(entry.stored, due);
    entry.claimedTo = Math.min(entry.claimedTo, due);
    const isExcluded = owner !== undefined && entry.excluded?.includes(owner);
    if (entry.due !== undefined && !isExcluded) entry.due = Math.min(entry.due, due);
  }

  /** A pending occurrence may have been removed. */
  invalidate(bucket: number): void {
    const entry = this.#entries[bucket]!;
    entry.due = undefined;
    entry.claimedTo = BEGINNING;
  }

  /** A lower bound of the due occurrences beyond the limit of the last query. */
  remaining(bucket: number): number | undefined {
    const { due, remaining } = this.#entries[bucket]!;
    return due === undefined ? undefined : remaining;
  }

  /**
   * The cached due time of a bucket, if it is recent; Infinity when nothing is due. A due occurrence may belong to an
   * owner who has become saturated since; then the claim finds nothing.
   */
  cachedDue(bucket: number, saturated: ReadonlySet<string>, now: number, freshMs = FRESH_MS): number | undefined {
    const { due, excluded, queriedAt } = this.#entries[bucket]!;
    // A backlog is processed bucket by bucket; meanwhile each bucket is queried less often.
    const fresh = excluded ? freshMs : FRESH_MS * this.#buckets.count;
    if (due === undefined || this.#clock.monotonic() - queriedAt > fresh) return undefined;
    if (!excluded) return due <= now ? due : undefined;
    if (!excluded.every((owner) => saturated.has(owner))) return undefined;
    return due <= now || excluded.length === this.#buckets.ownersIn(bucket, saturated).length ? due : undefined;
  }

  /** The time since the last query of a bucket, in milliseconds. */
  ageMs(bucket: number): number {
    return this.#clock.monotonic() - this.#entries[bucket]!.queriedAt;
  }

  /** An owner excluded by the last query has a free slot now: a claim decides. */
  isFreed(bucket: number, saturated: ReadonlySet<string>): boolean {
    const { due, excluded } = this.#entries[bucket]!;
    const isFresh = due !== undefined && this.ageMs(bucket) <= FRESH_MS;
    return isFresh && excluded !== undefined && !excluded.every((owner) => saturated.has(owner));
  }

  /** The earliest due time that was stored since the last query of a bucket began; Infinity for none. */
  storedSince(bucket: number): number {
    return this.#entries[bucket]!.stored;
  }
}

/** The order of claims from a single bucket. */
export function orderOfOne(dueIndex: DueIndex): ClaimOrder {
  return {
    join() {},
    recordClaim() {},
    leave() {},
    waitMs: () => 0,
    countedDue: () => 0,
    lookAhead(saturated, now) {
      const due = dueIndex.cachedDue(0, saturated, now);
      return due === undefined ? { known: [], unknown: [0] } : { known: [due], unknown: [] };
    },
    async claim({ limit }, claimFrom) {
      const [claims] = await claimFrom([{ bucket: 0, limit }]);
      if (claims!.status === 'rejected') throw claims!.reason;
      return claims!.value;
    },
  };
}

type NextDue = { pool: PrimaryPool; buckets: Buckets; dueIndex: DueIndex; order: ClaimOrder };

export function prepareNextDue({ pool, buckets, dueIndex, order }: NextDue) {
  async function query(which: readonly number[], saturated: ReadonlySet<string>) {
    const queries = which.map((bucket) => {
      const excluded = buckets.ownersIn(bucket, saturated);
      dueIndex.beginQuery(bucket);
      return { bucket, excluded, call: { statement: NEXT, values: [bucket, excluded] } };
    });
    const answers = await buckets.query(
      pool,
      queries.map(({ call }) => call),
    );
    const instants: number[] = [];
    answers.forEach((answer, index) => {
      if (answer.status === 'rejected') return;
      const { bucket, excluded } = queries[index]!;
      const due = (answer.value[0]?.[0] as number | undefined) ?? Infinity;
      dueIndex.recordQuery(bucket, due, excluded);
      instants.push(Math.min(due, dueIndex.storedSince(bucket)) + order.waitMs(bucket));
    });
    return { instants, failure: answers.find((answer) => answer.status === 'rejected') };
  }

  /** When {@link AlarmStore.claim} could find work in any bucket. */
  return async (saturated: ReadonlySet<string>, now: number) => {
    const { known, unknown } = order.lookAhead(saturated, now);
    const { instants, failure } = await query(unknown, saturated);
    instants.push(...known);
    // If one of several servers is unavailable, the buckets of the others count.
    if (failure && instants.length === 0) throw failure.reason;
    const next = Math.min(...instants);
    return next === Infinity ? undefined : next;
  };
}
