/** Which public keys may speak for an owner (contracts §1): trust on first use, or only what an operator enrolled. */
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore } from '../store/store.ts';

export const ENROLLMENT_MODES = ['tofu', 'required'] as const;
export type EnrollmentMode = (typeof ENROLLMENT_MODES)[number];

/** A public key that has just been proved, and whom it claims to speak for. */
export type ProvenKey = { owner: string; label: string; publicKey: string };

/** Whether this key may act for the owner right now. Where enrolment is required, a key that was only pinned may not. */
export async function isAccepted(
  store: AlarmStore,
  owner: string,
  publicKey: string,
  mode: EnrollmentMode,
): Promise<boolean> {
  const key = (await store.keysOf(owner)).find((known) => known.publicKey === publicKey);
  return key !== undefined && key.revokedAt === null && (mode === 'tofu' || key.source === 'enrolled');
}

/**
 * Admits a proven key, pinning it when it is the owner's first and the mode allows that.
 *
 * @throws ReveilleError `forbidden` when the key may not speak for the owner
 */
export async function admit(store: AlarmStore, key: ProvenKey, mode: EnrollmentMode, now: number): Promise<void> {
  if (await isAccepted(store, key.owner, key.publicKey, mode)) return;
  const pinned =
    mode === 'tofu' && (await store.pinFirstKey({ ...key, source: 'tofu', enrolledAt: now, revokedAt: null }));
  if (pinned) return;
  throw new ReveilleError(
    'forbidden',
    'this key is not enrolled for that label; an operator can enrol it with "reveille agent enroll"',
  );
}
