/** Limits how long an operation may take, and reports who ended it: the clock or the caller. */
import type { Clock } from '../kit/clock/clock.ts';

export class TimedOut extends Error {
  override name = 'TimedOut';
  readonly limitMs: number;

  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`);
    this.limitMs = limitMs;
  }
}

export class Cancelled extends Error {
  override name = 'Cancelled';

  constructor() {
    super('the caller has cancelled');
  }
}

/**
 * Runs an operation until the limit has passed or the caller's signal aborts. The operation gets a signal that aborts
 * then. If it ignores the signal, its result is dropped.
 *
 * @param run its second argument pauses the time limit, and returns a function that resumes it
 * @throws TimedOut, Cancelled, or the error of `run`
 */
export async function withDeadline<T>(
  clock: Clock,
  limitMs: number,
  outer: AbortSignal | undefined,
  run: (signal: AbortSignal, pause: () => () => void) => Promise<T>,
): Promise<T> {
  if (outer?.aborted) throw new Cancelled();
  const inner = new AbortController();
  const gaveUp = Promise.withResolvers<never>();
  const giveUp = (error: Error) => {
    // Reject with our error first, before the error that the abort causes in `run`.
    gaveUp.reject(error);
    inner.abort(error);
  };
  const startTimer = (ms: number) => clock.after(ms, () => giveUp(new TimedOut(limitMs)));
  let left = limitMs;
  let startedAt = clock.monotonic();
  let cancelTimer = startTimer(left);
  let pauses = 0;
  let isOver = false;
  const pause = () => {
    if (pauses++ === 0) {
      cancelTimer();
      left -= clock.monotonic() - startedAt;
    }
    let isPaused = true;
    return () => {
      if (!isPaused) return;
      isPaused = false;
      if (--pauses > 0 || isOver) return;
      startedAt = clock.monotonic();
      cancelTimer = startTimer(Math.max(0, left));
    };
  };
  const onAbort = () => giveUp(new Cancelled());
  outer?.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([gaveUp.promise, run(inner.signal, pause)]);
  } finally {
    isOver = true;
    cancelTimer();
    outer?.removeEventListener('abort', onAbort);
  }
}
