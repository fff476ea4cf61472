/**
 * Rotation: an accepted key names its successor. The old key is revoked in the same transaction, so there is no time in
 * which both are valid: a stolen key must not stay usable because its owner replaced it. Every request looks its key
 * up, so principal tokens of the old key end with it.
 */
import type { z } from 'zod';
import { verifySignature } from '../../kit/identity/keys.ts';
import { type RotatedKey, type rotateRequestSchema, rotationMessage } from '../../wire/agent.ts';
import { didOf, FINGERPRINT_LENGTH, parseDid } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore } from '../store/store.ts';
import { notProven } from './challenge.ts';
import { type EnrollmentMode, isAccepted } from './enrollment.ts';

/**
 * Carries out a rotation. A request for a rotation that has been carried out already is answered as done, also with a
 * used nonce: its answer may have been lost, and both signatures show that its sender has both keys.
 *
 * @throws ReveilleError `unauthorized` when nonce, DID, keys and signatures do not belong together, `forbidden` when the
 *   old key is not accepted, `conflict` when the new key cannot be used
 */
export async function rotate(
  store: AlarmStore,
  request: z.output<typeof rotateRequestSchema>,
  { mode, now }: { mode: EnrollmentMode; now: number },
): Promise<RotatedKey> {
  const [from, to] = [request.public_key.toLowerCase(), request.new_public_key.toLowerCase()];
  const isFresh = await store.takeNonce(request.nonce, request.did, now);
  const did = parseDid(request.did);
  if (!did || did.fingerprint !== from.slice(0, FINGERPRINT_LENGTH)) throw notProven();
  const { owner, label } = did;
  const message = rotationMessage(label, from, to, request.nonce);
  const isSigned =
    verifySignature(from, message, request.signature.toLowerCase()) &&
    verifySignature(to, message, request.new_signature.toLowerCase());
  if (!isSigned) throw notProven();
  if (from === to) throw new ReveilleError('invalid_request', 'new_public_key is the old key; create a new one');

  const answer = (repeated: boolean): RotatedKey => ({
    did: didOf(label, to),
    owner_user_id: owner,
    public_key: to,
    revoked_public_key: from,
    repeated,
  });
  const isDone = async () => {
    const keys = await store.keysOf(owner);
    const known = (publicKey: string) => keys.find((key) => key.publicKey === publicKey);
    const [old, successor] = [known(from), known(to)];
    return old && successor && old.revokedAt !== null && isAccepted(successor, mode);
  };
  if (await isDone()) return answer(true);
  if (!isFresh) throw notProven();
  const result = await store.rotateKey({ owner, from, to, now, enrolledOnly: mode === 'required' });
  if (result === 'rotated') return answer(false);
  if (result === 'revoked_before')
    throw new ReveilleError('conflict', 'the new key was revoked before; create another one');
  // A simultaneous identical request may have been first.
  if (await isDone()) return answer(true);
  throw new ReveilleError(
    'forbidden',
    `this key is not accepted for ${label}: it is unknown, or was revoked or replaced by another key before. If you did not do that, ask an operator to revoke all keys of the label ("reveille agent revoke --label ${label}") and to enrol yours`,
  );
}
