/** Who signed a receipt: the proof that a post comes from the machine of the user that it names. */
import type { Clock } from '../../kit/clock/clock.ts';
import { verifyWebhook, WEBHOOK_HEADERS, type WebhookRefusal } from '../../kit/identity/webhook-signature.ts';
import type { KeyRing } from './key-ring.ts';

export type SignedPost = {
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
export type ProofRefusal = WebhookRefusal | 'other_fire';

/**
 * Checks the signature of a post (Standard Webhooks). Its id must be the fire's, so that a post that somebody overheard proves nothing
 * about another fire. What is wrong without looking at a key is not asked of the router.
 *
 * @returns why it is not believed, or `undefined` when it is
 * @throws ReveilleError `unavailable` when the router has to be asked for the keys and cannot be; whatever `beforeKeys` rejects with
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
