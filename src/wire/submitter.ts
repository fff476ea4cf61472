/** Submitters: programs that hand tasks over for one user, and can do nothing else (docs/contracts.md §9a). */
import { z } from 'zod';
import { labelSchema } from './did.ts';
import { shortText } from './text.ts';

export const SUBMITTER_NAME_MAX = 100;
/** Tokens that stand for one user at a time; more are refused, so that nobody fills the disk. */
export const SUBMITTERS_PER_USER = 64;
/** What a submitter's token begins with, so that one that was leaked is recognised. */
export const SUBMITTER_PREFIX = 'rvs_';

/** `POST /submitters`. */
export const submitterRequestSchema = z.strictObject({
  user: labelSchema,
  name: shortText(SUBMITTER_NAME_MAX).min(1),
  /** SHA-256 of a token that its holder has already; without it one is made. */
  token_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits')
    .optional(),
});

/** `DELETE /submitters`. */
export const submitterRevocationSchema = z.strictObject({ id: z.uuid() });

export const submitterQuerySchema = z.strictObject({ user: labelSchema.optional() });

export const submitterViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  user: z.string(),
  created_at: z.string(),
  revoked_at: z.string().optional(),
});
export type SubmitterView = z.output<typeof submitterViewSchema>;

/** The answer to `POST`; a token that was made is shown this once. */
export const submitterMadeSchema = submitterViewSchema.extend({ token: z.string().optional() });
/** `GET /submitters`. */
export const submitterListSchema = z.object({ submitters: z.array(submitterViewSchema) });
