/** Who uses a ready daemon just now, how often it was used, and since when nobody has. */
import type { Clock } from '../kit/clock/clock.ts';

export class Uses {
  readonly #clock: Clock;
  #now = 0;
  #total = 0;
  #lastAt = 0;
  #whenFree: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many there are now. */
  get now(): number {
    return this.#now;
  }

  /** How many there have been, those of now included: another number tells that somebody came in between. */
  get total(): number {
    return this.#total;
  }

  /** When the last one ended or, where there was none since, the daemon became ready; monotonic milliseconds. */
  get lastAt(): number {
    return this.#lastAt;
  }

  /** The daemon is ready: the time without use counts from here. */
  begin(): void {
    this.#lastAt = this.#clock.monotonic();
  }

  /** @returns ends this use; calling it again does nothing */
  take(): () => void {
    this.#now++;
    this.#total++;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#now--;
      this.#lastAt = this.#clock.monotonic();
      if (this.#now === 0) this.#whenFree();
    };
  }

  /** Resolves when nobody uses it, or after `limitMs`. */
  async free(limitMs: number): Promise<void> {
    if (this.#now === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(limitMs, resolve);
      this.#whenFree = () => {
        cancel();
        resolve();
      };
    });
    this.#whenFree = () => {};
  }
}
