/**
 * Replica membership: the buckets that this replica prefers.
 *
 * Active replicas notify each other. Each bucket is preferred by the replica whose name, hashed with the bucket, has
 * the highest value (rendezvous hashing). When a replica starts or stops, only its own buckets move. A replica waits a
 * moment before it claims from a bucket that another one prefers. Nothing else depends on membership: with wrong
 * information, replicas compete for claims or fire that moment late.
 */
import { createHash } from 'node:crypto';
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';

/** Interval of the heartbeat of an active replica. */
const HEARTBEAT_MS = 1000;
/** A replica without a heartbeat for this time is removed. */
const HEARTBEAT_TIMEOUT_MS = 3500;
/** A replica without a claim for this time sends no heartbeat. */
const ACTIVE_MS = 5000;

const HERE = 'here';
const GONE = 'gone';

function score(member: string, bucket: number): string {
  return createHash('md5').update(`${member} ${bucket}`).digest('hex');
}

/** The member that prefers each of `count` buckets; the same on every replica. */
export function rendezvous(members: readonly string[], count: number): string[] {
  return Array.from({ length: count }, (_, bucket) =>
    members.reduce((best, member) => (score(member, bucket) > score(best, bucket) ? member : best)),
  );
}

export type MembershipOptions = {
  self: string;
  /** The number of buckets. */
  buckets: number;
  clock: Clock;
  /** Notifies the other replicas; must not reject. */
  notify: (message: string) => void;
};

export class ReplicaMembership {
  readonly #options: MembershipOptions;
  /** Time of the last heartbeat of each other replica, by the monotonic clock. */
  readonly #lastHeartbeat = new Map<string, number>();
  #preferred: readonly boolean[] | undefined;
  #claimedAt = 0;
  #heartbeat: CancelTimer | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  prefers(bucket: number): boolean {
    return this.#preferred?.[bucket] ?? true;
  }

  /** This replica claims. */
  recordClaim(): void {
    this.#claimedAt = this.#options.clock.monotonic();
    if (!this.#heartbeat) this.#tick();
  }

  /** Handles a message of another replica. */
  receive(member: string, message: string): void {
    const before = this.#lastHeartbeat.size;
    if (message === HERE) this.#lastHeartbeat.set(member, this.#options.clock.monotonic());
    else if (message === GONE) this.#lastHeartbeat.delete(member);
    if (this.#lastHeartbeat.size !== before) this.#assign();
  }

  stop(): void {
    if (this.#heartbeat) this.#options.notify(GONE);
    this.#heartbeat?.();
    this.#heartbeat = undefined;
  }

  #tick(): void {
    const { clock, notify } = this.#options;
    const now = clock.monotonic();
    const silent = [...this.#lastHeartbeat].filter(([, at]) => now - at > HEARTBEAT_TIMEOUT_MS);
    for (const [member] of silent) this.#lastHeartbeat.delete(member);
    if (silent.length > 0) this.#assign();
    if (now - this.#claimedAt <= ACTIVE_MS) notify(HERE);
    this.#heartbeat = clock.after(HEARTBEAT_MS, () => this.#tick());
  }

  #assign(): void {
    const { self, buckets } = this.#options;
    const members = [self, ...this.#lastHeartbeat.keys()].sort();
    this.#preferred = members.length === 1 ? undefined : rendezvous(members, buckets).map((member) => member === self);
  }
}
