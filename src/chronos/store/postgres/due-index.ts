/**
 * The next due time of each bucket. The result of a query is cached for a short time and updated with this process's
 * own writes. So a claim needs no preceding query whether something is due.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { Buckets } from './buckets.ts';
import { PREFERENCE_DELAY_MS } from './membership.ts';
import type { PrimaryPool } from './pool.ts';
import { statement } from './statement.ts';

/** How long a result is valid: other replicas store alarms, too. */
const FRESH_MS = 250;
/** The same while something is due in another bucket. */
const BUSY_MS = 1000;

/**
 * The first due occurrence without a lease, and the first lease expiry among the occurrences due before it. Later due
 * occurrences follow earlier ones, so their leases do not matter. Owners $2 are excluded.
 */
const NEXT = statement(
  'next_due',
  `
  WITH due AS (
    SELECT look_at FROM occurrences
    WHERE bucket = $1 AND look_at IS NOT NULL AND lease_until IS NULL AND owner <> ALL ($2::text[])
    ORDER BY look_at LIMIT 1
  )
  SELECT (SELECT look_at FROM due), (
    SELECT min(lease_until) FROM occurrences
    WHERE bucket = $1 AND look_at <= COALESCE((SELECT look_at FROM due), 9223372036854775807) AND lease_until IS NOT NULL
      AND owner <> ALL ($2::text[]))`,
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
};

/** The earliest due time of the alarm's pending occurrences without a lease. */
export function earliestDue({ occurrences }: AlarmState): number | undefined {
  let earliest: number | undefined;
  for (const { dueAt, leaseUntil } of occurrences)
    if (dueAt !== null && leaseUntil === null && (earliest === undefined || dueAt < earliest)) earliest = dueAt;
  return earliest;
}

export class DueIndex {
  readonly #pool: PrimaryPool;
  readonly #buckets: Buckets;
  readonly #clock: Clock;
  readonly #entries: Entry[];
  /** Whether another replica prefers a bucket. */
  readonly #isPreferredElsewhere: (bucket: number) => boolean;

  constructor(pool: PrimaryPool, buckets: Buckets, clock: Clock, isPreferredElsewhere: (bucket: number) => boolean) {
    this.#isPreferredElsewhere = isPreferredElsewhere;
    this.#pool = pool;
    this.#buckets = buckets;
    this.#clock = clock;
    this.#entries = buckets
      .all()
      .map(() => ({ due: undefined, excluded: [], remaining: undefined, queriedAt: 0, stored: Infinity }));
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
    if (due !== undefined) this.noteDue(this.#buckets.of(state.alarm.owner), due);
  }

  /** An occurrence in the bucket may be due at that instant. */
  noteDue(bucket: number, due: number): void {
    const entry = this.#entries[bucket];
    if (!entry) return;
    entry.stored = Math.min(entry.stored, due);
    if (entry.due !== undefined) entry.due = Math.min(entry.due, due);
  }

  /** A pending occurrence may have been removed. */
  invalidate(bucket: number): void {
    this.#entries[bucket]!.due = undefined;
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
    return due <= now || excluded.length === this.#ofBucket(bucket, saturated).length ? due : undefined;
  }

  /**
   * The cached due times of all buckets. While something is due in one of them, results for the others are valid
   * longer.
   *
   * @returns when this replica is to claim from each bucket, `undefined` where a query is needed
   */
  dueTimes(saturated: ReadonlySet<string>, now: number): (number | undefined)[] {
    const known = this.#buckets.all().map((bucket) => this.#claimableAt(bucket, saturated, now));
    if (!known.some((due) => due !== undefined && due <= now)) return known;
    return known.map((due, bucket) => due ?? this.#claimableAt(bucket, saturated, now, BUSY_MS));
  }

  /**
   * When this replica may claim from a bucket: when an occurrence is due, or after the preferred replica's head start.
   */
  #claimableAt(bucket: number, saturated: ReadonlySet<string>, now: number, freshMs?: number): number | undefined {
    const due = this.cachedDue(bucket, saturated, now, freshMs);
    if (due === undefined || !this.#isPreferredElsewhere(bucket)) return due;
    const claimableAt = due + PREFERENCE_DELAY_MS;
    const isOld = this.#clock.monotonic() - this.#entries[bucket]!.queriedAt > PREFERENCE_DELAY_MS / 2;
    return claimableAt <= now && isOld ? undefined : claimableAt;
  }

  /** An owner excluded by the last query has a free slot now: a claim decides. */
  #isFreed(bucket: number, saturated: ReadonlySet<string>): boolean {
    const { due, excluded, queriedAt } = this.#entries[bucket]!;
    const isFresh = due !== undefined && this.#clock.monotonic() - queriedAt <= FRESH_MS;
    return isFresh && excluded !== undefined && !excluded.every((owner) => saturated.has(owner));
  }

  /**
   * The due time by which a bucket without a cached due time is sorted. If its owners had no free slot, it counts as
   * due since its last query, and several slots are free by its turn. Any other bucket comes first.
   */
  lastQuery(bucket: number, saturated: ReadonlySet<string>, now: number): number {
    if (!this.#isFreed(bucket, saturated)) return Number.NEGATIVE_INFINITY;
    return now - (this.#clock.monotonic() - this.#entries[bucket]!.queriedAt);
  }

  #ofBucket(bucket: number, owners: ReadonlySet<string>): string[] {
    return this.#buckets.count === 1 ? [...owners] : [...owners].filter((owner) => this.#buckets.of(owner) === bucket);
  }

  /** When {@link AlarmStore.claim} could find work in any bucket. */
  async nextDueAt(saturated: ReadonlySet<string>, now: number, onLease: (bucket: number, until: number) => void) {
    const known = this.dueTimes(saturated, now);
    const isDue = known.some((due) => due !== undefined && due <= now);
    const unknown = this.#buckets
      .all()
      .filter((bucket) => known[bucket] === undefined && !(isDue && this.#isFreed(bucket, saturated)));
    const { instants, failure } = await this.#query(unknown, saturated, onLease);
    instants.push(...known.filter((due) => due !== undefined));
    // If one of several servers is unavailable, the buckets of the others count.
    if (failure && instants.length === 0) throw failure.reason;
    const next = Math.min(...instants);
    return next === Infinity ? undefined : next;
  }

  async #query(
    which: readonly number[],
    saturated: ReadonlySet<string>,
    onLease: (bucket: number, until: number) => void,
  ) {
    const queries = which.map((bucket) => {
      const excluded = this.#ofBucket(bucket, saturated);
      this.beginQuery(bucket);
      return { bucket, excluded, call: { statement: NEXT, values: [bucket, excluded] } };
    });
    const answers = await this.#buckets.query(
      this.#pool,
      queries.map(({ call }) => call),
    );
    const instants: number[] = [];
    answers.forEach((answer, index) => {
      if (answer.status === 'rejected') return;
      const { bucket, excluded } = queries[index]!;
      const [due, lease] = answer.value[0]!.map((instant) => (instant as number | null) ?? Infinity) as [
        number,
        number,
      ];
      if (lease < Infinity) onLease(bucket, lease);
      this.recordQuery(bucket, due <= lease ? due : undefined, excluded);
      const first = Math.min(due, this.#entries[bucket]!.stored);
      instants.push(Math.min(this.#isPreferredElsewhere(bucket) ? first + PREFERENCE_DELAY_MS : first, lease));
    });
    return { instants, failure: answers.find((answer) => answer.status === 'rejected') };
  }
}
