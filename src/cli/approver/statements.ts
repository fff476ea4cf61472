/** Statements about the roster of approvers that a user's key signs (see docs/reference/receipts.md). */
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

/** Validity of a signed statement: long enough for clock differences, short enough against later use. */
const SIGNED_FOR_MS = 15 * 60 * 1000;

/** Expiry of a statement that is signed now. */
export const signedUntil = (now: number): string => formatInstant(now + SIGNED_FOR_MS);

type Ours = Omit<EnrollmentStatement, 'expires_at'>;

/** A key's request to become an approver, signed by itself. An active approver must sign it too, unless it is the first. */
export function enrollmentRequest(key: AgentKey, about: Omit<Ours, 'approver'>, now: number): ApproverRequest {
  const statement = { ...about, approver: key.publicKeyHex, expires_at: signedUntil(now) };
  return { ...statement, signature: key.sign(enrollmentText(statement)) };
}

/** The request with the signature of an active approver. */
export function vouchedFor<Request extends ApproverRequest | PasskeyRequest>(request: Request, key: AgentKey): Request {
  const signature = key.sign('passkey' in request ? passkeyEnrollmentText(request) : enrollmentText(request));
  return { ...request, voucher: { approver: key.publicKeyHex, signature } };
}

/** The revocation of a key, signed by an active one. */
export function revocationRequest(
  key: AgentKey,
  about: Omit<RevocationStatement, 'expires_at'>,
  now: number,
): RevocationRequest {
  const statement = { ...about, expires_at: signedUntil(now) };
  const signature = key.sign(revocationText(statement));
  return { ...statement, voucher: { approver: key.publicKeyHex, signature } };
}
