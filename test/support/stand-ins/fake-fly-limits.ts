/** The rate limits of the Fly Machines API as it documents them: per machine and action, with a short burst. */
import type { Clock } from '../../../src/kit/clock/clock.ts';

const GET = { perSecond: 5, burst: 10 };
const OTHERS = { perSecond: 1, burst: 3 };

export class FakeFlyLimits {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a request; `false` when it exceeds the limit. */
  allow(machine: string, action: string): boolean {
    const { perSecond, burst } = action === 'get' ? GET : OTHERS;
    const key = `${machine} ${action}`;
    const now = this.#clock.monotonic();
    const before = this.#buckets.get(key) ?? { tokens: burst, at: now };
    const tokens = Math.min(burst, before.tokens + ((now - before.at) / 1000) * perSecond);
    this.#buckets.set(key, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
    return tokens >= 1;
  }
}
