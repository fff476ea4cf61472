/** Client of the sink: target addresses, and arrivals. */
import type { Lateness } from '../statistics.ts';

export type Arrivals = {
  lateness: Lateness;
  /** Arrival of the last of these fires, epoch ms with fractions; 0 if none arrived. */
  lastArrival: number;
  /** Mean length of all bodies since the reset. */
  bodyBytes: number;
};

/** The ports of the sink's process; without `tls` where no certificate could be made. */
export type SinkPorts = { plain: number; slow: number; tls?: number; control: number };

const PATH = '/internal/wake';

export class Sink {
  /** The default target of fires: it answers at once. */
  readonly url: string;
  /** The same, answered after ten milliseconds. */
  readonly slowUrl: string;
  /** The same as {@link url}, with TLS. */
  readonly tlsUrl: string | undefined;
  readonly #control: string;

  constructor(ports: SinkPorts) {
    this.url = `http://127.0.0.1:${ports.plain}${PATH}`;
    this.slowUrl = `http://127.0.0.1:${ports.slow}${PATH}`;
    this.tlsUrl = ports.tls === undefined ? undefined : `https://127.0.0.1:${ports.tls}${PATH}`;
    this.#control = `http://127.0.0.1:${ports.control}`;
  }

  /** Deletes all records. */
  async reset(): Promise<void> {
    await this.#ask('/reset');
  }

  /** Deletes the fires due before a time, epoch ms: a long run would fill its memory. */
  async forget(before: number): Promise<void> {
    await this.#ask(`/forget?before=${before}`);
  }

  /** Number of different fires that have arrived. */
  async count(): Promise<number> {
    return (await this.#ask<{ count: number }>('/count')).count;
  }

  /** Arrivals of the fires due in [from, until). */
  arrivals(window: { from: number; until: number; expected: number }): Promise<Arrivals> {
    const { from, until, expected } = window;
    return this.#ask(`/arrivals?from=${from}&until=${until}&expected=${expected}`);
  }

  /** First arrival at or after a time, both epoch ms; `undefined` if there is none. */
  async firstAfter(instant: number): Promise<number | undefined> {
    return (await this.#ask<{ arrival?: number }>(`/first?after=${instant}`)).arrival;
  }

  /** Waits until so many different fires have arrived, at most until a time (epoch ms). Returns whether they have. */
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
