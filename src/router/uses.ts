/** Counts the current and total uses of a ready daemon, and since when it is unused. */
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

  /** The number of current uses. */
  get now(): number {
    return this.#now;
  }

  /** The number of all uses, including current ones: a changed number shows a use in between. */
  get total(): number {
    return this.#total;
  }

  /** When the last use ended or, if there was none since, the daemon became ready; monotonic milliseconds. */
  get lastAt(): number {
    return this.#lastAt;
  }

  /** The daemon is ready: the time without use counts from here. */
  begin(): void {
    this.#lastAt = this.#clock.monotonic();
  }

  /** @returns ends this use; calling it again has no effect */
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

  /** Resolves when the daemon is unused, or after `limitMs`. */
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
