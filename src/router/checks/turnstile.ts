/** Lets a fixed number of tasks run at the same time; others wait in order, for a limited time. */
import type { Clock } from '../../kit/clock/clock.ts';

export class Turnstile {
  readonly #clock: Clock;
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(places: number, clock: Clock) {
    this.#free = places;
    this.#clock = clock;
  }

  /** @param onFull throws when no place became free in time */
  async through<T>(waitMs: number, task: () => Promise<T>, onFull: () => never): Promise<T> {
    if (!(await this.#enter(waitMs))) onFull();
    try {
      return await task();
    } finally {
      this.#leave();
    }
  }

  async #enter(waitMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const enter = () => {
      cancel();
      resolve(true);
    };
    const cancel = this.#clock.after(waitMs, () => {
      this.#waiting.delete(enter);
      resolve(false);
    });
    this.#waiting.add(enter);
    return await promise;
  }

  /** Hands the place to the one that waits longest. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
