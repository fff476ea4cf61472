/**
 * The keys of machines, as far as they are known here: kept for a minute, and asked for anew when a signature does not fit, for the
 * token behind it may have been replaced; but seldom, so that garbage does not reach the router.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import type { AskKeys } from '../../router/client.ts';
import { ReveilleError } from '../../wire/errors.ts';

export type KeyRingOptions = {
  ask: AskKeys;
  clock: Clock;
};

const KEPT_MS = 60_000;
/** Of one user, keys are not asked for more often than this. */
const ASKED_EVERY_MS = 3_000;
/** Users whose keys are kept. */
const MOST_KEPT = 10_000;
/** Questions to the router at a time. */
const MOST_ASKED = 32;

type Entry = { keys: readonly string[]; askedAt: number };

export class KeyRing {
  readonly #ask: AskKeys;
  readonly #clock: Clock;
  /** In the order of their last use. */
  readonly #kept = new Map<string, Entry>();
  readonly #asking = new Map<string, Promise<Entry>>();

  constructor({ ask, clock }: KeyRingOptions) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /**
   * Whether one of a user's keys fits; a user without a machine has none.
   *
   * @param fits tried on the keys that are known, then perhaps on newer ones
   * @throws ReveilleError `unavailable` when the router has to be asked and cannot be
   */
  async fits(userId: string, fits: (keys: readonly string[]) => boolean): Promise<boolean> {
    const kept = this.#use(userId);
    const age = kept === undefined ? Number.POSITIVE_INFINITY : this.#clock.monotonic() - kept.askedAt;
    if (kept && age < KEPT_MS && fits(kept.keys)) return true;
    if (kept && age < ASKED_EVERY_MS) return false;
    return fits((await this.#renewed(userId)).keys);
  }

  #use(userId: string): Entry | undefined {
    const entry = this.#kept.get(userId);
    if (entry) this.#keep(userId, entry);
    return entry;
  }

  #keep(userId: string, entry: Entry): void {
    this.#kept.delete(userId);
    this.#kept.set(userId, entry);
    if (this.#kept.size > MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
  }

  /** Asks the router, once however many wait for the answer. */
  #renewed(userId: string): Promise<Entry> {
    const underWay = this.#asking.get(userId);
    if (underWay) return underWay;
    if (this.#asking.size >= MOST_ASKED)
      throw new ReveilleError('unavailable', 'too many receipts wait for the router at present', {
        retryAfterSeconds: 1,
      });
    const asked = this.#answer(userId).finally(() => this.#asking.delete(userId));
    this.#asking.set(userId, asked);
    return asked;
  }

  async #answer(userId: string): Promise<Entry> {
    const keys = (await this.#ask(userId)) ?? [];
    const entry = { keys, askedAt: this.#clock.monotonic() };
    this.#keep(userId, entry);
    return entry;
  }
}
