/** Authentication of agents at chronosd, and enrolment of their keys (docs/reference/api.md). */
import { z } from 'zod';
import { didSchema, labelSchema } from './did.ts';

/** The header that carries a principal token. */
export const PRINCIPAL_HEADER = 'x-chronos-agent';
/**
 * Proves which person sets the alarm or writes its message (`identity/person-rights.ts`). Without it, both are the
 * agent's.
 */
export const PERSON_HEADER = 'x-chronos-person';

const hex = (digits: number) =>
  z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`, 'i'), `must be ${digits} hex digits`);

export const publicKeySchema = hex(64);

export const challengeRequestSchema = z.strictObject({ did: didSchema });

export const challengeSchema = z.object({
  did: z.string(),
  nonce: z.string(),
  message: z.string(),
  expires_in: z.number(),
});

/** The text that an agent signs to answer a challenge. */
export function challengeMessage(did: string, nonce: string): string {
  return `matrix-chronos-auth:${did}:${nonce}`;
}

export const verifyRequestSchema = z.strictObject({
  did: didSchema,
  public_key: publicKeySchema,
  nonce: z.string().min(1).max(128),
  signature: hex(128),
  /** `false`: an unknown key is refused, even if it would be pinned as the first key of its label. */
  pin: z.boolean().optional(),
});

/**
 * The text that both keys of a rotation sign. Its prefix differs from that of {@link challengeMessage}, so neither
 * signature serves for the other.
 */
export function rotationMessage(label: string, oldKey: string, newKey: string, nonce: string): string {
  return `matrix-chronos-rotate:${label}:${oldKey.toLowerCase()}:${newKey.toLowerCase()}:${nonce}`;
}

export const rotateRequestSchema = z.strictObject({
  /** Of the old key, which the nonce was issued for. */
  did: didSchema,
  public_key: publicKeySchema,
  new_public_key: publicKeySchema,
  nonce: z.string().min(1).max(128),
  /** By the old key: its holder wants the new key in its place. */
  signature: hex(128),
  /** By the new key: the caller possesses it. */
  new_signature: hex(128),
});

export const rotatedSchema = z.object({
  did: z.string(),
  owner_user_id: z.string(),
  public_key: z.string(),
  revoked_public_key: z.string(),
  /** The rotation had been carried out before: the answer to an earlier request was lost. */
  repeated: z.boolean(),
});
export type RotatedKey = z.infer<typeof rotatedSchema>;

export const principalSchema = z.object({ token: z.string(), owner_user_id: z.string(), expires_in: z.number() });

export const enrollRequestSchema = z.strictObject({ label: labelSchema, public_key: publicKeySchema });
export const revokeRequestSchema = z.strictObject({ label: labelSchema, public_key: publicKeySchema.optional() });

/** An owner with waiting alarms and no key that chronosd accepts. */
export const orphanSchema = z.object({
  label: z.string(),
  /** Active and paused alarms. */
  open_alarms: z.int(),
  next_fire_at: z.string().optional(),
  /** When its last key was revoked; absent where a key is known, and must be enrolled first. */
  revoked_at: z.string().optional(),
});
export type Orphan = z.infer<typeof orphanSchema>;

/** A program whose access was revoked, by its id at its authorization server. */
export const clientEndSchema = z.strictObject({ client_id: z.string().min(1).max(500) });
/** How many alarms were paused, and how many addresses of alarms take nothing any more. */
export const clientEndedSchema = z.object({ alarms: z.int(), addresses: z.int() });
export type ClientEnded = z.infer<typeof clientEndedSchema>;

export const reownRequestSchema = z.strictObject({ label: labelSchema, to: labelSchema });
export const reownedSchema = z.object({ label: z.string(), to: z.string(), moved: z.int() });
export type Reowned = z.infer<typeof reownedSchema>;

export const enrolledKeySchema = z.object({
  label: z.string(),
  public_key: z.string(),
  did: z.string(),
  source: z.enum(['tofu', 'enrolled']),
  enrolled_at: z.string(),
  revoked_at: z.string().optional(),
});
export type EnrolledKey = z.infer<typeof enrolledKeySchema>;
