/**
 * Cache of machine keys. Keys are kept for a minute. When a signature does not fit, they are requested again, because
 * the token may have been replaced. The rate of these requests is limited, so that invalid posts do not reach the
 * router.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { verifyWebhook, WEBHOOK_HEADERS, type WebhookRefusal } from '../../kit/identity/webhook-signature.ts';
import type { AskKeys } from '../../router/client.ts';
import { ReveilleError } from '../../wire/errors.ts';

// Verifies that a turn report comes from the machine of the user that it names.

type SignedPost = {
  userId: string;
  fireId: string;
  /** By lower-case name. */
  headers: Readonly<Record<string, string | undefined>>;
  /** The exact bytes that arrived. */
  body: Uint8Array;
  /** Called before a key is looked up; its rejection ends the check. */
  beforeKeys: () => Promise<void>;
};

/** Why a post was rejected; for the log. */
type ProofRefusal = WebhookRefusal | 'other_fire';

/**
 * Checks the signature of a post (Standard Webhooks). Its id must be the fire's, so that an intercepted post proves
 * nothing about another fire. The router is asked only when the post is otherwise valid.
 *
 * @returns the reason of a rejection, or `undefined` when the post is valid
 * @throws ReveilleError `unavailable` when the keys must be requested from the router and it is unreachable; any
 *   rejection of `beforeKeys`
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

const CACHE_MS = 60_000;
/** Minimum interval between two key requests for one user. */
const REQUEST_INTERVAL_MS = 3_000;
/** Users whose keys are kept. */
const MAX_CACHED = 10_000;
/** Concurrent requests to the router. */
const MAX_REQUESTS = 32;

type Entry = { keys: readonly string[]; requestedAt: number };

export class KeyRing {
  readonly #request: AskKeys;
  readonly #clock: Clock;
  /** Ordered by last use. */
  readonly #cached = new Map<string, Entry>();
  readonly #requests = new Map<string, Promise<Entry>>();

  constructor({ ask, clock }: KeyRingOptions) {
    this.#request = ask;
    this.#clock = clock;
  }

  /**
   * Whether one of a user's keys fits; a user without a machine has none.
   *
   * @param fits called with the cached keys, then perhaps with newer ones
   * @throws ReveilleError `unavailable` when the router must be asked and is unreachable
   */
  async fits(userId: string, fits: (keys: readonly string[]) => boolean): Promise<boolean> {
    const cached = this.#use(userId);
    const age = cached === undefined ? Number.POSITIVE_INFINITY : this.#clock.monotonic() - cached.requestedAt;
    if (cached && age < CACHE_MS && fits(cached.keys)) return true;
    if (cached && age < REQUEST_INTERVAL_MS) return false;
    return fits((await this.#renewed(userId)).keys);
  }

  #use(userId: string): Entry | undefined {
    const entry = this.#cached.get(userId);
    if (entry) this.#keep(userId, entry);
    return entry;
  }

  #keep(userId: string, entry: Entry): void {
    this.#cached.delete(userId);
    this.#cached.set(userId, entry);
    if (this.#cached.size > MAX_CACHED) this.#cached.delete(this.#cached.keys().next().value!);
  }

  /** Requests the keys from the router, once for all concurrent callers. */
  #renewed(userId: string): Promise<Entry> {
    const running = this.#requests.get(userId);
    if (running) return running;
    if (this.#requests.size >= MAX_REQUESTS)
      throw new ReveilleError('unavailable', 'too many turn reports wait for the router at present', {
        retryAfterSeconds: 1,
      });
    const request = this.#answer(userId).finally(() => this.#requests.delete(userId));
    this.#requests.set(userId, request);
    return request;
  }

  async #answer(userId: string): Promise<Entry> {
    const keys = (await this.#request(userId)) ?? [];
    const entry = { keys, requestedAt: this.#clock.monotonic() };
    this.#keep(userId, entry);
    return entry;
  }
}
