/** The wall clock to a fraction of a millisecond: `Date.now()` alone would round every lateness down. */
export class WallClock {
  #offset = 0;

  constructor() {
    this.anchor();
  }

  /**
   * Ties the monotonic clock to the wall clock anew; takes a few milliseconds. Call it before a measurement: they
   * drift.
   */
  anchor(): void {
    let offset = Number.NEGATIVE_INFINITY;
    for (let tick = 0; tick < 5; tick++) {
      const before = Date.now();
      let now = before;
      while (now === before) now = Date.now();
      // Read a moment after the tick, so never too large: the largest is the best.
      offset = Math.max(offset, now - performance.now());
    }
    this.#offset = offset;
  }

  /** Epoch milliseconds, with fractions. */
  now(): number {
    return this.#offset + performance.now();
  }
}
