/** Waiting no longer than agreed, and knowing afterwards who gave up: the clock or the caller. */
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
 * Runs something and stops waiting for it when the time is over or the caller's signal aborts. What runs gets a signal
 * that aborts then; if it pays no heed, its outcome is dropped.
 *
 * @throws TimedOut, Cancelled, or what `run` throws before
 */
export async function withDeadline<T>(
  clock: Clock,
  limitMs: number,
  outer: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (outer?.aborted) throw new Cancelled();
  const inner = new AbortController();
  const gaveUp = Promise.withResolvers<never>();
  const giveUp = (why: Error) => {
    // First ours: what the abort makes of `run` must not come before.
    gaveUp.reject(why);
    inner.abort(why);
  };
  const cancelTimer = clock.after(limitMs, () => giveUp(new TimedOut(limitMs)));
  const onAbort = () => giveUp(new Cancelled());
  outer?.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([gaveUp.promise, run(inner.signal)]);
  } finally {
    cancelTimer();
    outer?.removeEventListener('abort', onAbort);
  }
}
