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

/** How long a replica waits before it claims from a bucket that another one prefers. */
export const STAND_BACK_MS = 50;
/** Interval of the heartbeat of an active replica. */
const BEAT_MS = 1000;
/** A replica without a heartbeat for this time is removed. */
const SILENT_MS = 3500;
/** A replica without a claim for this time sends no heartbeat. */
const AT_WORK_MS = 5000;

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

export type TeamOptions = {
  self: string;
  /** The number of buckets. */
  buckets: number;
  clock: Clock;
  /** Notifies the other replicas; must not reject. */
  tell: (word: string) => void;
};

export class Team {
  readonly #options: TeamOptions;
  /** Time of the last heartbeat of each other replica, by the monotonic clock. */
  readonly #heard = new Map<string, number>();
  #mine: readonly boolean[] | undefined;
  #lookedAt = 0;
  #beat: CancelTimer | undefined;

  constructor(options: TeamOptions) {
    this.#options = options;
  }

  prefers(bucket: number): boolean {
    return this.#mine?.[bucket] ?? true;
  }

  /** This replica claims. */
  looks(): void {
    this.#lookedAt = this.#options.clock.monotonic();
    if (!this.#beat) this.#tick();
  }

  /** Handles a message of another replica. */
  hear(member: string, word: string): void {
    const before = this.#heard.size;
    if (word === HERE) this.#heard.set(member, this.#options.clock.monotonic());
    else if (word === GONE) this.#heard.delete(member);
    if (this.#heard.size !== before) this.#deal();
  }

  stop(): void {
    if (this.#beat) this.#options.tell(GONE);
    this.#beat?.();
    this.#beat = undefined;
  }

  #tick(): void {
    const { clock, tell } = this.#options;
    const now = clock.monotonic();
    const silent = [...this.#heard].filter(([, at]) => now - at > SILENT_MS);
    for (const [member] of silent) this.#heard.delete(member);
    if (silent.length > 0) this.#deal();
    if (now - this.#lookedAt <= AT_WORK_MS) tell(HERE);
    this.#beat = clock.after(BEAT_MS, () => this.#tick());
  }

  #deal(): void {
    const { self, buckets } = this.#options;
    const members = [self, ...this.#heard.keys()].sort();
    this.#mine = members.length === 1 ? undefined : rendezvous(members, buckets).map((member) => member === self);
  }
}
