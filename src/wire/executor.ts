/** The executor's HTTP interface, which `core_execute` uses (docs/reference/api.md, "Executor"). */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { approverKeySchema, signatureSchema, signedInstantSchema } from './approver.ts';
import { RawJson } from './json.ts';
import { assertionSchema } from './passkey.ts';
import { hexDigits, shortText, verbatimText } from './text.ts';

const INTENT_FINAL_STATUSES = ['completed', 'failed', 'denied', 'cancelled', 'unknown'] as const;

/**
 * `drafting` → `planned` → `awaiting_approval` ⇄ `executing` → a final status: `completed`, `failed`, `denied`,
 * `cancelled` or `unknown`. `denied`: a person or the policy denied a step; the error's code is one of {@link
 * DENIAL_CODES}. `unknown`: the executor cannot determine whether a step was executed.
 */
export const INTENT_STATUSES = [
  ...(['drafting', 'planned', 'awaiting_approval', 'executing'] as const),
  ...INTENT_FINAL_STATUSES,
] as const;
export type IntentStatus = (typeof INTENT_STATUSES)[number];

/** Whether an intent has reached a final status. */
export function isIntentFinal({ status }: { readonly status: IntentStatus }): boolean {
  return (INTENT_FINAL_STATUSES as readonly string[]).includes(status);
}

/** Error codes of a `denied` intent: a person denied a step, or the policy did. */
export const DENIAL_CODES: readonly string[] = ['denied', 'denied_by_policy'];

/** Used in URL paths unencoded, so it must not be a dot segment. */
const pathId = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$/,
    'must be 1 to 128 of A-Z a-z 0-9 . _ : -, and must not begin with . : -',
  );
export const intentIdSchema = pathId;
export const nodeIdSchema = pathId;
export const callDigestSchema = hexDigits(64);

export const CONTEXT_PIECES_MAX = 64;
export const CONTEXT_PIECE_MAX_BYTES = 64 * 1024;

/**
 * Largest request body of the executor, more than the 256 KiB of other daemons: a task includes its conversation. It is
 * less than all context pieces together may have; the sender omits the oldest ones.
 */
export const INTENT_BODY_MAX_BYTES = 2 * 1024 * 1024;

/** A piece of the conversation from which a task was submitted. */
export const contextPieceSchema = z.strictObject({
  /** A person's message, an alarm's message or payload, or the result of a tool. */
  from: z.enum(['person', 'alarm', 'tool']),
  text: verbatimText(CONTEXT_PIECE_MAX_BYTES),
});
export type ContextPiece = z.output<typeof contextPieceSchema>;

/** Members of {@link intentRequestSchema} that keep their source text. */
export const RAW_INTENT_FIELDS = ['intent'] as const;

/** `POST /messages/async`: a task as prose, or an intent with its plan. */
export const intentRequestSchema = z
  .strictObject({
    prose: verbatimText(64 * 1024).optional(),
    intent: z.instanceof(RawJson).optional(),
    idempotency_key: shortText(200).min(1).optional(),
    conversation_id: conversationIdSchema.optional(),
    /**
     * Origin of the task: `chronos` for a turn that an alarm or another agent started, when no person is present. Default
     * `person`.
     */
    origin: z.enum(['chronos', 'person']).optional(),
    /**
     * Messages and tool results of the conversation, oldest first. Values of the plan may come from them. The agent's
     * own messages are excluded, because it could have invented them.
     */
    context: z.array(contextPieceSchema).max(CONTEXT_PIECES_MAX).optional(),
  })
  .refine(({ prose, intent }) => (prose === undefined) !== (intent === undefined), {
    message: 'exactly one of prose and intent must be given',
  });
export type IntentRequest = z.output<typeof intentRequestSchema>;

/** The answer to `POST /messages/async`. The same idempotency key returns the same intent. */
export const intentAcceptedSchema = z.object({ intent_id: intentIdSchema });

