/**
 * When there will be something to claim, bucket by bucket. What a look at a bucket says is remembered for a moment, and
 * corrected by what this process stores itself: so a claim need not be preceded by the question whether it is worth it.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { Buckets } from './buckets.ts';
import type { PrimaryPool } from './pool.ts';
import { statement } from './statement.ts';

/** How long an answer is relied on: other replicas store alarms, too. */
const FRESH_MS = 250;

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

  constructor(pool: PrimaryPool, buckets: Buckets, clock: Clock) {
    this.#pool = pool;
    this.#buckets = buckets;
    this.#clock = clock;
    this.#entries = buckets.all().map(() => ({ due: undefined, without: [], askedAt: 0, stored: Infinity }));
  }

  /** A look at a bucket begins; {@link learn} ends it. */
  begin(bucket: number): void {
    this.#entries[bucket]!.stored = Infinity;
  }

  /**
   * @param due the first due instant, Infinity when nothing is; `undefined` when the look cannot tell
   * @param without the owners that were left out; `undefined` when the look was cut short and ended at `due`
   */
  learn(bucket: number, due: number | undefined, without: readonly string[] | undefined): void {
    const entry = this.#entries[bucket]!;
    entry.due = due === undefined ? undefined : Math.min(due, entry.stored);
    entry.without = without;
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

  /**
   * What is known of a bucket, if that is recent; Infinity when nothing is due. What is due by now may belong to an owner
   * who has become saturated since: the claim will tell.
   */
  known(bucket: number, saturated: ReadonlySet<string>, now: number): number | undefined {
    const { due, without, askedAt } = this.#entries[bucket]!;
    if (due === undefined || this.#clock.monotonic() - askedAt > FRESH_MS) return undefined;
    if (!without) return due <= now ? due : undefined;
    if (!without.every((owner) => saturated.has(owner))) return undefined;
    return due <= now || without.length === this.#ofBucket(bucket, saturated).length ? due : undefined;
  }

  #ofBucket(bucket: number, owners: ReadonlySet<string>): string[] {
    return this.#buckets.count === 1 ? [...owners] : [...owners].filter((owner) => this.#buckets.of(owner) === bucket);
  }

  /** When {@link AlarmStore.claim} could have something to do in any bucket. */
  async nextDueAt(saturated: ReadonlySet<string>, now: number, onLease: (bucket: number, until: number) => void) {
    const answers = await Promise.allSettled(
      this.#buckets
        .all()
        .map(async (bucket) => this.known(bucket, saturated, now) ?? this.#ask(bucket, saturated, onLease)),
    );
    const [failed] = answers.filter((answer) => answer.status === 'rejected');
    const instants = answers.filter((answer) => answer.status === 'fulfilled').map(({ value }) => value);
    // Where one of several servers is away, the buckets of the others count.
    if (failed && instants.length === 0) throw failed.reason;
    const next = Math.min(...instants);
    return next === Infinity ? undefined : next;
  }

  async #ask(bucket: number, saturated: ReadonlySet<string>, onLease: (bucket: number, until: number) => void) {
    const without = this.#ofBucket(bucket, saturated);
    this.begin(bucket);
    const [row] = (await this.#pool.query(NEXT, [bucket, without])) as [number | null, number | null][];
    const due = row![0] ?? Infinity;
    const lease = row![1] ?? Infinity;
    if (lease < Infinity) onLease(bucket, lease);
    this.learn(bucket, due <= lease ? due : undefined, without);
    return Math.min(due, lease, this.#entries[bucket]!.stored);
  }
}
