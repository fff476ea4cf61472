/** Limits the requests and the open streams of one caller. */
import type { Clock } from '../kit/clock/clock.ts';
import { ReveilleError } from '../wire/errors.ts';

/** Requests of one caller per minute, and the largest burst. */
const PER_MINUTE = 240;
const BURST = 60;
const MOST_STREAMS = 8;
/** Above this number of callers, idle callers are removed. */
const SWEEP_ABOVE = 1024;

type Use = { tokens: number; at: number; streams: number };

export class CallerLimits {
  readonly #clock: Clock;
  readonly #uses = new Map<string, Use>();
  /** Admits a request under the user's own limit. @returns releases it */
  readonly #enterUser: (userId: string) => () => void;

  constructor(clock: Clock, enterUser: (userId: string) => () => void) {
    this.#clock = clock;
    this.#enterUser = enterUser;
  }

  /**
   * Admits a request.
   *
   * @returns releases it; a second call has no effect
   * @throws ReveilleError `rate_limited` with the retry time
   */
  enter(caller: string, userId: string): () => void {
    const use = this.#refilled(caller);
    if (use.tokens < 1) {
      const message = `at most ${PER_MINUTE} requests per minute; wait for the time in Retry-After`;
      throw new ReveilleError('rate_limited', message, { retryAfterSeconds: ((1 - use.tokens) * 60) / PER_MINUTE });
    }
    const leave = this.#enterUser(userId);
    use.tokens--;
    return leave;
  }

  /** @throws ReveilleError `rate_limited` */
  enterStream(caller: string): () => void {
    const use = this.#refilled(caller);
    if (use.streams >= MOST_STREAMS)
      throw new ReveilleError('rate_limited', `the limit of ${MOST_STREAMS} open streams is reached; end one`, {
        retryAfterSeconds: 5,
      });
    use.streams++;
    let isOpen = true;
    return () => {
      if (isOpen) use.streams--;
      isOpen = false;
    };
  }

  #refilled(caller: string): Use {
    const now = this.#clock.monotonic();
    const use = this.#uses.get(caller) ?? { tokens: BURST, at: now, streams: 0 };
    use.tokens = Math.min(BURST, use.tokens + ((now - use.at) / 60_000) * PER_MINUTE);
    use.at = now;
    this.#uses.set(caller, use);
    if (this.#uses.size > SWEEP_ABOVE) this.#sweep(caller);
    return use;
  }

  #sweep(current: string): void {
    for (const caller of this.#uses.keys()) {
      const { tokens, at, streams } = this.#uses.get(caller)!;
      const isFull = tokens + ((this.#clock.monotonic() - at) / 60_000) * PER_MINUTE >= BURST;
      if (isFull && streams === 0 && caller !== current) this.#uses.delete(caller);
    }
  }
}
