/**
 * When there will be something to claim, bucket by bucket. What a look at a bucket says is remembered for a moment, and
 * corrected by what this process stores itself: so a claim need not be preceded by the question whether it is worth it.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { Buckets } from './buckets.ts';
import type { PrimaryPool } from './pool.ts';
import { statement } from './statement.ts';
import { STAND_BACK_MS } from './team.ts';

/** How long an answer is relied on: other replicas store alarms, too. */
const FRESH_MS = 250;
/** The same while something is due elsewhere. */
const BUSY_MS = 1000;

/**
 * The first that is due and nobody holds, and the first lease to end of those that such a look steps over: later ones
 * are behind what is due earlier. Owners $2 are left out.
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
  /** The first due instant; Infinity when nothing is. `undefined` when that is not known. */
  due: number | undefined;
  /** Owners who were left out; `undefined` where the look was cut short: then `due` says that there is probably more. */
  without: readonly string[] | undefined;
  /** How many were left where the look was cut short, or more. */
  left: number | undefined;
  /** When it was asked, by the monotonic clock. */
  askedAt: number;
  /** The earliest that was stored since a look began. */
  stored: number;
};

/** The earliest instant at which something of the alarm is owed and nobody holds it. */
export function earliestDue({ occurrences }: AlarmState): number | undefined {
  let earliest: number | undefined;
  for (const { dueAt, leaseUntil } of occurrences)
    if (dueAt !== null && leaseUntil === null && (earliest === undefined || dueAt < earliest)) earliest = dueAt;
  return earliest;
}

export class Outlook {
  readonly #pool: PrimaryPool;
  readonly #buckets: Buckets;
  readonly #clock: Clock;
  readonly #entries: Entry[];
  /** Whether a bucket is left to another replica for a moment. */
  readonly #standsBack: (bucket: number) => boolean;

  constructor(pool: PrimaryPool, buckets: Buckets, clock: Clock, standsBack: (bucket: number) => boolean) {
    this.#standsBack = standsBack;
    this.#pool = pool;
    this.#buckets = buckets;
    this.#clock = clock;
    this.#entries = buckets
      .all()
      .map(() => ({ due: undefined, without: [], left: undefined, askedAt: 0, stored: Infinity }));
  }

  /** A look at a bucket begins; {@link learn} ends it. */
  begin(bucket: number): void {
    this.#entries[bucket]!.stored = Infinity;
  }

  /**
   * @param due the first due instant, Infinity when nothing is; `undefined` when the look cannot tell
   * @param without the owners that were left out; `undefined` when the look was cut short and ended at `due`
   * @param left how many that look has left, or more, where it counted them
   */
  learn(bucket: number, due: number | undefined, without: readonly string[] | undefined, left?: number): void {
    const entry = this.#entries[bucket]!;
    entry.due = due === undefined ? undefined : Math.min(due, entry.stored);
    entry.without = without;
    entry.left = left;
    entry.askedAt = this.#clock.monotonic();
  }

