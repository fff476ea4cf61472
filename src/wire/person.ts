/** Persons and the credentials with which they reach their machine (docs/contracts.md §4a). */
import { z } from 'zod';
import { conversationIdSchema, LIST_LIMIT_MAX } from './alarm.ts';
import { labelSchema } from './did.ts';
import { instantSchema } from './instant.ts';
import { RawJson } from './json.ts';
import { wholeNumber } from './settings.ts';
import { verbatimText } from './text.ts';

/** `rvp_`, the id that lists show, and 256 random bits. */
export const PERSON_TOKEN = /^rvp_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

export const personTokenIdSchema = z.string().regex(/^[0-9a-f]{12}$/, 'must be the 12 hex digits that the list shows');

export const PERSON_NAME_MAX = 100;
const name = z.string().min(1).max(PERSON_NAME_MAX);

/** What a credential is made with. */
export const personTokenCreateSchema = z.strictObject({
  /** What it is called: a device, a place. */
  name: name.optional(),
  /** In the future; absent: it does not expire. */
  expires_at: instantSchema.optional(),
});
export const personAddSchema = personTokenCreateSchema.extend({ user_id: labelSchema });
export type PersonTokenCreate = z.input<typeof personTokenCreateSchema>;

export const PERSON_TOKEN_STATES = ['active', 'expired', 'revoked'] as const;

/** A credential as lists show it. */
export const personTokenViewSchema = z.object({
  id: z.string(),
  user_id: z.string(),
  name: z.string(),
  state: z.enum(PERSON_TOKEN_STATES),
  created_at: z.string(),
  expires_at: z.string().optional(),
  revoked_at: z.string().optional(),
  /** To the minute. */
  last_used_at: z.string().optional(),
});
export type PersonTokenView = z.infer<typeof personTokenViewSchema>;

/** The one answer that holds the token itself. */
export const personTokenMadeSchema = personTokenViewSchema.extend({ token: z.string() });
export type PersonTokenMade = z.infer<typeof personTokenMadeSchema>;

export const personListQuerySchema = z.strictObject({
  user_id: labelSchema.optional(),
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  cursor: personTokenIdSchema.optional(),
});
export const personListSchema = z.object({
  tokens: z.array(personTokenViewSchema),
  next_cursor: z.string().optional(),
});
export const personRevokedSchema = z.object({ user_id: z.string(), revoked: z.array(personTokenViewSchema) });

/** What a person may send to `POST /chat`: words, and never what makes a turn an alarm's. */
export const personChatSchema = z.strictObject({
  message: verbatimText(256 * 1024),
  conversation_id: conversationIdSchema.optional(),
  payload: z.instanceof(RawJson).optional(),
});
export type PersonChat = z.output<typeof personChatSchema>;
