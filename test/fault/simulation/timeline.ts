/**
 * Simulated time. A queue of events in the order of their times. Time stops while the consequences of an event run to
 * their end, then jumps to the next event. Nothing here waits for real time.
 */
import type { CancelTimer } from '../../../src/kit/clock/clock.ts';
import { countImmediates, type Immediates } from './immediates.ts';

type Entry = { at: number; order: number; run: (() => void) | undefined };

/** Resolves when every settled promise, and all its consequences, were processed. */
const settled = () => new Promise<void>((resolve) => process.nextTick(resolve));

/** This number of events at one time means an endless loop. */
const MOST_AT_ONCE = 100_000;

export class Timeline {
  /** A binary heap, the next event first. */
  readonly #entries: Entry[] = [];
  #now = 0;
  #order = 0;
  #working = 0;
  #events = 0;

  /** Milliseconds since the world began; no clock of the world shows them. */
  get now(): number {
    return this.#now;
  }

  /** Number of events so far. */
  get events(): number {
    return this.#events;
  }

  /** Schedules `run` in so many milliseconds; events of the same time run in the order of scheduling. */
  after(delayMs: number, run: () => void): CancelTimer {
    const entry: Entry = { at: this.#now + Math.max(delayMs, 0), order: this.#order++, run };
    this.#push(entry);
    return () => {
      entry.run = undefined;
    };
  }

  /** Stops time until a promise has settled that depends on real work, such as a database's. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.#working++;
    try {
      return await work;
    } finally {
      this.#working--;
    }
  }

  /** Lets time pass until the given time. */
  async runUntil(instant: number): Promise<void> {
    const immediates = countImmediates();
    try {
      // Callbacks from before the counting began.
      await immediates.turn();
      await this.#rest(immediates);
      await this.#pass(instant, immediates);
    } finally {
      immediates.stopCounting();
    }
    this.#now = instant;
  }

  async #pass(instant: number, immediates: Immediates): Promise<void> {
    let atOnce = 0;
    for (;;) {
      const next = this.#entries[0];
      if (!next || next.at > instant) return;
      this.#pop();
      if (!next.run) continue;
      atOnce = next.at > this.#now ? 0 : atOnce + 1;
      if (atOnce > MOST_AT_ONCE) throw new Error(`time stands still at ${this.#now} ms`);
      this.#now = next.at;
      this.#events++;
      next.run();
      await this.#rest(immediates);
    }
  }

  /** Runs everything to its end that needs no time. */
  async #rest(immediates: Immediates): Promise<void> {
    for (;;) {
      await settled();
      if (this.#working === 0 && immediates.waiting === 0) return;
      await immediates.turn();
    }
  }

  #push(entry: Entry): void {
    const heap = this.#entries;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(entry, heap[above]!)) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#entries;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++;
      if (!isBefore(heap[below]!, last)) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}
