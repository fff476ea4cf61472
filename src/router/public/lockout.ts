/**
 * Limits wrong credentials. After many of them the listener rejects attempts for a pause, which doubles after each
 * further one. Many users may share an address: all on this computer, or all behind one proxy. There the lock applies
 * to the guessed credential only, so that no user locks out another.
 */
import { backoff } from '../../kit/clock/backoff.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

/** The wrong credentials before the first pause. */
const FREE_ATTEMPTS = 10;
const pauseSeconds = backoff({ first: 1, longest: 15 * 60 });
/** After this time without attempts the count starts again. */
const FORGET_MS = 30 * 60_000;
const MOST_ENTRIES = 4096;

type Failures = { wrong: number; lastAt: number; lockedUntil: number };

export class Lockouts {
  readonly #clock: Clock;
  readonly #isShared: (address: string) => boolean;
  /** In the order of the last wrong credential. */
  readonly #failures = new Map<string, Failures>();
  /** Requests that were locked out. */
  refused = 0;

  /** @param isShared whether any number of users share an address */
  constructor(clock: Clock, isShared: (address: string) => boolean) {
    this.#clock = clock;
    this.#isShared = isShared;
  }

  /**
   * Call it before a credential is verified.
   *
   * @param tokenId the id of the credential, if one with this id exists
   * @throws ReveilleError `rate_limited` while it is locked
   */
  check(address: string, tokenId: string | undefined): void {
    const now = this.#clock.monotonic();
    const untils = this.#keysOf(address, tokenId).map((key) => this.#failures.get(key)?.lockedUntil ?? 0);
    const leftMs = Math.max(...untils) - now;
    if (leftMs <= 0) return;
    this.refused++;
    throw new ReveilleError('rate_limited', 'too many wrong credentials; wait for the time in Retry-After', {
      retryAfterSeconds: leftMs / 1000,
    });
  }

  /** Counts a wrong credential. */
  failed(address: string, tokenId: string | undefined): void {
    const now = this.#clock.monotonic();
    for (const key of this.#keysOf(address, tokenId)) {
      const known = this.#failures.get(key);
      const isFresh = known !== undefined && now - Math.max(known.lastAt, known.lockedUntil) < FORGET_MS;
      const wrong = (isFresh ? known.wrong : 0) + 1;
      const lockedUntil = wrong < FREE_ATTEMPTS ? 0 : now + 1000 * pauseSeconds(wrong - FREE_ATTEMPTS + 1);
      this.#failures.delete(key);
      this.#failures.set(key, { wrong, lastAt: now, lockedUntil });
    }
    while (this.#failures.size > MOST_ENTRIES) this.#failures.delete(this.#failures.keys().next().value!);
  }

  /** A valid credential resets the count of its id. The count of the address stays. */
  succeeded(address: string, tokenId: string): void {
    this.#failures.delete(`${address} ${tokenId}`);
  }

  #keysOf(address: string, tokenId: string | undefined): string[] {
    if (tokenId === undefined) return [address];
    const one = `${address} ${tokenId}`;
    return this.#isShared(address) ? [one] : [one, address];
  }
}
