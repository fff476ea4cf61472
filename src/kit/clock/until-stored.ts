/** Repeats a write until the store accepts it: work whose outcome is not stored can make no other progress. */
import { ReveilleError } from '../../wire/errors.ts';
import { type Clock, wait } from './clock.ts';

export type UntilStoredOptions = {
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
