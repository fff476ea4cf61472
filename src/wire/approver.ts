/**
 * Approvers: people whose keys sign answers to approval gates (docs/reference/api.md, "Executor"). This file has the signed texts,
 * and the routes under which an operator enrols and revokes keys. An answer's statement has the members that the
 * contract fixes. Every other statement names its purpose, so a signature for one kind is invalid for the others.
 */
import { z } from 'zod';
import { canonicalJson } from './canonical-json.ts';
import { labelSchema } from './did.ts';
import { isWrittenInstant } from './rfc3339.ts';
import { hexDigits, shortText } from './text.ts';

/** Longest validity of a signature after it was checked, in milliseconds. */
export const SIGNED_AHEAD_MS = 24 * 60 * 60 * 1000;
export const APPROVER_NAME_MAX = 100;
/** Keys of one user, revoked ones included. The limit keeps a client from filling the disk. */
export const APPROVERS_PER_USER = 64;

/** An Ed25519 public key. */
export const approverKeySchema = hexDigits(64);
export const signatureSchema = hexDigits(128);
/** An instant in the form that receipts use. The signature covers the text, so each instant has exactly one form. */
export const signedInstantSchema = z
  .string()
  .refine(isWrittenInstant, 'must be an instant in UTC with milliseconds, such as 2026-06-15T08:10:00.000Z');

/** An answer and the question that it belongs to. */
export type AnswerStatement = {
  readonly intent_id: string;
  readonly node_id: string;
  readonly call_sha256: string;
  readonly displayed_sha256: string;
  readonly approved: boolean;
  readonly answer?: string | undefined;
  readonly expires_at: string;
};

/** The text that an approver signs to answer a question; other members of the object are ignored. */
export function answerText(statement: AnswerStatement): string {
  const { intent_id, node_id, call_sha256, displayed_sha256, approved, answer, expires_at } = statement;
  return canonicalJson({ intent_id, node_id, call_sha256, displayed_sha256, approved, answer, expires_at });
}

/** A signature under the same statement by the key of an enrolled approver. */
export const voucherSchema = z.strictObject({ approver: approverKeySchema, signature: signatureSchema });

export const enrollmentShape = {
  /** The new key. */
  approver: approverKeySchema,
  name: shortText(APPROVER_NAME_MAX).min(1),
  user: labelSchema,
  /** The public key that signs the executor's receipts. It binds the statement to one executor. */
  executor: approverKeySchema,
  expires_at: signedInstantSchema,
};

/** The statement that is signed to enrol a key. */
export type EnrollmentStatement = z.output<z.ZodObject<typeof enrollmentShape>>;

export function enrollmentText({ approver, name, user, executor, expires_at }: EnrollmentStatement): string {
  return canonicalJson({ purpose: 'reveille.approver.enroll/1', approver, name, user, executor, expires_at });
}

/** `POST /approvers`: the signature of the new key, and of an active approver if the user has one. */
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

/** The statement that is signed to revoke a key. */
export type RevocationStatement = z.output<z.ZodObject<typeof revocationShape>>;

export function revocationText({ approver, user, executor, expires_at }: RevocationStatement): string {
  return canonicalJson({ purpose: 'reveille.approver.revoke/1', approver, user, executor, expires_at });
}

/** `DELETE /approvers`. A key may sign its own revocation, unless it is the user's last key. */
export const revocationRequestSchema = z.strictObject({ ...revocationShape, voucher: voucherSchema });
export type RevocationRequest = z.output<typeof revocationRequestSchema>;

export const approverQuerySchema = z.strictObject({ user: labelSchema.optional() });

export const approverViewSchema = z.object({
  /** An Ed25519 public key, or the id of a passkey. */
  approver: z.string(),
  name: z.string(),
  user: z.string(),
  enrolled_at: z.string(),
  /** The key that signed the enrolment; `operator` for the user's first key. */
  enrolled_by: z.string(),
  revoked_at: z.string().optional(),
  /** The key that signed the revocation; `operator` for a reset. */
  revoked_by: z.string().optional(),
  /** For a passkey: the origin where it can be used, and its signature counter (0 if it does not count). */
  passkey: z
    .object({ credential_id: z.string(), origin: z.string(), rp_id: z.string(), sign_count: z.int() })
    .optional(),
  /** The row was changed outside the executor, so the key is not accepted. */
  forged: z.literal(true).optional(),
});
export type ApproverView = z.output<typeof approverViewSchema>;

/** `GET /approvers`: all keys, revoked ones included, and the operator's resets of a user's keys. */
export const approverListSchema = z.object({
  executor: approverKeySchema,
  approvers: z.array(approverViewSchema),
  resets: z.array(z.object({ user: z.string(), at: z.string() })),
});
export type ApproverList = z.output<typeof approverListSchema>;
