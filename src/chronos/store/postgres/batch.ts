/**
 * Collects items into batches: items that arrive while earlier batches are running share the next one. Used for group
 * commit and group look-up.
 */

type Waiting<T, R> = { item: T; resolve: (result: R) => void; reject: (error: unknown) => void };

type Bounds<T> = {
  /** Maximum number of concurrent batches. */
  batches: number;
  /** Maximum number of items in a batch. */
  items: number;
  /** Maximum weight of a batch with more than one item. */
  weight?: number;
  weigh?: (item: T) => number;
};

/** The failure of one item when others of its batch succeeded. */
export class ItemFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/**
 * Collects items and sends them in batches. A lone item does not wait: it is sent at the end of the current turn of the
 * event loop.
 */
export class Batcher<T, R> {
  readonly #send: (items: readonly T[]) => Promise<readonly (R | ItemFailure)[]>;
  readonly #bounds: Bounds<T>;
  #waiting: Waiting<T, R>[] = [];
  #running = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  /**
   * @param send returns the outcome of each item, in order; when it rejects, all of them fail
   */
  constructor(send: (items: readonly T[]) => Promise<readonly (R | ItemFailure)[]>, bounds: Bounds<T>) {
    this.#send = send;
    this.#bounds = bounds;
  }

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  /** Resolves when all added items have settled. */
  drain(): Promise<void> {
    if (this.#waiting.length === 0 && this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#bounds.batches) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    const batch = this.#next();
    if (batch.length === 0) return;
    this.#running++;
    if (this.#waiting.length > 0) this.#schedule();
    await this.#deliver(batch);
    this.#running--;
    if (this.#waiting.length > 0) this.#schedule();
    else if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  async #deliver(batch: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const outcomes = await this.#send(batch.map(({ item }) => item));
      batch.forEach(({ resolve, reject }, index) => {
        const outcome = outcomes[index];
        if (outcome instanceof ItemFailure) reject(outcome.error);
        else resolve(outcome as R);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  #next(): Waiting<T, R>[] {
    const { items, weight = Number.POSITIVE_INFINITY, weigh = () => 0 } = this.#bounds;
    let size = 0;
    let count = 0;
    for (const { item } of this.#waiting) {
      size += weigh(item);
      if (count === items || (count > 0 && size > weight)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }
}
