/** What the dispatcher sleeps on: it wakes at an instant, or earlier when somebody rings. */
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';

export class Bell {
  readonly #clock: Clock;
  /** The earliest instant anybody has rung for since the last {@link reset}. */
  #rungFor = Number.POSITIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the present sleep, or the next one if it has not begun. */
  ring(): void {
    this.ringBy(Number.NEGATIVE_INFINITY);
  }

  /** Makes the present or next sleep end no later than this instant. */
  ringBy(instant: number): void {
    this.#rungFor = Math.min(this.#rungFor, instant);
    if (this.#rungFor < this.#wakeAt) this.#wake?.();
  }

  /** Forgets earlier rings. Call it before looking at what they announced. */
  reset(): void {
    this.#rungFor = Number.POSITIVE_INFINITY;
  }

  /** Resolves at the instant, or when {@link ring} asks for an earlier look. May be up to a millisecond early. */
  sleepUntil(instant: number): Promise<void> {
    const wakeAt = Math.min(instant, this.#rungFor);
    const delayMs = wakeAt - this.#clock.now();
    if (delayMs <= 0) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      this.#wakeAt = wakeAt;
      let cancel: CancelTimer = () => {};
      this.#wake = () => {
        cancel();
        this.#wake = undefined;
        this.#wakeAt = Number.POSITIVE_INFINITY;
        resolve();
      };
      cancel = this.#clock.after(Math.ceil(delayMs), this.#wake);
    });
  }
}
