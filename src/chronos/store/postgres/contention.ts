/** Doing again what another caller got in the way of. */
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import { ReveilleError } from '../../../wire/errors.ts';

/** Each round takes two trips to the database; whoever keeps losing for that long shares an alarm with a crowd. */
const ROUNDS = 100;
const LONGEST_PAUSE_MS = 20;

/**
 * Calls `round` until it gives a result. Rounds that fail follow each other faster than the other callers' at first,
 * and then with growing, uneven pauses, so that one of them gets through.
 *
 * @throws ReveilleError `unavailable` when it never does
 */
export async function untilUndisturbed<T>(clock: Clock, round: () => Promise<T | undefined>): Promise<T> {
  for (let number = 1; number <= ROUNDS; number++) {
    const result = await round();
    if (result !== undefined) return result;
    if (number > 2) await wait(clock, Math.random() * Math.min(number, LONGEST_PAUSE_MS));
  }
  throw new ReveilleError('unavailable', 'too many others change the same alarm just now; try again');
}
