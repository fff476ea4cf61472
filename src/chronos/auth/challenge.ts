/** Challenge and response: a caller proves possession of the key of a DID (docs/reference/api.md). */
import { randomBytes } from 'node:crypto';
import type { z } from 'zod';
import { verifySignature } from '../../kit/identity/keys.ts';
import { challengeMessage, type challengeSchema, type verifyRequestSchema } from '../../wire/agent.ts';
import { FINGERPRINT_LENGTH, parseDid } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore } from '../store/store.ts';
import type { ProvenKey } from './enrollment.ts';

/** How long a nonce is valid, in seconds. */
export const NONCE_TTL_SECONDS = 120;

/** One message for every invalid proof. A specific reason would help only an attacker. */
export function notProven(): ReveilleError {
  return new ReveilleError(
    'unauthorized',
    'the proof of identity was not accepted; ask for a new challenge and sign it',
  );
}

/** Creates a challenge for a DID and stores its nonce for all replicas. */
export async function issueChallenge(
  store: AlarmStore,
  did: string,
  now: number,
): Promise<z.infer<typeof challengeSchema>> {
  const nonce = randomBytes(32).toString('hex');
  await store.putNonce(nonce, did, now + NONCE_TTL_SECONDS * 1000, now);
  return { did, nonce, message: challengeMessage(did, nonce), expires_in: NONCE_TTL_SECONDS };
}

/**
 * Checks the answer to a challenge. The nonce is used up whatever the outcome.
 *
 * @returns the proved key, not yet admitted
 * @throws ReveilleError `unauthorized` when nonce, DID, key and signature do not belong together
 */
export async function checkAnswer(
  store: AlarmStore,
  answer: z.output<typeof verifyRequestSchema>,
  now: number,
): Promise<ProvenKey> {
  const publicKey = answer.public_key.toLowerCase();
  const fresh = await store.takeNonce(answer.nonce, answer.did, now);
  const did = parseDid(answer.did);
  if (!fresh || !did || did.fingerprint !== publicKey.slice(0, FINGERPRINT_LENGTH)) throw notProven();
  const message = challengeMessage(answer.did, answer.nonce);
  if (!verifySignature(publicKey, message, answer.signature.toLowerCase())) throw notProven();
  return { owner: did.owner, label: did.label, publicKey };
}
