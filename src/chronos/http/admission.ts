/**
 * Limits on requests and storage of clients, so that one client cannot use up the capacity of all. Every client here
 * has the transport token and may have invented an owner, so trust decides. The lower half of every common limit is for
 * owners who were known before, and its last quarter for enrolled ones (decision 18).
 *
 * Rates are counted in this process: n replicas admit n times as much. Storage is counted in the store.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { OverBound } from '../store/limits.ts';
import type { AgentKey, AlarmStore, PinLimits, StoreLimits, StoreUsage } from '../store/store.ts';

/**
 * The trust in a caller. `unauthenticated`: nothing is proved. `fresh`: a key pinned by trust on first use within the hour.
 * `known`: a key pinned before. `enrolled`: an operator enrolled the key.
 */
export type Trust = 'unauthenticated' | 'fresh' | 'known' | 'enrolled';

const HOUR_MS = 3_600_000;

export function trustOf(key: AgentKey | undefined, now: number): Trust {
  if (!key || key.revokedAt !== null) return 'unauthenticated';
  if (key.source === 'enrolled') return 'enrolled';
  return trustSince(key.enrolledAt, now);
}

/** The trust in a caller of whom only the age is known: that of a key, or of something that its owner has stored. */
export const trustSince = (instant: number, now: number): Trust => (now - instant < HOUR_MS ? 'fresh' : 'known');

/** The part of a common bucket that each level of trust must leave. */
const FLOOR: Record<Trust, number> = { unauthenticated: 0.5, fresh: 0.5, known: 0.25, enrolled: 0 };

/** Requests per minute; as many may come at once after a pause. 0: no limit. */
export type Rate = { perMinute: number; inAll: number };

/** A token bucket: it fills at a constant rate to its capacity, one minute's worth. */
class Bucket {
  readonly #capacity: number;
  #level: number;
  #at: number;

  constructor(perMinute: number, now: number) {
    this.#capacity = perMinute;
    this.#level = perMinute;
    this.#at = now;
  }

  /** Milliseconds until one token can be taken while the level stays at or above a part of the capacity; 0: at once. */
  waitMs(floor: number, now: number): number {
    this.#fill(now);
    const missing = 1 + floor * this.#capacity - this.#level;
    return missing <= 0 ? 0 : (missing * 60_000) / this.#capacity;
  }

  take(): void {
    this.#level -= 1;
  }

  isFull(now: number): boolean {
    this.#fill(now);
    return this.#level >= this.#capacity;
  }

  #fill(now: number): void {
    this.#level = Math.min(this.#capacity, this.#level + ((now - this.#at) * this.#capacity) / 60_000);
    this.#at = now;
  }
}

/** Buckets in memory. Full buckets carry no information and are removed. */
const MOST_BUCKETS = 20_000;

/** One rate limit: a bucket for each client, and one for all. */
export class RateLimit {
  readonly #rate: Rate;
  readonly #clock: Clock;
  readonly #all: Bucket;
  #own = new Map<string, Bucket>();

  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
    this.#all = new Bucket(rate.inAll, clock.monotonic());
  }

  /** Takes one token. If there is none, returns the seconds to wait and whose limit was reached. */
  enter(client: string, trust: Trust): { waitSeconds: number; whose: 'own' | 'all' } | undefined {
    const now = this.#clock.monotonic();
    const { perMinute, inAll } = this.#rate;
    const own = perMinute === 0 ? undefined : this.#bucketOf(client, now);
    const ownWait = own?.waitMs(0, now) ?? 0;
    if (ownWait > 0) return { waitSeconds: Math.ceil(ownWait / 1000), whose: 'own' };
    const allWait = inAll === 0 ? 0 : this.#all.waitMs(FLOOR[trust], now);
    if (allWait > 0) return { waitSeconds: Math.ceil(allWait / 1000), whose: 'all' };
    own?.take();
    if (inAll > 0) this.#all.take();
    return undefined;
  }

  #bucketOf(client: string, now: number): Bucket {
    let bucket = this.#own.get(client);
    if (bucket) return bucket;
    if (this.#own.size >= MOST_BUCKETS) {
      this.#own = new Map([...this.#own].filter(([, known]) => !known.isFull(now)));
      // All these clients have asked within the minute, so the common bucket limits them.
      if (this.#own.size >= MOST_BUCKETS) this.#own.clear();
    }
    bucket = new Bucket(this.#rate.perMinute, now);
    this.#own.set(client, bucket);
    return bucket;
  }
}

