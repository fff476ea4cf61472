/** Ends the sleep of loops when there is something to do earlier than they expect. */
import type { CancelTimer, Clock } from './clock.ts';

export class WakeSignal {
  readonly #clock: Clock;
  readonly #sleepers = new Set<{ readonly wakeAt: number; readonly wake: () => void }>();
  /** The earliest instant of a notification since the last {@link reset}. */
  #notifiedFor = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends every current sleep, or the next one if none has begun. */
  notify(): void {
    this.notifyBy(Number.NEGATIVE_INFINITY);
  }

  /** Makes current sleeps, or the next one, end no later than this instant. */
  notifyBy(instant: number): void {
    this.#notifiedFor = Math.min(this.#notifiedFor, instant);
    for (const { wakeAt, wake } of [...this.#sleepers]) if (this.#notifiedFor < wakeAt) wake();
  }

  /** Discards earlier notifications. Call it before reading the state that they announced. */
  reset(): void {
    this.#notifiedFor = Number.POSITIVE_INFINITY;
  }

  /**
   * Resolves at the instant, when {@link notify} requests an earlier read, or when the signal aborts. May be up to a
   * millisecond early.
   *
   * @param instant epoch milliseconds; infinite: only a notification ends the sleep
   */
  sleepUntil(instant: number, signal?: AbortSignal): Promise<void> {
    const wakeAt = Math.min(instant, this.#notifiedFor);
    const delayMs = wakeAt - this.#clock.now();
    if (delayMs <= 0 || signal?.aborted) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      let cancel: CancelTimer = () => {};
      const wake = () => {
        cancel();
        signal?.removeEventListener('abort', wake);
        this.#sleepers.delete(sleeper);
        resolve();
      };
      const sleeper = { wakeAt, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', wake);
      if (wakeAt < Number.POSITIVE_INFINITY) cancel = this.#clock.after(Math.ceil(delayMs), wake);
    });
  }
}
