/** What a person's key signs about the roster of approvers (docs/contracts.md §9a). */
import type { AgentKey } from '../../kit/identity/keys.ts';
import {
  type ApproverRequest,
  type EnrollmentStatement,
  enrollmentText,
  type RevocationRequest,
  type RevocationStatement,
  revocationText,
} from '../../wire/approver.ts';
import { type PasskeyRequest, passkeyEnrollmentText } from '../../wire/passkey.ts';
import { formatInstant } from '../../wire/rfc3339.ts';

/** How long what is signed here may be used; long enough for clocks that differ, too short to be kept. */
const SIGNED_FOR_MS = 15 * 60 * 1000;

/** Until when something that is signed now may be used. */
export const signedUntil = (now: number): string => formatInstant(now + SIGNED_FOR_MS);

type Ours = Omit<EnrollmentStatement, 'expires_at'>;

/**
 * A request of a key to become an approver, with its own signature; one that stands has to add another unless it is the
 * first.
 */
export function enrollmentRequest(key: AgentKey, about: Omit<Ours, 'approver'>, now: number): ApproverRequest {
  const statement = { ...about, approver: key.publicKeyHex, expires_at: signedUntil(now) };
  return { ...statement, signature: key.sign(enrollmentText(statement)) };
}

/** The same with the word of an approver who stands. */
export function vouchedFor<Request extends ApproverRequest | PasskeyRequest>(request: Request, key: AgentKey): Request {
  const signature = key.sign('passkey' in request ? passkeyEnrollmentText(request) : enrollmentText(request));
  return { ...request, voucher: { approver: key.publicKeyHex, signature } };
}

/** What ends a key, on the word of one that stands. */
export function revocationRequest(
  key: AgentKey,
  about: Omit<RevocationStatement, 'expires_at'>,
  now: number,
): RevocationRequest {
  const statement = { ...about, expires_at: signedUntil(now) };
  const signature = key.sign(revocationText(statement));
  return { ...statement, voucher: { approver: key.publicKeyHex, signature } };
}
