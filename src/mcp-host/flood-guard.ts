/** Telling a talkative server from one that floods us with messages that nobody asked for. */
import type { Clock } from '../kit/clock/clock.ts';

/** Progress of many calls at once stays far below. */
const MOST_MESSAGES = 10_000;
const WINDOW_MS = 10_000;

export class FloodGuard {
  readonly #clock: Clock;
  #windowFrom: number;
  #unasked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowFrom = clock.monotonic();
  }

  /** A message has come. @returns whether these are too many */
  message(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#windowFrom > WINDOW_MS) {
      this.#windowFrom = now;
      this.#unasked = 0;
    }
    return ++this.#unasked > MOST_MESSAGES;
  }

  /** One of the messages was the answer to a request of ours. */
  answered(): void {
    if (this.#unasked > 0) this.#unasked--;
  }
}