/** The receipt that proves an outcome. Neo and the executor both serve it at `path`. */
export const receiptPointerSchema = z.object({
  /** Hash of the last envelope, which covers all earlier ones (docs/reference/receipts.md). */
  sha256: callDigestSchema,
  envelopes: z.int().min(1),
  /** `/intents/{id}/receipt` */
  path: z.string(),
});
export type ReceiptPointer = z.output<typeof receiptPointerSchema>;

/** `GET /messages/async/{id}`. */
export const intentStateSchema = z.object({
  status: z.enum(INTENT_STATUSES),
  /** The intent of the same user that must end first. */
  queued_behind: intentIdSchema.optional(),
  /** Whether the submitting agent ended its turn and is woken when the intent has ended. */
  parked: z.boolean().optional(),
  /** The outcome; written as its source text. */
  result: z.unknown().optional(),
  /** The question that the executor must have answered before it can plan. */
  clarify: z.string().optional(),
  error: z.object({ code: z.string().optional(), message: z.string() }).optional(),
  /** Only of an intent that has ended. */
  receipt: receiptPointerSchema.optional(),
});

/** A step that waits for an approver. */
export const gateSchema = z.object({
  node_id: nodeIdSchema,
  question: z.string(),
  options: z.array(z.string()).optional(),
  /** The call that an approval executes. `args` keeps its digits, `call_sha256` binds an answer to the call. */
  call: z.object({ tool: z.string(), args: z.unknown(), call_sha256: callDigestSchema }),
  /** SHA-256 of the question's UTF-8 text. Every question has its own digest, and an answer is valid for one only. */
  displayed_sha256: callDigestSchema,
  /** When the question expires, in UTC. */
  expires_at: z.string(),
});

/** `GET /intents/{id}/gates`. */
export const gateListSchema = z.object({ pending: z.array(gateSchema) });

/**
 * `POST /intents/{id}/gates/{node_id}/answer`, on the executor and on an agent daemon that forwards it. The sender
 * needs no permission: the signature of an approver of the intent's user is checked (`approver.ts`).
 */
export const gateAnswerSchema = z
  .strictObject({
    approved: z.boolean(),
    /** One of the gate's options, or free text. */
    answer: verbatimText(16 * 1024).optional(),
    /** The call and the question that were shown; the answer is valid for these only. */
    call_sha256: callDigestSchema,
    displayed_sha256: callDigestSchema,
    /** The approver's public key, or the id of the passkey. */
    approver: approverKeySchema,
    /** End of the answer's validity; at most 24 hours ahead. */
    expires_at: signedInstantSchema,
    /** Signature by a key. */
    signature: signatureSchema.optional(),
    /** Signature by a passkey, whose challenge is the digest of the answer. */
    passkey: assertionSchema.optional(),
  })
  .refine(({ signature, passkey }) => (signature === undefined) !== (passkey === undefined), {
    path: ['signature'],
    message: 'is required, or passkey instead; exactly one of the two',
    // Report it together with other problems.
    when: () => true,
  });
export type GateAnswer = z.output<typeof gateAnswerSchema>;

/** An agent daemon's response to an answer that the executor accepted. */
export const gateAnsweredSchema = z.object({
  intent_id: intentIdSchema,
  node_id: nodeIdSchema,
  approved: z.boolean(),
});

/** `POST /intents/{id}/cancel`; the body may be missing. */
export const cancelSchema = z.strictObject({
  /** The reason, as a sentence for the receipt. */
  reason: shortText(500).min(1).optional(),
});

/**
 * `POST /intents/{id}/park`: the agent ends its turn, and an alarm in this conversation reports the end of the intent.
 * Idempotent. An intent that has ended cannot be parked; the answer has its status.
 */
export const parkSchema = z.strictObject({ conversation_id: conversationIdSchema });
export const parkedSchema = z.object({
  intent_id: intentIdSchema,
  status: z.enum(INTENT_STATUSES),
  parked: z.boolean(),
});
