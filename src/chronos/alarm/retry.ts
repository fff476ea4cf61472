/** The retry ladder (contracts §2). */
import { backoff } from '../../kit/clock/backoff.ts';

const LONGEST_DELAY_MS = 15 * 60_000;
const delayAfter = backoff({ first: 30_000, longest: LONGEST_DELAY_MS });
/** A computed delay is spread over this share of itself, downwards, so that no wait exceeds `min(30 s · 2ⁿ, 15 min)`. */
const JITTER_SHARE = 0.1;
/** A receiver that asks for no wait at all gets this one: without it a day's worth of attempts would be gone in seconds. */
const SHORTEST_DELAY_MS = 1_000;

/**
 * How long to wait after a failed attempt: `min(30 s · 2ⁿ, 15 min)`, shortened by up to 10 % so that alarms that failed
 * together do not come back together; or what the receiver asked for, from 1 second to 15 minutes. What the receiver asked for is
 * never shortened: coming back early is what it asked us not to do.
 *
 * @param failure n, zero-based: 0 after the first failure of an occurrence
 * @param options.random uniform in [0, 1)
 * @param options.retryAfterSeconds the receiver's `Retry-After`, when it sent one; ignored when negative or not a number
 * @returns whole milliseconds, 1 000 to 900 000
 */
export function retryDelayMs(
  failure: number,
  options: { random: number; retryAfterSeconds?: number | undefined },
): number {
  const { random, retryAfterSeconds } = options;
  if (retryAfterSeconds !== undefined && retryAfterSeconds >= 0) {
    return Math.min(Math.max(Math.ceil(retryAfterSeconds * 1000), SHORTEST_DELAY_MS), LONGEST_DELAY_MS);
  }
  return Math.round(delayAfter(failure + 1) * (1 - JITTER_SHARE * random));
}
