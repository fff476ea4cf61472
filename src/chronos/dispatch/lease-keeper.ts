/** Renews the leases of running deliveries, so that a slow machine is not mistaken for a dead replica. */
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { AlarmStore, LeaseKey } from '../store/store.ts';

/** A lease is not renewed before this share of it has elapsed. */
const YOUNG_LEASE_SHARE = 1 / 6;

type Lease = { readonly key: LeaseKey; until: number };

export class LeaseKeeper {
  readonly #store: AlarmStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #leaseMs: number;
  readonly #leases = new Map<string, Lease>();
  #timer: CancelTimer | undefined;
  #stopped = false;

  constructor(store: AlarmStore, clock: Clock, log: Logger, leaseMs: number) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#leaseMs = leaseMs;
  }

  /** Renews the lease, which ends at `until`, from now on until {@link release}. */
  add(key: LeaseKey, until: number): void {
    this.#leases.set(key.fireId, { key, until });
    this.#timer ??= this.#renewLater();
  }

  /** @param key the claim as it was held; a later claim of the same occurrence is not affected */
  release(key: LeaseKey): void {
    if (this.#leases.get(key.fireId)?.key.fence === key.fence) this.#leases.delete(key.fireId);
  }

  /**
   * Renews at once if a lease of this process has expired by `now`. Call it before a claim. After an outage of the
   * store, a jump of the wall clock or a suspend, the claim would otherwise take occurrences of this process.
   *
   * @throws the errors of the store
   */
  async renewOverdue(now: number): Promise<void> {
    for (const { until } of this.#leases.values()) {
      if (until <= now) return this.#renew([...this.#leases.values()]);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.();
    this.#leases.clear();
  }

  #renewLater(): CancelTimer {
    // A third of the lease leaves time for one failed renewal and a slow one.
    return this.#clock.after(this.#leaseMs / 3, () => void this.#renewRegularly());
  }

  async #renewRegularly(): Promise<void> {
    try {
      // A lease that was claimed a moment ago is renewed in the next round, when most of it has elapsed.
      const young = this.#clock.now() + (1 - YOUNG_LEASE_SHARE) * this.#leaseMs;
      await this.#renew([...this.#leases.values()].filter(({ until }) => until <= young));
    } catch (error) {
      this.#log.warn({ err: error, leases: this.#leases.size }, 'leases could not be renewed; retrying');
    }
    this.#timer = this.#leases.size > 0 && !this.#stopped ? this.#renewLater() : undefined;
  }

  async #renew(leases: readonly Lease[]): Promise<void> {
    if (leases.length === 0) return;
    const until = this.#clock.now() + this.#leaseMs;
    const renewed = await this.#store.renew(
      leases.map(({ key }) => key),
      until,
    );
    for (const lease of leases) {
      const { fireId, fence } = lease.key;
      if (renewed.has(fireId)) {
        lease.until = until;
      } else if (this.#leases.get(fireId) === lease) {
        this.#leases.delete(fireId);
        this.#log.warn({ fire_id: fireId, fence }, 'lease lost; another replica may repeat this wake');
      }
    }
  }
}
