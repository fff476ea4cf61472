/** Time as a dependency. Only {@link systemClock} reads the machine's clocks. */
import { uptime } from 'node:os';

/** Cancels a timer; does nothing after the timer has fired. */
export type CancelTimer = () => void;

/** The clock given to parts that need time. */
export type Clock = {
  /**
   * Wall clock, milliseconds since the epoch. It can jump: compare it with stored instants, never subtract it for
   * durations.
   */
  now(): number;
  /** Monotonic milliseconds from an arbitrary origin, for durations. It may stop while a laptop sleeps. */
  monotonic(): number;
  /** Milliseconds since the computer started, including sleep; only differences are exact. */
  sinceBoot?(): number;
  /** Calls `callback` once, no earlier than `delayMs` from now within the precision of timers (1 ms). */
  after(delayMs: number, callback: () => void): CancelTimer;
};

/** Timers take a signed 32-bit number of milliseconds; a larger delay would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The machine's own clocks. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sinceBoot: () => uptime() * 1000,
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Waits on a clock; resolves early, without an error, when `signal` aborts. */
export function wait(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(delayMs, done);
    signal?.addEventListener('abort', done);
  });
}

/** Settles like the promise, but rejects with the signal's reason as soon as the signal aborts. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Works with a signal that also aborts after a time, milliseconds. */
export async function within<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  const cancel = clock.after(Math.max(0, ms), () =>
    timeout.abort(new Error(`no answer within ${Math.round(ms / 1000)} s`)),
  );
  try {
    return await work(AbortSignal.any([signal, timeout.signal]));
  } finally {
    cancel();
  }
}
