/** Waiting until something has happened, or for a time at most. A ring while nobody waits is not lost. */
import type { Clock } from '../../kit/clock/clock.ts';

export function createBell(clock: Clock) {
  let rung = false;
  let wake = () => {};
  return {
    ring(): void {
      rung = true;
      wake();
    },

    /** Resolves at the next ring, at once when there was one since the last wait, after `withinMs`, or when the signal aborts. */
    wait(withinMs: number, signal: AbortSignal): Promise<void> {
      return new Promise((resolve) => {
        const done = () => {
          cancel();
          signal.removeEventListener('abort', done);
          wake = () => {};
          rung = false;
          resolve();
        };
        const cancel = clock.after(withinMs, done);
        signal.addEventListener('abort', done);
        wake = done;
        if (rung || signal.aborted) done();
      });
    },
  };
}
