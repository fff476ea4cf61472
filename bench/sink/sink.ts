/** Talking to the sink: where fires go, and what has arrived. */
import type { Lateness } from '../statistics.ts';

export type Arrivals = {
  lateness: Lateness;
  /** When the last of these fires arrived, epoch ms with fractions; 0 when none did. */
  lastArrival: number;
  /** Mean length of all bodies since the reset. */
  bodyBytes: number;
};

export class Sink {
  /** Where a fire is POSTed to. */
  readonly url: string;
  readonly #control: string;

  constructor(ports: { fires: number; control: number }) {
    this.url = `http://127.0.0.1:${ports.fires}/internal/wake`;
    this.#control = `http://127.0.0.1:${ports.control}`;
  }

  /** Forgets everything. */
  async reset(): Promise<void> {
    await this.#ask('/reset');
  }

  /** How many different fires have arrived. */
  async count(): Promise<number> {
    return (await this.#ask<{ count: number }>('/count')).count;
  }

  /** What arrived of the fires due in [from, until). */
  arrivals(window: { from: number; until: number; expected: number }): Promise<Arrivals> {
    const { from, until, expected } = window;
    return this.#ask(`/arrivals?from=${from}&until=${until}&expected=${expected}`);
  }

  /** Waits until so many different fires have arrived, at most until an instant (epoch ms). Says whether they have. */
  async drained(count: number, limit: number): Promise<boolean> {
    for (;;) {
      if ((await this.count()) >= count) return true;
      if (Date.now() >= limit) return false;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async #ask<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.#control}${path}`);
    return (await answer.json()) as T;
  }
}