  /** This process has stored the alarm as it is here. */
  stored(state: AlarmState): void {
    const due = earliestDue(state);
    if (due !== undefined) this.hear(this.#buckets.of(state.alarm.owner), due);
  }

  /** Something in the bucket may be due at that instant. */
  hear(bucket: number, due: number): void {
    const entry = this.#entries[bucket];
    if (!entry) return;
    entry.stored = Math.min(entry.stored, due);
    if (entry.due !== undefined) entry.due = Math.min(entry.due, due);
  }

  /** Something may not be owed any more. */
  forget(bucket: number): void {
    this.#entries[bucket]!.due = undefined;
  }

  /** How many a look that was cut short has left to be claimed, or more. */
  left(bucket: number): number | undefined {
    const { due, left } = this.#entries[bucket]!;
    return due === undefined ? undefined : left;
  }

  /**
   * What is known of a bucket, if that is recent; Infinity when nothing is due. What is due by now may belong to an owner
   * who has become saturated since: the claim will tell.
   */
  known(bucket: number, saturated: ReadonlySet<string>, now: number, freshMs = FRESH_MS): number | undefined {
    const { due, without, askedAt } = this.#entries[bucket]!;
    // A backlog is worked off bucket by bucket; while that lasts, each is left alone for a while.
    const fresh = without ? freshMs : FRESH_MS * this.#buckets.count;
    if (due === undefined || this.#clock.monotonic() - askedAt > fresh) return undefined;
    if (!without) return due <= now ? due : undefined;
    if (!without.every((owner) => saturated.has(owner))) return undefined;
    return due <= now || without.length === this.#ofBucket(bucket, saturated).length ? due : undefined;
  }

  /**
   * What is known of all buckets. While something is due in one of them, the others may wait longer to be asked again.
   *
   * @returns when this replica is to claim from each, `undefined` where that has to be asked
   */
  overview(saturated: ReadonlySet<string>, now: number): (number | undefined)[] {
    const known = this.#buckets.all().map((bucket) => this.#turn(bucket, saturated, now));
    if (!known.some((due) => due !== undefined && due <= now)) return known;
    return known.map((due, bucket) => due ?? this.#turn(bucket, saturated, now, BUSY_MS));
  }

  /** When it is this replica's turn in a bucket: at once, or when nobody else has rung what is due. */
  #turn(bucket: number, saturated: ReadonlySet<string>, now: number, freshMs?: number): number | undefined {
    const due = this.known(bucket, saturated, now, freshMs);
    if (due === undefined || !this.#standsBack(bucket)) return due;
    const turn = due + STAND_BACK_MS;
    const isOld = this.#clock.monotonic() - this.#entries[bucket]!.askedAt > STAND_BACK_MS / 2;
    return turn <= now && isOld ? undefined : turn;
  }

  /** An owner was left out when the bucket was looked at, and would not be now: the claim will tell. */
  #isFreed(bucket: number, saturated: ReadonlySet<string>): boolean {
    const { due, without, askedAt } = this.#entries[bucket]!;
    const isFresh = due !== undefined && this.#clock.monotonic() - askedAt <= FRESH_MS;
    return isFresh && without !== undefined && !without.every((owner) => saturated.has(owner));
  }

  /**
   * Where a bucket of which nothing is known stands in the line of those that are due. One whose owners had no place left is as
   * overdue as the last look at it is old: then it has several places by its turn. Any other comes first.
   */
  lastLook(bucket: number, saturated: ReadonlySet<string>, now: number): number {
    if (!this.#isFreed(bucket, saturated)) return Number.NEGATIVE_INFINITY;
    return now - (this.#clock.monotonic() - this.#entries[bucket]!.askedAt);
  }

  #ofBucket(bucket: number, owners: ReadonlySet<string>): string[] {
    return this.#buckets.count === 1 ? [...owners] : [...owners].filter((owner) => this.#buckets.of(owner) === bucket);
  }

  /** When {@link AlarmStore.claim} could have something to do in any bucket. */
  async nextDueAt(saturated: ReadonlySet<string>, now: number, onLease: (bucket: number, until: number) => void) {
    const known = this.overview(saturated, now);
    const isDue = known.some((due) => due !== undefined && due <= now);
    const unknown = this.#buckets
      .all()
      .filter((bucket) => known[bucket] === undefined && !(isDue && this.#isFreed(bucket, saturated)));
    const { instants, failure } = await this.#ask(unknown, saturated, onLease);
    instants.push(...known.filter((due) => due !== undefined));
    // Where one of several servers is away, the buckets of the others count.
    if (failure && instants.length === 0) throw failure.reason;
    const next = Math.min(...instants);
    return next === Infinity ? undefined : next;
  }

  async #ask(
    which: readonly number[],
    saturated: ReadonlySet<string>,
    onLease: (bucket: number, until: number) => void,
  ) {
    const asked = which.map((bucket) => {
      const without = this.#ofBucket(bucket, saturated);
      this.begin(bucket);
      return { bucket, without, call: { statement: NEXT, values: [bucket, without] } };
    });
    const answers = await this.#buckets.ask(
      this.#pool,
      asked.map(({ call }) => call),
    );
    const instants: number[] = [];
    answers.forEach((answer, index) => {
      if (answer.status === 'rejected') return;
      const { bucket, without } = asked[index]!;
      const [due, lease] = answer.value[0]!.map((instant) => (instant as number | null) ?? Infinity) as [
        number,
        number,
      ];
      if (lease < Infinity) onLease(bucket, lease);
      this.learn(bucket, due <= lease ? due : undefined, without);
      const first = Math.min(due, this.#entries[bucket]!.stored);
      instants.push(Math.min(this.#standsBack(bucket) ? first + STAND_BACK_MS : first, lease));
    });
    return { instants, failure: answers.find((answer) => answer.status === 'rejected') };
  }
}
