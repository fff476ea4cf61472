/** How long to wait before a server is started again. */
import { backoff } from '../kit/clock/backoff.ts';
import type { Clock } from '../kit/clock/clock.ts';

/** A server that ran for so long has not failed in a row. */
const STEADY_MS = 60_000;

/**
 * Doubles from one second to one minute.
 *
 * @param failures how often in a row it has failed, from 1
 * @returns milliseconds
 */
export const restartDelayMs = backoff({ first: 1000, longest: 60_000 });

/** The failures of one server in a row, and the delays that follow from them. */
export class RestartDelays {
  readonly #clock: Clock;
  #failures = 0;
  #readySince = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It is ready from now on. */
  ready(): void {
    this.#readySince = this.#clock.monotonic();
  }

  /** It was ready and is gone: a failure, the first of a new row if it ran for long. {@link next} tells what follows. */
  lost(): void {
    if (this.#clock.monotonic() - this.#readySince >= STEADY_MS) this.#failures = 0;
  }

  /** It has failed. @returns in how many milliseconds it is to be started again */
  next(): number {
    return restartDelayMs(++this.#failures);
  }
}
