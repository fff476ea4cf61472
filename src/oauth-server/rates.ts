/** A rate limit per key and in total, as token buckets. */
import type { Clock } from '../kit/clock/clock.ts';

export type Rate = {
  /** Size of the bucket. */
  readonly burst: number;
  readonly perMinute: number;
};

type Bucket = { left: number; at: number };

/** Maximum number of keys in memory. The least recently used is dropped and starts again with a full bucket. */
const MOST_KEYS = 4096;

export class RateLimit {
  readonly #clock: Clock;
  readonly #ofKey: Rate;
  readonly #total: Rate;
  readonly #buckets = new Map<string, Bucket>();
  readonly #all: Bucket;

  constructor(clock: Clock, { ofKey, total }: { ofKey: Rate; total: Rate }) {
    this.#clock = clock;
    this.#ofKey = ofKey;
    this.#total = total;
    this.#all = { left: total.burst, at: clock.monotonic() };
  }

  /** Takes one token. @param key without it, only the total limits. @returns whether a token was left */
  take(key: string | undefined): boolean {
    const now = this.#clock.monotonic();
    const buckets = key === undefined ? [this.#all] : [this.#bucketOf(key, now), this.#all];
    refill(this.#all, this.#total, now);
    if (buckets.some(({ left }) => left < 1)) return false;
    for (const bucket of buckets) bucket.left--;
    return true;
  }

  #bucketOf(key: string, now: number): Bucket {
    const bucket = this.#buckets.get(key) ?? { left: this.#ofKey.burst, at: now };
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > MOST_KEYS) this.#buckets.delete(this.#buckets.keys().next().value!);
    refill(bucket, this.#ofKey, now);
    return bucket;
  }
}

function refill(bucket: Bucket, { burst, perMinute }: Rate, now: number): void {
  bucket.left = Math.min(burst, bucket.left + ((now - bucket.at) / 60_000) * perMinute);
  bucket.at = now;
}