export type AdmissionSettings = {
  challenges: Rate;
  creates: Rate;
  triggers: Rate;
  events: Rate;
  pins: PinLimits;
  /** For each owner. */
  stored: Required<StoreLimits>;
  /** Bytes of all owners together. */
  bytesInAll: number;
};

/**
 * Part of the store is for owners with few alarms: each known owner may use an equal share of it, whatever the others
 * store.
 */
const SHARED_PART = 0.4;
/** Interval between two reads of the store's size. Between them, new alarms of this process are added. */
const USAGE_AGE_MS = 30_000;

const RATE_TEXTS = {
  challenges: { settings: 'CHRONOS_CHALLENGES_PER_MINUTE', what: 'proofs of identity' },
  creates: { settings: 'CHRONOS_CREATES_PER_MINUTE', what: 'new and changed alarms' },
  triggers: { settings: 'CHRONOS_TRIGGERS_PER_MINUTE', what: 'triggers' },
  events: { settings: 'CHRONOS_EVENTS_PER_MINUTE', what: 'events' },
} as const;

/** The limits of one chronosd. */
export class Admission {
  readonly bounds: AdmissionSettings;
  readonly #store: Pick<AlarmStore, 'usage'>;
  readonly #clock: Clock;
  readonly #rateLimits: Record<keyof typeof RATE_TEXTS, RateLimit>;
  #usage: StoreUsage | undefined;
  #pendingUsage: { at: number; answer: Promise<StoreUsage> } | undefined;

  constructor(bounds: AdmissionSettings, store: Pick<AlarmStore, 'usage'>, clock: Clock) {
    this.bounds = bounds;
    this.#store = store;
    this.#clock = clock;
    this.#rateLimits = {
      challenges: new RateLimit(bounds.challenges, clock),
      creates: new RateLimit(bounds.creates, clock),
      triggers: new RateLimit(bounds.triggers, clock),
      events: new RateLimit(bounds.events, clock),
    };
  }

  /**
   * @throws OverBound when the client, or all of them together, exceed a rate
   */
  enter(gate: keyof typeof RATE_TEXTS, client: string, trust: Trust): void {
    const refusal = this.#rateLimits[gate].enter(client, trust);
    if (!refusal) return;
    const { settings, what } = RATE_TEXTS[gate];
    const [who, setting] = refusal.whose === 'own' ? ['you ask', settings] : ['all clients ask', `${settings}_IN_ALL`];
    const { waitSeconds: retryAfterSeconds } = refusal;
    throw new OverBound(
      gate,
      `${who} for ${what} faster than allowed (${setting}); send it again in ${retryAfterSeconds} s`,
      { retryAfterSeconds },
    );
  }

  /** How much this owner may store at present. The limit on active alarms is separate. */
  async storeLimits(trust: Trust): Promise<Required<StoreLimits>> {
    const { stored, bytesInAll } = this.bounds;
    if (bytesInAll === 0) return stored;
    const { bytes, owners } = await this.usage();
    const common = bytesInAll * (1 - SHARED_PART) * (1 - FLOOR[trust]);
    if (bytes < common) return stored;
    const share =
      trust === 'fresh' || trust === 'unauthenticated' ? 0 : (bytesInAll * SHARED_PART) / Math.max(1, owners);
    return { ...stored, maxBytes: Math.min(stored.maxBytes, share) };
  }

  /** How much the events of an owner may take up. Their wake is one for each alarm, so that only bytes count. */
  async eventLimits(): Promise<StoreLimits> {
    return { maxBytes: (await this.storeLimits('known')).maxBytes };
  }

  /** Adds a stored alarm to the counts. */
  recordStored(bytes: number): void {
    if (this.#usage) this.#usage = { ...this.#usage, alarms: this.#usage.alarms + 1, bytes: this.#usage.bytes + bytes };
  }

  /** The stored amount: at most half a minute old, plus the alarms that this process has stored since. */
  async usage(): Promise<StoreUsage> {
    const now = this.#clock.monotonic();
    if (!this.#pendingUsage || now - this.#pendingUsage.at >= USAGE_AGE_MS) {
      const answer = this.#store.usage();
      this.#pendingUsage = { at: now, answer };
      answer.then(
        (usage) => {
          this.#usage = usage;
        },
        () => {
          // The waiting callers get the error; the next call reads again.
          this.#pendingUsage = undefined;
        },
      );
    }
    return this.#usage ?? this.#pendingUsage.answer;
  }
}
