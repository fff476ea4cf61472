/**
 * The public keys that may act for an owner (docs/reference/api.md, "Identity of an agent"): by trust on first use, or only keys that an
 * operator enrolled.
 */
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { AgentKey, AlarmStore, PinLimits } from '../store/store.ts';

export const ENROLLMENT_MODES = ['tofu', 'required'] as const;
export type EnrollmentMode = (typeof ENROLLMENT_MODES)[number];

/** A public key that has just been proved, and the owner that it claims to act for. */
export type ProvenKey = { owner: string; label: string; publicKey: string };

/** Whether a key may act for its owner. Where enrolment is required, a key that was only pinned may not. */
export function isAccepted(key: AgentKey, mode: EnrollmentMode): boolean {
  return key.revokedAt === null && (mode === 'tofu' || key.source === 'enrolled');
}

/** The key, when it may act for the owner. */
export async function acceptedKey(
  store: AlarmStore,
  owner: string,
  publicKey: string,
  mode: EnrollmentMode,
): Promise<AgentKey | undefined> {
  const key = (await store.keysOf(owner)).find((known) => known.publicKey === publicKey);
  return key && isAccepted(key, mode) ? key : undefined;
}

/**
 * Admits a proven key. It is pinned when it is the owner's first and the mode allows that.
 *
 * @throws ReveilleError `forbidden` when the key may not act for the owner, `rate_limited` when too many owners are new
 */
export async function admit(
  store: AlarmStore,
  key: ProvenKey,
  {
    mode,
    now,
    mayPin = true,
    pins,
  }: { mode: EnrollmentMode; now: number; mayPin?: boolean; pins?: PinLimits | undefined },
): Promise<void> {
  if (await acceptedKey(store, key.owner, key.publicKey, mode)) return;
  const first: AgentKey = { ...key, source: 'tofu', enrolledAt: now, revokedAt: null };
  const pinned = mode === 'tofu' && mayPin && (await store.pinFirstKey(first, pins));
  if (pinned) return;
  const known = (await store.keysOf(key.owner)).find(({ publicKey }) => publicKey === key.publicKey);
  if (known && known.revokedAt !== null)
    throw new ReveilleError(
      'forbidden',
      `this key was revoked for that label at ${formatInstant(known.revokedAt)}: use the key that replaced it; without one, an operator can enrol a new key with "reveille agent enroll"`,
    );
  throw new ReveilleError(
    'forbidden',
    'this key is not enrolled for that label; an operator can enrol it with "reveille agent enroll"',
  );
}
