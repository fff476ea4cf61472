/** A queue per key: work under the same key runs one at a time, in the order of the calls. Keys do not wait for each other. */
export class KeyedQueue {
  /** The end of the last work under each key that has work. */
  readonly #ends = new Map<string, Promise<void>>();

  /**
   * Runs the work after everything that was queued under the key before. Without such work it begins at once, before this
   * function returns.
   *
   * @returns the result of the work; a failure concerns no other work
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#ends.get(key);
    const result = before === undefined ? work() : before.then(work);
    const end = result.then(
      () => {},
      () => {},
    );
    this.#ends.set(key, end);
    try {
      return await result;
    } finally {
      if (this.#ends.get(key) === end) this.#ends.delete(key);
    }
  }

  /** Resolves when no key has work. */
  async idle(): Promise<void> {
    while (this.#ends.size > 0) await Promise.all(this.#ends.values());
  }
}
