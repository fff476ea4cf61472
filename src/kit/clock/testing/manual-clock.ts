/** A clock that only a test advances, with a wall clock that can be set forward and back. */
import type { CancelTimer, Clock } from '../clock.ts';

/** Turns of the event loop that follow each fired timer before time continues. */
const TURNS = 6;

/** Runs everything that is ready: promises and setImmediate. */
export async function settle(turns = TURNS): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export class ManualClock implements Clock {
  #wall: number;
  #monotonic = 0;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  constructor(startMs = Date.UTC(2026, 5, 15, 8, 10)) {
    this.#wall = startMs;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const timer = { at: this.#monotonic + Math.max(delayMs, 0), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Number of waiting timers. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Advances time, and settles the effects of each timer on the way. */
  async advance(ms: number): Promise<void> {
    await settle();
    const until = this.#monotonic + ms;
    for (;;) {
      const next = [...this.#timers].sort((one, other) => one.at - other.at)[0];
      if (!next || next.at > until) break;
      this.#timers.delete(next);
      this.#pass(next.at - this.#monotonic);
      next.callback();
      await settle();
    }
    this.#pass(until - this.#monotonic);
    await settle();
  }

  /** Sets the wall clock forward or back, as NTP or a suspended laptop does; timers do not notice. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  #pass(ms: number): void {
    this.#wall += ms;
    this.#monotonic += ms;
  }
}
