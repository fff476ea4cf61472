/** Running deliveries and the limits on concurrency, in total and for each user. */
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';

/**
 * While more is due than there are slots, the next claim waits until this share of them is free, or for {@link
 * REFILL_MS}.
 */
const REFILL_SHARE = 1 / 4;
const REFILL_MS = 8;

export type InFlightBounds = {
  /** Most deliveries at once. */
  concurrency: number;
  /** Most deliveries at once to one user. */
  userConcurrency: number;
};

export class InFlight {
  readonly #bounds: InFlightBounds;
  readonly #perOwner = new Map<string, number>();
  readonly #tracked = new Set<Promise<void>>();
  #size = 0;
  #onFreed: (() => void) | undefined;

  constructor(bounds: InFlightBounds) {
    this.#bounds = bounds;
  }

  /** Running deliveries. */
  get size(): number {
    return this.#size;
  }

  /**
   * How many more may start. Outcomes that are not stored yet count, up to a factor of two: they must not pile up when
   * the store is slower than the wakes.
   */
  get freeSlots(): number {
    const { concurrency } = this.#bounds;
    return Math.max(0, Math.min(concurrency - this.#size, 2 * concurrency - this.#tracked.size));
  }

  /** Running deliveries by owner; owners without any are absent. */
  perOwner(): ReadonlyMap<string, number> {
    return new Map(this.#perOwner);
  }

  /** Owners who may not have another delivery now. */
  saturatedOwners(): Set<string> {
    const saturated = new Set<string>();
    for (const [owner, count] of this.#perOwner) if (count >= this.#bounds.userConcurrency) saturated.add(owner);
    return saturated;
  }

  /**
   * Takes a slot.
   *
   * @returns frees the slot, and returns whether its owner could have no other until then
   */
  enter(owner: string): () => boolean {
    this.#size++;
    this.#perOwner.set(owner, (this.#perOwner.get(owner) ?? 0) + 1);
    return () => {
      this.#size--;
      const count = this.#perOwner.get(owner)!;
      if (count > 1) this.#perOwner.set(owner, count - 1);
      else this.#perOwner.delete(owner);
      this.#onFreed?.();
      return count >= this.#bounds.userConcurrency;
    };
  }

  /** Tracks an attempt until it has settled and its outcome is stored. */
  track(attempt: Promise<void>): void {
    this.#tracked.add(attempt);
    void attempt.finally(() => {
      this.#tracked.delete(attempt);
      this.#onFreed?.();
    });
  }

  /** Resolves when every tracked attempt has settled. */
  async settled(): Promise<void> {
    while (this.#tracked.size > 0) await Promise.allSettled([...this.#tracked]);
  }

  /** Whether enough slots are free for a claim to be worth its transaction while more is due than there are slots. */
  get canRefill(): boolean {
    return this.freeSlots >= this.#bounds.concurrency * REFILL_SHARE;
  }

  /**
   * Resolves when {@link canRefill} is true, or when any slot is free and a moment has passed since. A claim for
   * every single slot would cost a transaction each.
   */
  whenRefillable(clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      let cancel: CancelTimer | undefined;
      const done = () => {
        cancel?.();
        this.#onFreed = undefined;
        resolve();
      };
      const check = () => {
        if (this.canRefill) done();
        else if (this.freeSlots > 0) cancel ??= clock.after(REFILL_MS, done);
      };
      this.#onFreed = check;
      check();
    });
  }
}
