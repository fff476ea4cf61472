/** The executor's HTTP interface: the rail behind `core_execute` (contracts §6). */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { RawJson } from './json.ts';
import { shortText, verbatimText } from './text.ts';

/**
 * `drafting` → `planned` → `awaiting_approval` ⇄ `executing` → `completed`, `failed`, `cancelled`, or `unknown` (nobody can say
 * whether a step was carried out).
 */
export const INTENT_STATUSES = [
  ...(['drafting', 'planned', 'awaiting_approval', 'executing'] as const),
  ...(['completed', 'failed', 'cancelled', 'unknown'] as const),
] as const;
export type IntentStatus = (typeof INTENT_STATUSES)[number];

/** Goes into paths as it is, so it must not read as a step upwards. */
const pathId = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$/, 'must be 1 to 128 of A-Z a-z 0-9 . _ : -, and not begin with . : -');
export const intentIdSchema = pathId;
export const nodeIdSchema = pathId;
export const callDigestSchema = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');

/** The members of {@link intentRequestSchema} that are kept as source text. */
export const RAW_INTENT_FIELDS = ['intent'] as const;

/** `POST /messages/async`: a task in words, or an intent with its plan. */
export const intentRequestSchema = z
  .strictObject({
    prose: verbatimText(64 * 1024).optional(),
    intent: z.instanceof(RawJson).optional(),
    idempotency_key: shortText(200).min(1).optional(),
    conversation_id: conversationIdSchema.optional(),
  })
  .refine(({ prose, intent }) => (prose === undefined) !== (intent === undefined), {
    message: 'exactly one of prose and intent must be given',
  });
export type IntentRequest = z.output<typeof intentRequestSchema>;

/** The answer to it. The same idempotency key gives the same intent. */
export const intentAcceptedSchema = z.object({ intent_id: intentIdSchema });

/** `GET /messages/async/{id}`. */
export const intentStateSchema = z.object({
  status: z.enum(INTENT_STATUSES),
  /** What came of it; written as its source text. */
  result: z.unknown().optional(),
  /** What the executor needs to know before it can plan. */
  clarify: z.string().optional(),
  error: z.object({ code: z.string().optional(), message: z.string() }).optional(),
});

/** A step that waits for a human. */
export const gateSchema = z.object({
  node_id: nodeIdSchema,
  question: z.string(),
  options: z.array(z.string()).optional(),
  /** What will be done when it is approved; `args` keeps its digits, `call_sha256` binds an answer to it. */
  call: z.object({ tool: z.string(), args: z.unknown(), call_sha256: callDigestSchema }),
});

/** `GET /intents/{id}/gates`. */
export const gateListSchema = z.object({ pending: z.array(gateSchema) });

/** `POST /intents/{id}/gates/{node_id}/answer`, on the executor and on an agent daemon that passes it on. */
export const gateAnswerSchema = z.strictObject({
  approved: z.boolean(),
  /** One of the gate's options, or words. */
  answer: verbatimText(16 * 1024).optional(),
  /** The call that was shown; the answer counts for no other. */
  call_sha256: callDigestSchema.optional(),
});
export type GateAnswer = z.output<typeof gateAnswerSchema>;

/** What an agent daemon says to an answer that the executor took. */
export const gateAnsweredSchema = z.object({
  intent_id: intentIdSchema,
  node_id: nodeIdSchema,
  approved: z.boolean(),
});

/** The kinds of server-sent events of `GET /events?intent_id=`. */
export const INTENT_EVENTS = ['gate.invoked', 'intent.attest', 'intent.fail', 'intent.cancel'] as const;
