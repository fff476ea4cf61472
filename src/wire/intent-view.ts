/** Intents as the executor shows them to people: single intents and lists (docs/reference/api.md, "Executor"). */
import { z } from 'zod';
import { conversationIdSchema, LIST_LIMIT_MAX } from './alarm.ts';
import { INTENT_STATUSES, intentIdSchema, intentStateSchema, nodeIdSchema } from './executor.ts';
import { intentSchema } from './intent.ts';
import { wholeNumber } from './settings.ts';

/** States of a plan's node. */
export const NODE_STATES = [
  ...(['waiting', 'awaiting_approval', 'running', 'done', 'failed', 'denied', 'expired'] as const),
  ...(['not_run', 'unknown', 'skipped'] as const),
] as const;

export const nodeStateSchema = z.object({
  node_id: nodeIdSchema,
  state: z.enum(NODE_STATES),
  /** Explanation of the state, as a sentence. */
  detail: z.string().optional(),
  /** The first answer to the step's last question. */
  answered: z
    .object({
      approved: z.boolean(),
      at: z.string(),
      /** The key's name among the user's approvers, and the key or the passkey's id. */
      name: z.string().optional(),
      approver: z.string().optional(),
    })
    .optional(),
});

/** The accepted answer as text: `approved by ada@laptop (3f2a…) at …`. Names are those of the approver list. */
export function answerSummary({ approved, at, name, approver }: AnswerGiven): string {
  const who = name === undefined ? '' : ` by ${name}${approver === undefined ? '' : ` (${approver.slice(0, 16)}…)`}`;
  return `${approved ? 'approved' : 'denied'}${who} at ${at}`;
}
type AnswerGiven = NonNullable<z.output<typeof nodeStateSchema>['answered']>;

/** `GET /intents/{id}`. */
export const intentViewSchema = intentStateSchema.extend({
  intent_id: intentIdSchema,
  created_at: z.string(),
  /** When it ended, according to the record. */
  ended_at: z.string().optional(),
  conversation_id: conversationIdSchema.optional(),
  origin: z.enum(['chronos', 'person']),
  /** The task as submitted in prose. */
  prose: z.string().optional(),
  /** The compiled intent, or the one submitted as JSON. */
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
