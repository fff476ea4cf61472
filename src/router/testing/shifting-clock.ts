/**
 * The system's clock with an offset. A test advances it, and due timers then fire at once. Real time passes as well.
 */
import { type CancelTimer, type Clock, systemClock } from '../../kit/clock/clock.ts';

export class ShiftingClock implements Clock {
  #shiftMs = 0;
  readonly #timers = new Set<{ dueMs: number; fire: () => void }>();

  now(): number {
    return systemClock.now() + this.#shiftMs;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#shiftMs;
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const cancelReal = systemClock.after(delayMs, () => timer.fire());
    const timer = {
      dueMs: this.monotonic() + delayMs,
      fire: () => {
        cancel();
        callback();
      },
    };
    const cancel = () => {
      cancelReal();
      this.#timers.delete(timer);
    };
    this.#timers.add(timer);
    return cancel;
  }

  /** Advances the clock. */
  advance(ms: number): void {
    this.#shiftMs += ms;
    const now = this.monotonic();
    for (const timer of [...this.#timers]) if (timer.dueMs <= now && this.#timers.has(timer)) timer.fire();
  }
}
