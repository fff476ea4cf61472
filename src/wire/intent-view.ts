/** Intents as the executor shows them to people: the whole of one, and lists (docs/contracts.md §6). */
import { z } from 'zod';
import { conversationIdSchema, LIST_LIMIT_MAX } from './alarm.ts';
import { INTENT_STATUSES, intentIdSchema, intentStateSchema, nodeIdSchema } from './executor.ts';
import { intentSchema } from './intent.ts';
import { wholeNumber } from './settings.ts';

/** How a node of a plan can stand. */
export const NODE_STATES = [
  ...(['waiting', 'awaiting_approval', 'running', 'done', 'failed', 'denied', 'expired'] as const),
  ...(['not_run', 'unknown', 'skipped'] as const),
] as const;

export const nodeStateSchema = z.object({
  node_id: nodeIdSchema,
  state: z.enum(NODE_STATES),
  /** What stands behind it, in a sentence. */
  detail: z.string().optional(),
  /** Of a step whose last question was answered: who was first. */
  answered: z
    .object({
      approved: z.boolean(),
      at: z.string(),
      /** What the roster calls the key, and the key, or the id of the passkey. */
      name: z.string().optional(),
      approver: z.string().optional(),
    })
    .optional(),
});

/** Whose answer it was that counts: `approved by ada@laptop (3f2a…) at …`. Names are as the roster has them. */
export function answeredWords({ approved, at, name, approver }: AnswerGiven): string {
  const who = name === undefined ? '' : ` by ${name}${approver === undefined ? '' : ` (${approver.slice(0, 16)}…)`}`;
  return `${approved ? 'approved' : 'denied'}${who} at ${at}`;
}
type AnswerGiven = NonNullable<z.output<typeof nodeStateSchema>['answered']>;

/** `GET /intents/{id}`. */
export const intentViewSchema = intentStateSchema.extend({
  intent_id: intentIdSchema,
  created_at: z.string(),
  /** When it came to its end, by the record. */
  ended_at: z.string().optional(),
  conversation_id: conversationIdSchema.optional(),
  origin: z.enum(['chronos', 'person']),
  /** What was submitted in words. */
  prose: z.string().optional(),
  /** What it was compiled to, or what was submitted as JSON. */
  intent: intentSchema.optional(),
  nodes: z.array(nodeStateSchema),
});
export type IntentView = z.output<typeof intentViewSchema>;

/** `GET /intents`, newest first. */
export const intentListSchema = z.object({ intents: z.array(intentViewSchema) });

export const INTENT_LIST_LIMIT = 50;

/** The query of `GET /intents`. */
export const intentListQuerySchema = z.strictObject({
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  status: z.enum(INTENT_STATUSES).optional(),
});

/** The query of the executor's `GET /events`. */
export const intentEventQuerySchema = z.strictObject({ intent_id: intentIdSchema });

/** The `data` of each of its events: a hint to look. */
export const intentEventSchema = z.object({ intent_id: intentIdSchema, node_id: nodeIdSchema.optional() });
