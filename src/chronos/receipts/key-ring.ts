/**
 * The keys of machines, as far as they are known here: kept for a minute, and asked for anew when a signature does not
 * fit, for the token behind it may have been replaced; but seldom, so that garbage does not reach the router.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { verifyWebhook, WEBHOOK_HEADERS, type WebhookRefusal } from '../../kit/identity/webhook-signature.ts';
import type { AskKeys } from '../../router/client.ts';
import { ReveilleError } from '../../wire/errors.ts';

// Who signed a receipt: the proof that a post comes from the machine of the user that it names.

type SignedPost = {
  userId: string;
  fireId: string;
  /** By lower-case name. */
  headers: Readonly<Record<string, string | undefined>>;
  /** The very bytes that arrived. */
  body: Uint8Array;
  /** Called before a key is looked for; what it rejects with ends the check. */
  beforeKeys: () => Promise<void>;
};

/** Why a post was not believed; for the log. */
type ProofRefusal = WebhookRefusal | 'other_fire';

/**
 * Checks the signature of a post (Standard Webhooks). Its id must be the fire's, so that a post that somebody overheard
 * proves nothing about another fire. What is wrong without looking at a key is not asked of the router.
 *
 * @returns why it is not believed, or `undefined` when it is
 * @throws ReveilleError `unavailable` when the router has to be asked for the keys and cannot be; whatever `beforeKeys`
 *   rejects with
 */
export async function refusalOf(
  { userId, fireId, headers, body, beforeKeys }: SignedPost,
  { ring, clock }: { ring: KeyRing; clock: Clock },
): Promise<ProofRefusal | undefined> {
  const verdict = (secrets: readonly string[]) => verifyWebhook({ headers, body, secrets, nowMs: clock.now() });
  const without = verdict([]);
  if (!without.ok && without.reason !== 'no_match') return without.reason;
  if (headers[WEBHOOK_HEADERS.id] !== fireId) return 'other_fire';
  await beforeKeys();
  return (await ring.fits(userId, (keys) => verdict(keys).ok)) ? undefined : 'no_match';
}

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
