/** Group commit: what arrives while earlier batches are on their way goes together in the next one. */

type Waiting<T, R> = { item: T; resolve: (result: R) => void; reject: (error: unknown) => void };

type Bounds<T> = {
  /** Most batches on their way at once. */
  batches: number;
  /** Most items in a batch. */
  items: number;
  /** Most weight in a batch that has more than one item. */
  weight: number;
  weigh: (item: T) => number;
};

/**
 * Collects items and hands them over in batches. Nothing waits while there is nothing to wait for: a lone item leaves when the
 * present turn of the event loop is over.
 */
export class Gatherer<T, R> {
  readonly #send: (items: readonly T[]) => Promise<readonly PromiseSettledResult<R>[]>;
  readonly #bounds: Bounds<T>;
  #waiting: Waiting<T, R>[] = [];
  #underWay = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  /** @param send what becomes of each item, in order; must not reject */
  constructor(send: (items: readonly T[]) => Promise<readonly PromiseSettledResult<R>[]>, bounds: Bounds<T>) {
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
    const outcomes = await this.#send(batch.map(({ item }) => item));
    this.#underWay--;
    batch.forEach(({ resolve, reject }, index) => {
      const outcome = outcomes[index]!;
      if (outcome.status === 'fulfilled') resolve(outcome.value);
      else reject(outcome.reason);
    });
    if (this.#waiting.length > 0) this.#schedule();
    else if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #next(): Waiting<T, R>[] {
    const { items, weight, weigh } = this.#bounds;
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
