/**
 * What arrives while earlier batches are on their way goes together in the next one: group commit, and group look-up.
 */

type Waiting<T, R> = { item: T; resolve: (result: R) => void; reject: (error: unknown) => void };

type Bounds<T> = {
  /** Most batches on their way at once. */
  batches: number;
  /** Most items in a batch. */
  items: number;
  /** Most weight in a batch that has more than one item. */
  weight?: number;
  weigh?: (item: T) => number;
};

/** What came of one item that failed while others of its batch did not. */
export class Refusal {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/**
 * Collects items and hands them over in batches. Nothing waits while there is nothing to wait for: a lone item leaves
 * when the present turn of the event loop is over.
 */
export class Gatherer<T, R> {
  readonly #send: (items: readonly T[]) => Promise<readonly (R | Refusal)[]>;
  readonly #bounds: Bounds<T>;
  #waiting: Waiting<T, R>[] = [];
  #underWay = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  /** @param send gives what became of each item, in order; when it rejects, all of them fail */
  constructor(send: (items: readonly T[]) => Promise<readonly (R | Refusal)[]>, bounds: Bounds<T>) {
    this.#send = send;
    this.#bounds = bounds;
  }

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  /** Resolves when everything that was added has settled. */
  drain(): Promise<void> {
    if (this.#waiting.length === 0 && this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled || this.#underWay >= this.#bounds.batches) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    const batch = this.#next();
    if (batch.length === 0) return;
    this.#underWay++;
    if (this.#waiting.length > 0) this.#schedule();
    await this.#deliver(batch);
    this.#underWay--;
    if (this.#waiting.length > 0) this.#schedule();
    else if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  async #deliver(batch: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const outcomes = await this.#send(batch.map(({ item }) => item));
      batch.forEach(({ resolve, reject }, index) => {
        const outcome = outcomes[index];
        if (outcome instanceof Refusal) reject(outcome.error);
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
