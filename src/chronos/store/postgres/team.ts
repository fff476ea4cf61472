/**
 * Which buckets this replica prefers. Replicas that claim tell each other so, and each bucket is preferred by the one of
 * them whose name, hashed with the bucket, comes out highest (rendezvous hashing): when one comes or goes, only its own
 * buckets change hands. What somebody else prefers is left to them for a moment and no longer. Nothing else rests on it:
 * replicas that are wrong about each other claim in each other's way, or ring that moment late.
 */
import { createHash } from 'node:crypto';
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';

/** What is due in a bucket that another replica prefers is left to it for so long. */
export const STAND_BACK_MS = 50;
/** A replica that claims says so this often, */
const BEAT_MS = 1000;
/** is forgotten when nothing was heard of it for so long, */
const SILENT_MS = 3500;
/** and says nothing more when it has not looked for anything due for so long. */
const AT_WORK_MS = 5000;

const HERE = 'here';
const GONE = 'gone';

function score(member: string, bucket: number): string {
  return createHash('md5').update(`${member} ${bucket}`).digest('hex');
}

/** For each of `count` buckets, which of the members prefers it; the same wherever it is computed. */
export function rendezvous(members: readonly string[], count: number): string[] {
  return Array.from({ length: count }, (_, bucket) =>
    members.reduce((best, member) => (score(member, bucket) > score(best, bucket) ? member : best)),
  );
}

export type TeamOptions = {
  self: string;
  /** How many there are. */
  buckets: number;
  clock: Clock;
  /** Tells the others; must not reject. */
  tell: (word: string) => void;
};

export class Team {
  readonly #options: TeamOptions;
  /** When each of the others was heard last, by the monotonic clock. */
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

  /** This replica looks for what is due. */
  looks(): void {
    this.#lookedAt = this.#options.clock.monotonic();
    if (!this.#beat) this.#tick();
  }

  /** What another replica told. */
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
