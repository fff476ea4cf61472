/**
 * Approvers: people whose keys answer questions (docs/contracts.md §9a). What a key of theirs signs, and the routes
 * under which an operator enrols and revokes them. An answer's statement has the members that the contract fixes; every
 * other statement names its purpose, so that no signature can be taken for one of another kind.
 */
import { z } from 'zod';
import { canonicalJson } from './canonical-json.ts';
import { labelSchema } from './did.ts';
import { isWrittenInstant } from './rfc3339.ts';
import { shortText } from './text.ts';

/** A signature holds no longer than this after it was checked, in milliseconds. */
export const SIGNED_AHEAD_MS = 24 * 60 * 60 * 1000;
export const APPROVER_NAME_MAX = 100;
/** Keys that one user may have had, revoked ones included: more are refused, so that nobody fills the disk. */
export const APPROVERS_PER_USER = 64;

const hex = (digits: number) =>
  z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`), `must be ${digits} lower-case hex digits`);
/** An Ed25519 public key. */
export const approverKeySchema = hex(64);
export const signatureSchema = hex(128);
/**
 * An instant as it is written everywhere in a receipt: the text is what is signed, so there is one for each instant.
 */
export const signedInstantSchema = z
  .string()
  .refine(isWrittenInstant, 'must be an instant in UTC with milliseconds, such as 2026-06-15T08:10:00.000Z');

/** What an answer is about, and what it says. */
export type AnswerStatement = {
  readonly intent_id: string;
  readonly node_id: string;
  readonly call_sha256: string;
  readonly displayed_sha256: string;
  readonly approved: boolean;
  readonly answer?: string | undefined;
  readonly expires_at: string;
};

/** The text that an approver signs to answer a question; what else an object has is left out. */
export function answerText(statement: AnswerStatement): string {
  const { intent_id, node_id, call_sha256, displayed_sha256, approved, answer, expires_at } = statement;
  return canonicalJson({ intent_id, node_id, call_sha256, displayed_sha256, approved, answer, expires_at });
}

/** Another key's signature under the same statement: of somebody who may answer already. */
export const voucherSchema = z.strictObject({ approver: approverKeySchema, signature: signatureSchema });

export const enrollmentShape = {
  /** The new key. */
  approver: approverKeySchema,
  name: shortText(APPROVER_NAME_MAX).min(1),
  user: labelSchema,
  /** The public key that the executor signs receipts with: a statement counts at one executor alone. */
  executor: approverKeySchema,
  expires_at: signedInstantSchema,
};

/** What is signed to enrol a key. */
export type EnrollmentStatement = z.output<z.ZodObject<typeof enrollmentShape>>;

export function enrollmentText({ approver, name, user, executor, expires_at }: EnrollmentStatement): string {
  return canonicalJson({ purpose: 'reveille.approver.enroll/1', approver, name, user, executor, expires_at });
}

/** `POST /approvers`: the new key's own signature, and that of an approver who stands, where the user has one. */
export const approverRequestSchema = z.strictObject({
  ...enrollmentShape,
  signature: signatureSchema,
  voucher: voucherSchema.optional(),
});
export type ApproverRequest = z.output<typeof approverRequestSchema>;

const revocationShape = {
  approver: approverKeySchema,
  user: labelSchema,
  executor: approverKeySchema,
  expires_at: signedInstantSchema,
};

/** What is signed to revoke a key. */
export type RevocationStatement = z.output<z.ZodObject<typeof revocationShape>>;

export function revocationText({ approver, user, executor, expires_at }: RevocationStatement): string {
  return canonicalJson({ purpose: 'reveille.approver.revoke/1', approver, user, executor, expires_at });
}

/** `DELETE /approvers`. A key may vouch for its own end, but for the last one of a user. */
export const revocationRequestSchema = z.strictObject({ ...revocationShape, voucher: voucherSchema });
export type RevocationRequest = z.output<typeof revocationRequestSchema>;

export const approverQuerySchema = z.strictObject({ user: labelSchema.optional() });

export const approverViewSchema = z.object({
  /** An Ed25519 public key, or the id of a passkey. */
  approver: z.string(),
  name: z.string(),
  user: z.string(),
  enrolled_at: z.string(),
  /** The key that vouched for it; `operator` for a user's first one. */
  enrolled_by: z.string(),
  revoked_at: z.string().optional(),
  /** The key that said so; `operator` for a reset. */
  revoked_by: z.string().optional(),
  /** Of a passkey: where it may be asked for, and how often it says that it has signed (0 where it does not count). */
  passkey: z
    .object({ credential_id: z.string(), origin: z.string(), rp_id: z.string(), sign_count: z.int() })
    .optional(),
  /** Its row was changed behind the executor's back, so it does not count. */
  forged: z.literal(true).optional(),
});
export type ApproverView = z.output<typeof approverViewSchema>;

/** `GET /approvers`: revoked ones, too, and when an operator began somebody's roster anew. */
export const approverListSchema = z.object({
  executor: approverKeySchema,
  approvers: z.array(approverViewSchema),
  resets: z.array(z.object({ user: z.string(), at: z.string() })),
});
export type ApproverList = z.output<typeof approverListSchema>;
