/** Keeps the leases of what is in flight alive, so that a slow machine is not mistaken for a dead replica. */
import type { CancelTimer, Clock } from '../../clock/clock.ts';
import type { Logger } from '../../log/log.ts';
import type { AlarmStore, LeaseKey } from '../store/store.ts';

export class LeaseKeeper {
  readonly #store: AlarmStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #leaseMs: number;
  readonly #held = new Map<string, LeaseKey>();
  #timer: CancelTimer | undefined;

  constructor(store: AlarmStore, clock: Clock, log: Logger, leaseMs: number) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#leaseMs = leaseMs;
  }

  /** From now on the lease is renewed, until {@link release}. */
  hold(key: LeaseKey): void {
    this.#held.set(key.fireId, key);
    // A third of the lease leaves room for one failed renewal and a slow one.
    this.#timer ??= this.#clock.after(this.#leaseMs / 3, () => void this.#renew());
  }

  /** @param key the claim as it was held; a later claim of the same occurrence is not affected */
  release(key: LeaseKey): void {
    if (this.#held.get(key.fireId)?.fence === key.fence) this.#held.delete(key.fireId);
  }

  stop(): void {
    this.#timer?.();
    this.#timer = undefined;
    this.#held.clear();
  }

  async #renew(): Promise<void> {
    const keys = [...this.#held.values()];
    try {
      if (keys.length > 0) {
        const kept = await this.#store.renew(keys, this.#clock.now() + this.#leaseMs);
        for (const key of keys) {
          if (kept.has(key.fireId) || !this.#held.has(key.fireId)) continue;
          this.#log.warn({ fire_id: key.fireId, fence: key.fence }, 'lease lost; another holder may repeat this wake');
          this.release(key);
        }
      }
    } catch (error) {
      this.#log.warn({ err: error, leases: keys.length }, 'leases could not be renewed; trying again');
    }
    this.#timer = this.#held.size > 0 ? this.#clock.after(this.#leaseMs / 3, () => void this.#renew()) : undefined;
  }
}
