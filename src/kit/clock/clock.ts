/** Time as a dependency. Nothing but {@link systemClock} reads the machine's clocks. */
import { uptime } from 'node:os';

/** Cancels a timer; harmless when it has fired. */
export type CancelTimer = () => void;

/** What a part that needs time is handed. */
export type Clock = {
  /**
   * Wall clock, milliseconds since the epoch. It can jump; compare it with stored instants, never subtract for
   * durations.
   */
  now(): number;
  /** Monotonic milliseconds from an arbitrary origin, for durations. It may stand still while a laptop sleeps. */
  monotonic(): number;
  /** Milliseconds since the computer was started, its sleep included; only differences are exact. */
  sinceBoot?(): number;
  /** Calls `callback` once, no earlier than `delayMs` from now as far as timers are exact (they may be 1 ms early). */
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

/**
 * Settles like the promise, but rejects with the signal's reason as soon as that aborts, even when the promise never
 * settles.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
