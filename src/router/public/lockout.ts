/**
 * What wrong credentials cost: after many of them nothing is looked at for a while, and for twice as long after the
 * next one. Many people may share an address (everybody on this computer, everybody behind one proxy): there the lock is
 * on the one credential that was guessed at, so that nobody locks out somebody else.
 */
import { backoff } from '../../kit/clock/backoff.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

/** So many are answered before the first pause. */
const FREE = 10;
const pauseSeconds = backoff({ first: 1, longest: 15 * 60 });
/** Whoever was quiet for so long after a pause begins anew. */
const FORGET_MS = 30 * 60_000;
const REMEMBERED = 4096;

type Offender = { wrong: number; lastAt: number; lockedUntil: number };

export class Lockouts {
  readonly #clock: Clock;
  readonly #isShared: (address: string) => boolean;
  /** In the order of the last wrong credential. */
  readonly #offenders = new Map<string, Offender>();
  /** Requests that met a lock. */
  refused = 0;

  /** @param isShared whether an address stands for any number of people */
  constructor(clock: Clock, isShared: (address: string) => boolean) {
    this.#clock = clock;
    this.#isShared = isShared;
  }

  /**
   * To be called before a credential is looked at.
   *
   * @param tokenId of the credential, when there is one with this id
   * @throws ReveilleError `rate_limited` while it is locked
   */
  check(address: string, tokenId: string | undefined): void {
    const now = this.#clock.monotonic();
    const untils = this.#keysOf(address, tokenId).map((key) => this.#offenders.get(key)?.lockedUntil ?? 0);
    const leftMs = Math.max(...untils) - now;
    if (leftMs <= 0) return;
    this.refused++;
    throw new ReveilleError('rate_limited', 'too many wrong credentials; wait for as long as Retry-After says', {
      retryAfterSeconds: leftMs / 1000,
    });
  }

  /** Counts a wrong one. */
  failed(address: string, tokenId: string | undefined): void {
    const now = this.#clock.monotonic();
    for (const key of this.#keysOf(address, tokenId)) {
      const known = this.#offenders.get(key);
      const isFresh = known !== undefined && now - Math.max(known.lastAt, known.lockedUntil) < FORGET_MS;
      const wrong = (isFresh ? known.wrong : 0) + 1;
      const lockedUntil = wrong < FREE ? 0 : now + 1000 * pauseSeconds(wrong - FREE + 1);
      this.#offenders.delete(key);
      this.#offenders.set(key, { wrong, lastAt: now, lockedUntil });
    }
    while (this.#offenders.size > REMEMBERED) this.#offenders.delete(this.#offenders.keys().next().value!);
  }

  /** A right one: wrong ones with its id do not count any more. Those of the address do. */
  succeeded(address: string, tokenId: string): void {
    this.#offenders.delete(`${address} ${tokenId}`);
  }

  #keysOf(address: string, tokenId: string | undefined): string[] {
    if (tokenId === undefined) return [address];
    const one = `${address} ${tokenId}`;
    return this.#isShared(address) ? [one] : [one, address];
  }
}
