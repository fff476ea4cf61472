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

export const principalSchema = z.object({ token: z.string(), owner_user_id: z.string(), expires_in: z.number() });

export const enrollRequestSchema = z.strictObject({ label: labelSchema, public_key: publicKeySchema });
export const revokeRequestSchema = z.strictObject({ label: labelSchema, public_key: publicKeySchema.optional() });

export const enrolledKeySchema = z.object({
  label: z.string(),
  public_key: z.string(),
  did: z.string(),
  source: z.enum(['tofu', 'enrolled']),
  enrolled_at: z.string(),
  revoked_at: z.string().optional(),
});
export type EnrolledKey = z.infer<typeof enrolledKeySchema>;
