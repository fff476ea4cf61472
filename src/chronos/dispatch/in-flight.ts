/** Who is being delivered to right now: the bounds of concurrency, overall and for each user. */
import type { CancelTimer, Clock } from '../../clock/clock.ts';

export class InFlight {
  readonly #userConcurrency: number;
  readonly #perOwner = new Map<string, number>();
  readonly #tracked = new Set<Promise<void>>();
  #size = 0;
  #onFreed: (() => void) | undefined;

  constructor(userConcurrency: number) {
    this.#userConcurrency = userConcurrency;
  }

  /** Deliveries under way. */
  get size(): number {
    return this.#size;
  }

  /** Deliveries under way, by owner; owners without any are not in it. */
  perOwner(): ReadonlyMap<string, number> {
    return this.#perOwner;
  }

  /** Owners who may not have another delivery just now. */
  saturatedOwners(): Set<string> {
    const saturated = new Set<string>();
    for (const [owner, count] of this.#perOwner) if (count >= this.#userConcurrency) saturated.add(owner);
    return saturated;
  }

  /** Takes a slot; the function that comes back gives it free. */
  enter(owner: string): () => void {
    this.#size++;
    this.#perOwner.set(owner, (this.#perOwner.get(owner) ?? 0) + 1);
    return () => {
      this.#size--;
      const left = this.#perOwner.get(owner)! - 1;
      if (left > 0) this.#perOwner.set(owner, left);
      else this.#perOwner.delete(owner);
      this.#onFreed?.();
    };
  }

  /** Remembers an attempt until it has settled, its outcome stored. */
  track(attempt: Promise<void>): void {
    this.#tracked.add(attempt);
    void attempt.finally(() => this.#tracked.delete(attempt));
  }

  /** Resolves when every tracked attempt has settled. */
  async settled(): Promise<void> {
    while (this.#tracked.size > 0) await Promise.allSettled([...this.#tracked]);
  }

  /**
   * Resolves when `slots` have come free, or when one has and `withinMs` have passed since: claiming for every single slot
   * would cost a transaction each.
   */
  freed(slots: number, withinMs: number, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      let missing = slots;
      let cancel: CancelTimer | undefined;
      const done = () => {
        cancel?.();
        this.#onFreed = undefined;
        resolve();
      };
      this.#onFreed = () => {
        missing--;
        if (missing <= 0) done();
        else cancel ??= clock.after(withinMs, done);
      };
    });
  }
}
