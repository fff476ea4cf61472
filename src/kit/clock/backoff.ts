/** Retries: exponential backoff, and the repetition of a write until the store accepts it. */
import { ReveilleError } from '../../wire/errors.ts';
import { type Clock, wait } from './clock.ts';

/**
 * Creates a backoff that doubles from `first` up to `longest`, both in the unit of the result.
 *
 * @returns the pause after `failures` consecutive failures; counts from 1, and treats smaller numbers as 1
 */
export function backoff({ first, longest }: { first: number; longest: number }): (failures: number) => number {
  // The exponent is limited, so that the product does not overflow.
  return (failures) => Math.min(longest, first * 2 ** Math.min(Math.max(failures - 1, 0), 40));
}

/**
 * Equal jitter: spreads a pause over its upper half, so that operations that failed together are not retried together.
 *
 * @param draw uniform in [0, 1)
 */
export function withJitter(pause: number, draw: number): number {
  return pause / 2 + (pause / 2) * draw;
}

type UntilStoredOptions = {
  readonly clock: Clock;
  /** Pauses after the first, second, … failure; the last one repeats. */
  readonly pausesMs: readonly number[];
  /** Gives up when it aborts: the last error is thrown. */
  readonly signal: AbortSignal;
  /** Called before each pause. */
  readonly onRetry: (error: unknown) => void;
};

/**
 * @param write is called again after a temporary failure, so it must be one transaction or repeatable
 * @throws the error of the write, when a repetition cannot help or the signal has aborted
 */
export async function untilStored<T>(write: () => Promise<T>, options: UntilStoredOptions): Promise<T> {
  const { clock, pausesMs, signal, onRetry } = options;
  for (let failures = 0; ; failures++) {
    try {
      return await write();
    } catch (thrown) {
      const isTemporary = thrown instanceof ReveilleError && thrown.retryable;
      if (!isTemporary || signal.aborted) throw thrown;
      onRetry(thrown);
      await wait(clock, pausesMs[Math.min(failures, pausesMs.length - 1)]!, signal);
    }
  }
}
