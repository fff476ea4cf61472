/** Persons and their credentials for their machine (docs/reference/api.md, "The public listener"). */
import { z } from 'zod';
import { publicKeySchema } from './agent.ts';
import { conversationIdSchema, LIST_LIMIT_MAX } from './alarm.ts';
import { labelSchema } from './did.ts';
import { RawJson } from './json.ts';
import { wholeNumber } from './settings.ts';
import { instantSchema, verbatimText } from './text.ts';

/** `rvp_`, the id shown in lists, and 256 random bits. */
export const PERSON_TOKEN = /^rvp_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

export const personTokenIdSchema = z.string().regex(/^[0-9a-f]{12}$/, 'must be the 12 hex digits of an id in the list');

export const PERSON_NAME_MAX = 100;
const name = z.string().min(1).max(PERSON_NAME_MAX);

/** Properties of a new credential. */
export const personTokenCreateSchema = z.strictObject({
  /** A name for it, such as a device or a place. */
  name: name.optional(),
  /** In the future; absent: the credential does not expire. */
  expires_at: instantSchema.optional(),
});
export const personAddSchema = personTokenCreateSchema.extend({ user_id: labelSchema });
export type PersonTokenCreate = z.input<typeof personTokenCreateSchema>;

export const PERSON_TOKEN_STATES = ['active', 'expired', 'revoked'] as const;

/** A credential in lists. */
export const personTokenViewSchema = z.object({
  id: z.string(),
  user_id: z.string(),
  name: z.string(),
  state: z.enum(PERSON_TOKEN_STATES),
  created_at: z.string(),
  expires_at: z.string().optional(),
  revoked_at: z.string().optional(),
  /** With a resolution of one minute. */
  last_used_at: z.string().optional(),
  /** If enrolled: the person's key at chronosd, and the id of their submitter at the executor. */
  alarm_key: z.string().optional(),
  submitter: z.string().optional(),
});
export type PersonTokenView = z.infer<typeof personTokenViewSchema>;

/** The only answer that contains the token. */
export const personTokenMadeSchema = personTokenViewSchema.extend({
  token: z.string(),
  /** Whether this router has a console, for which the credential needs rights at other daemons. */
  has_console: z.boolean().optional(),
});
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

/** What ended because the access of a program was revoked, as numbers. */
export const endedSchema = z.object({
  /** Alarms that it made, or whose message it wrote; they are paused. */
  alarms: z.int(),
  /** Addresses of these alarms. */
  addresses: z.int(),
  /** Subscriptions of MCP Events. */
  subscriptions: z.int(),
  /** Addresses for notifications about tasks of A2A, and unfinished tasks. */
  push_targets: z.int(),
  tasks: z.int(),
  /** What could not be ended, as sentences. */
  left: z.array(z.string()),
});
export type Ended = z.infer<typeof endedSchema>;
export type EndedCount = Exclude<keyof Ended, 'left'>;

/** The numbers and the rest, for people; nothing for absent or empty ones. */
export function endedSentences(ended: Ended | undefined): string[] {
  if (ended === undefined) return [];
  const counted = (name: EndedCount, what: string, many = `${what}s`) =>
    ended[name] === 0 ? [] : [`${ended[name]} ${ended[name] === 1 ? what : many}`];
  const paused = counted('alarms', 'alarm');
  const others = [
    ...counted('addresses', 'address of them', 'addresses of them'),
    ...counted('subscriptions', 'subscription'),
    ...counted('push_targets', 'push target'),
    ...counted('tasks', 'task'),
  ];
  return [
    ...paused.map((text) => `Paused ${text}.`),
    ...(others.length > 0 ? [`Ended ${others.join(', ')}.`] : []),
    ...ended.left,
  ];
}

/** The answer to the revocation of one credential: the credential, and what ended with it. */
export const personTokenRevokedSchema = personTokenViewSchema.extend({ ended: endedSchema.optional() });
export const personRevokedSchema = z.object({
  user_id: z.string(),
  revoked: z.array(personTokenViewSchema),
  ended: endedSchema.optional(),
});

/** The credential's rights at other daemons, as the operator set them up (`identity/person-rights.ts`). */
export const personRightsSchema = z.strictObject({
  /** The key enrolled at chronosd for this user, and the token that marks it as a person's. */
  alarm_key: publicKeySchema.optional(),
  alarm_mark: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII')
    .optional(),
  /** The id of the submitter at the executor. */
  submitter: z.string().min(1).max(100).optional(),
});
export type PersonRights = z.output<typeof personRightsSchema>;

/** Request for a sign-in code of the console. */
export const consoleCodeRequestSchema = z.strictObject({
  /** IANA time zone for the times on the pages. */
  zone: z.string().min(1).max(64).optional(),
});
export const consoleCodeSchema = z.object({
  /** Opens `/o/CODE` once. */
  code: z.string(),
  /** Seconds. */
  expires_in: z.number(),
});

/** Body of a person's `POST /chat`: a message, without the members that mark an alarm's turn. */
export const personChatSchema = z.strictObject({
  message: verbatimText(256 * 1024),
  conversation_id: conversationIdSchema.optional(),
  payload: z.instanceof(RawJson).optional(),
});
export type PersonChat = z.output<typeof personChatSchema>;
