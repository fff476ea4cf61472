/** The wall clock to a fraction of a millisecond: `Date.now()` alone would round every lateness down. */
export class WallClock {
  #offset = 0;

  constructor() {
    this.anchor();
  }

  /**
   * Aligns the monotonic clock with the wall clock; takes a few milliseconds. Call it before a measurement, because the
   * clocks drift.
   */
  anchor(): void {
    let offset = Number.NEGATIVE_INFINITY;
    for (let tick = 0; tick < 5; tick++) {
      const before = Date.now();
      let now = before;
      while (now === before) now = Date.now();
      // Each reading is a moment after the tick, so never too large. The largest is the best.
      offset = Math.max(offset, now - performance.now());
    }
    this.#offset = offset;
  }

  /** Epoch milliseconds, with fractions. */
  now(): number {
    return this.#offset + performance.now();
  }
}
