/** Bounds how much goes on at once; who comes too many waits in line. */
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';

type Waiting = { admit: () => void; refuse: () => void };

export class Turnstile {
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #tooLong: () => Error;
  readonly #line: Waiting[] = [];
  #free: number;

  /**
   * @param places how many may be inside
   * @param patienceMs how long anybody waits in line
   * @param tooLong the error of those who waited longer
   */
  constructor(clock: Clock, places: number, patienceMs: number, tooLong: () => Error) {
    this.#clock = clock;
    this.#free = places;
    this.#patienceMs = patienceMs;
    this.#tooLong = tooLong;
  }

  /** Resolves inside, first come first served. Every entry is followed by one {@link leave}. */
  enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      let cancel: CancelTimer = () => {};
      const waiting: Waiting = {
        admit() {
          cancel();
          resolve();
        },
        refuse: () => {
          this.#line.splice(this.#line.indexOf(waiting), 1);
          reject(this.#tooLong());
        },
      };
      cancel = this.#clock.after(this.#patienceMs, waiting.refuse);
      this.#line.push(waiting);
    });
  }

  leave(): void {
    const next = this.#line.shift();
    if (next) next.admit();
    else this.#free++;
  }
}
