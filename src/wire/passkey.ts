/**
 * Passkeys: approvers whose private half lives in an authenticator and speaks through a browser (W3C Web Authentication
 * Level 3). What is binary is lower-case hex, as everywhere in a receipt; client data is the JSON text itself.
 */
import { z } from 'zod';
import { approverKeySchema, enrollmentShape, voucherSchema } from './approver.ts';
import { canonicalJson } from './canonical-json.ts';
import { verbatimText } from './text.ts';

/** Bounds apart from the pattern: some engines of patterns count repetitions to 1000 at most. */
function bytes(least: number, most: number) {
  const error = `must be ${least} to ${most} bytes in lower-case hex digits`;
  return z
    .string()
    .min(2 * least, { error, abort: true })
    .max(2 * most, { error, abort: true })
    .regex(/^(?:[0-9a-f]{2})+$/, error);
}

/** RFC 1035 in lower case; an address is no name, and a passkey belongs to a name. */
const RP_ID = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const NO_RP_ID = 'must be a name in lower case, not an address';
export const ORIGIN_MAX = 300;

/** A credential of which only the public half is known. */
export const passkeySchema = z.strictObject({
  /** As the authenticator named it. */
  credential_id: bytes(1, 1023),
  /** The one address whose pages may ask for its signature, as `https://console.example` or `http://localhost:8087`. */
  origin: z.string().min(1).max(ORIGIN_MAX),
  /** SubjectPublicKeyInfo in DER (RFC 5280 §4.1): P-256, Ed25519, or RSA. */
  public_key: bytes(32, 1200),
  /** The name that the authenticator keeps it for (WebAuthn §4, RP ID). */
  rp_id: z.string().max(253, { error: NO_RP_ID, abort: true }).regex(RP_ID, NO_RP_ID),
});
export type Passkey = z.output<typeof passkeySchema>;

/** What an authenticator signs, and its signature (WebAuthn §5.2.2). */
export const assertionSchema = z.strictObject({
  /** §6.1 */
  authenticator_data: bytes(37, 1024),
  /** §5.8.1: the JSON text whose digest is signed. */
  client_data: verbatimText(4096),
  signature: bytes(8, 1024),
});
export type Assertion = z.output<typeof assertionSchema>;

/** An assertion with the credential that it is of: what a receipt holds. */
export const passkeySignatureSchema = passkeySchema.extend(assertionSchema.shape);
export type PasskeySignature = z.output<typeof passkeySignatureSchema>;

const { approver: _, ...aboutShape } = enrollmentShape;
const passkeyShape = { ...aboutShape, passkey: passkeySchema };

/** What an approver's key signs to let a passkey in. */
export type PasskeyStatement = z.output<z.ZodObject<typeof passkeyShape>>;

export function passkeyEnrollmentText({ passkey, name, user, executor, expires_at }: PasskeyStatement): string {
  return canonicalJson({ purpose: 'reveille.passkey.enroll/1', passkey, name, user, executor, expires_at });
}

/** `POST /approvers`, for a passkey: always on the word of a key that stands, the user's first included. */
export const passkeyRequestSchema = z.strictObject({ ...passkeyShape, voucher: voucherSchema.optional() });
export type PasskeyRequest = z.output<typeof passkeyRequestSchema>;

/** `GET /passkeys`: with which of them the questions of a user may be answered. */
export const passkeyListSchema = z.object({
  /** The public key that the executor signs receipts with: what is signed to let another one in names it. */
  executor: approverKeySchema,
  passkeys: z.array(
    z.object({
      approver: approverKeySchema,
      name: z.string(),
      credential_id: z.string(),
      origin: z.string(),
      rp_id: z.string(),
    }),
  ),
});
export type PasskeyList = z.output<typeof passkeyListSchema>;
export type OfferedPasskey = PasskeyList['passkeys'][number];
