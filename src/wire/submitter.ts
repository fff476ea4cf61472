/** Submitters: programs that may only submit tasks for one user (docs/reference/api.md, "Executor"). */
import { z } from 'zod';
import { labelSchema } from './did.ts';
import { hexDigits, shortText } from './text.ts';

export const SUBMITTER_NAME_MAX = 100;
/** Maximum of a user's active tokens. The limit keeps a client from filling the disk. */
export const SUBMITTERS_PER_USER = 64;
/** Prefix of a submitter's token, by which leaked tokens are recognised. */
export const SUBMITTER_PREFIX = 'rvs_';

/** `POST /submitters`. */
export const submitterRequestSchema = z.strictObject({
  user: labelSchema,
  name: shortText(SUBMITTER_NAME_MAX).min(1),
  /** SHA-256 of a token that the holder has already; without it, a token is generated. */
  token_sha256: hexDigits(64).optional(),
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

/** The answer to `POST`. A generated token is shown only here. */
export const submitterMadeSchema = submitterViewSchema.extend({ token: z.string().optional() });
/** `GET /submitters`. */
export const submitterListSchema = z.object({ submitters: z.array(submitterViewSchema) });
