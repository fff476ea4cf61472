/** Retries operations that conflicted with another caller. */
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import { ReveilleError } from '../../../wire/errors.ts';

/** Each round takes two round trips to the database. A caller that loses all of them competes with very many others. */
const ROUNDS = 100;
const LONGEST_PAUSE_MS = 20;

/**
 * Calls `round` until it returns a result. The pauses after failed rounds start short, then grow unevenly, so that one
 * caller succeeds.
 *
 * @throws ReveilleError `unavailable` when no round succeeds
 */
export async function retryUntilUncontended<T>(clock: Clock, round: () => Promise<T | undefined>): Promise<T> {
  for (let number = 1; number <= ROUNDS; number++) {
    const result = await round();
    if (result !== undefined) return result;
    if (number > 2) await wait(clock, Math.random() * Math.min(number, LONGEST_PAUSE_MS));
  }
  throw new ReveilleError('unavailable', 'too many others change the same alarm at present; try again');
}
