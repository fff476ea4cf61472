/** Limits the use of the listener by one user: requests per minute, and concurrent requests. */
import type { Clock } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

export type ShareLimits = {
  /** A quarter of it may arrive at once. */
  readonly requestsPerMinute: number;
  /** The most open streams of events. */
  readonly streams: number;
  /** The most other concurrent requests. */
  readonly requests: number;
};

type Share = { tokens: number; at: number; streams: number; requests: number };

/** Above this number of users, entries with full buckets are removed. */
const SWEEP_ABOVE = 1024;

export class Shares {
  readonly #clock: Clock;
  readonly #limits: ShareLimits;
  readonly #shares = new Map<string, Share>();
  /** Rejected requests. */
  refused = 0;

  constructor(clock: Clock, limits: ShareLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Open streams of all users. */
  get streams(): number {
    return [...this.#shares.values()].reduce((sum, { streams }) => sum + streams, 0);
  }

  /**
   * Admits one request of a user.
   *
   * @returns ends it; calling it again has no effect
   * @throws ReveilleError `rate_limited` with the retry time
   */
  enter(userId: string, kind: 'streams' | 'requests'): () => void {
    const share = this.#refilled(userId);
    const most = this.#limits[kind];
    if (share[kind] >= most) {
      const what = kind === 'streams' ? 'streams of events are open' : 'requests are under way';
      throw this.#refuse(`${most} ${what} for ${userId}, and more are not allowed; end one, or wait`, 1);
    }
    if (share.tokens < 1) {
      const { requestsPerMinute } = this.#limits;
      const message = `${userId} may send ${requestsPerMinute} requests per minute; wait for the time in Retry-After`;
      throw this.#refuse(message, ((1 - share.tokens) * 60) / requestsPerMinute);
    }
    share.tokens--;
    share[kind]++;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      share[kind]--;
    };
  }

  #refuse(message: string, retryAfterSeconds: number): ReveilleError {
    this.refused++;
    return new ReveilleError('rate_limited', message, { retryAfterSeconds });
  }

  get #capacity(): number {
    return Math.max(1, this.#limits.requestsPerMinute / 4);
  }

  #refilled(userId: string): Share {
    const now = this.#clock.monotonic();
    const known = this.#shares.get(userId);
    const share = known ?? { tokens: this.#capacity, at: now, streams: 0, requests: 0 };
    this.#refill(share, now);
    if (!known) {
      this.#shares.set(userId, share);
      if (this.#shares.size > SWEEP_ABOVE) this.#sweep(now);
    }
    return share;
  }

  #refill(share: Share, now: number): void {
    const more = ((now - share.at) / 60_000) * this.#limits.requestsPerMinute;
    share.tokens = Math.min(this.#capacity, share.tokens + more);
    share.at = now;
  }

  /** Removes users without open requests and with a full bucket. */
  #sweep(now: number): void {
    for (const [userId, share] of this.#shares) {
      this.#refill(share, now);
      if (share.streams + share.requests === 0 && share.tokens >= this.#capacity) this.#shares.delete(userId);
    }
  }
}
