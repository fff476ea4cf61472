/** Standard input that somebody writes to and nobody reads: it is emptied, so that the writer does not fail on a pipe that is full or gone. */
import { type Clock, wait } from '../../kit/clock/clock.ts';

/**
 * Begins to throw away what arrives; not a byte of it is looked at.
 *
 * @returns waits until the writer has hung up, but no longer than `limitMs`, and lets go of the input
 */
export function discardInput(stdin: NodeJS.ReadStream, clock: Clock): (limitMs: number) => Promise<void> {
  if (stdin.isTTY) return async () => {};
  const hungUp = new AbortController();
  for (const event of ['end', 'close', 'error']) stdin.once(event, () => hungUp.abort());
  stdin.resume();
  return async (limitMs) => {
    await wait(clock, limitMs, hungUp.signal);
    stdin.destroy();
  };
}
