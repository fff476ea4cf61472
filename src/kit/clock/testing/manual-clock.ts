/** A clock that moves only when a test moves it, with a wall that can be put forward and back. */
import type { CancelTimer, Clock } from '../clock.ts';

/** How many turns of the event loop a fired timer's consequences get before time goes on. */
const TURNS = 6;

/** Lets everything that is ready run, promises and setImmediate alike. */
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

  /** How many timers wait. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Moves time on, stopping at each timer on the way until what it sets off has settled. */
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

  /** Puts the wall clock forward or back, as NTP or a suspended laptop does; no timer notices. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  #pass(ms: number): void {
    this.#wall += ms;
    this.#monotonic += ms;
  }
}
