/**
 * Passkeys: approvers whose private key is in an authenticator that a browser addresses (W3C Web Authentication Level
 * 3). Binary values are lower-case hex, as everywhere in a receipt. Client data is the JSON text itself.
 */
import { z } from 'zod';
import { approverKeySchema, enrollmentShape, voucherSchema } from './approver.ts';
import { canonicalJson } from './canonical-json.ts';
import { verbatimText } from './text.ts';

/** The length has its own checks, because some regular expression engines limit repetition counts to 1000. */
function bytes(least: number, most: number) {
  const error = `must be ${least} to ${most} bytes in lower-case hex digits`;
  return z
    .string()
    .min(2 * least, { error, abort: true })
    .max(2 * most, { error, abort: true })
    .regex(/^(?:[0-9a-f]{2})+$/, error);
}

/** A lower-case domain name (RFC 1035). Passkeys are bound to a name, so an address is refused. */
const RP_ID = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const NO_RP_ID = 'must be a name in lower case, not an address';
export const ORIGIN_MAX = 300;

/** The public half of a credential. */
export const passkeySchema = z.strictObject({
  /** The authenticator's id for it. */
  credential_id: bytes(1, 1023),
  /** The only origin whose pages may use it, as `https://console.example` or `http://localhost:8087`. */
  origin: z.string().min(1).max(ORIGIN_MAX),
  /** SubjectPublicKeyInfo in DER (RFC 5280 §4.1): P-256, Ed25519, or RSA. */
  public_key: bytes(32, 1200),
  /** The relying party's name (WebAuthn §4, RP ID). */
  rp_id: z.string().max(253, { error: NO_RP_ID, abort: true }).regex(RP_ID, NO_RP_ID),
});
export type Passkey = z.output<typeof passkeySchema>;

/** The data that an authenticator signed, and its signature (WebAuthn §5.2.2). */
export const assertionSchema = z.strictObject({
  /** §6.1 */
  authenticator_data: bytes(37, 1024),
  /** §5.8.1: the JSON text whose digest is signed. */
  client_data: verbatimText(4096),
  signature: bytes(8, 1024),
});
export type Assertion = z.output<typeof assertionSchema>;

/** An assertion with its credential, as a receipt stores it. */
export const passkeySignatureSchema = passkeySchema.extend(assertionSchema.shape);
export type PasskeySignature = z.output<typeof passkeySignatureSchema>;

const { approver: _, ...statementShape } = enrollmentShape;
const passkeyShape = { ...statementShape, passkey: passkeySchema };

/** The statement that an approver's key signs to enrol a passkey. */
export type PasskeyStatement = z.output<z.ZodObject<typeof passkeyShape>>;

export function passkeyEnrollmentText({ passkey, name, user, executor, expires_at }: PasskeyStatement): string {
  return canonicalJson({ purpose: 'reveille.passkey.enroll/1', passkey, name, user, executor, expires_at });
}

/** `POST /approvers` for a passkey. An enrolled key must sign it, also for the user's first passkey. */
export const passkeyRequestSchema = z.strictObject({ ...passkeyShape, voucher: voucherSchema.optional() });
export type PasskeyRequest = z.output<typeof passkeyRequestSchema>;

/** `GET /passkeys`: the passkeys that can answer a user's questions. */
export const passkeyListSchema = z.object({
  /** The public key that signs the executor's receipts; statements that enrol another passkey name it. */
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
