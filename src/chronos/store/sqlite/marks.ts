/**
 * Who has seen a change since they last looked, in memory: the file has one owner, through which every change goes. A
 * mark is set in the transaction of its change, which nobody reads in between; one that is rolled back costs a look.
 */
import { randomBytes } from 'node:crypto';

/** Owners whose changes are counted; then all have changed. */
const MOST_COUNTED = 100_000;

export class Marks {
  /** Another process has counted differently. */
  readonly #process = randomBytes(6).toString('hex');
  readonly #counts = new Map<string, number>();
  #all = 0;

  of(owner: string): string {
    return `${this.#process}.${this.#all}.${this.#counts.get(owner) ?? 0}`;
  }

  changed(owner: string): void {
    if (this.#counts.size >= MOST_COUNTED && !this.#counts.has(owner)) {
      this.#counts.clear();
      this.#all++;
    }
    this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1);
  }

  /** @param result of what may have changed something of one owner */
  after<T>(result: T, owner: string): T {
    this.changed(owner);
    return result;
  }

  /** @param count of what was changed, whoever's it is */
  afterAll(count: number): number {
    if (count > 0) this.#all++;
    return count;
  }
}
