/** How much of the listener one user may take: requests in a minute, and how many at a time. */
import type { Clock } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

export type ShareLimits = {
  /** A quarter of it at once. */
  readonly requestsPerMinute: number;
  /** Streams of events that are open at a time. */
  readonly streams: number;
  /** Other requests under way at a time. */
  readonly requests: number;
};

type Share = { tokens: number; at: number; streams: number; requests: number };

/** So many users are kept in mind whose buckets may have filled up meanwhile. */
const SWEEP_ABOVE = 1024;

export class Shares {
  readonly #clock: Clock;
  readonly #limits: ShareLimits;
  readonly #shares = new Map<string, Share>();
  /** Requests that were refused. */
  refused = 0;

  constructor(clock: Clock, limits: ShareLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Streams that are open now, of all users. */
  get streams(): number {
    return [...this.#shares.values()].reduce((sum, { streams }) => sum + streams, 0);
  }

  /**
   * Takes one request of a user in.
   *
   * @returns ends it; calling it again does nothing
   * @throws ReveilleError `rate_limited` with when to come again
   */
  enter(userId: string, kind: 'streams' | 'requests'): () => void {
    const share = this.#refilled(userId);
    const most = this.#limits[kind];
    if (share[kind] >= most) {
      const what = kind === 'streams' ? 'streams of events are open' : 'requests are under way';
      throw this.#refuse(`${most} ${what} for ${userId}, and more are not taken; end one, or wait`, 1);
    }
    if (share.tokens < 1) {
      const { requestsPerMinute } = this.#limits;
      const message = `${userId} may send ${requestsPerMinute} requests in a minute; wait for as long as Retry-After says`;
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

  /** Forgets whoever takes nothing and has all that they may take. */
  #sweep(now: number): void {
    for (const [userId, share] of this.#shares) {
      this.#refill(share, now);
      if (share.streams + share.requests === 0 && share.tokens >= this.#capacity) this.#shares.delete(userId);
    }
  }
}
