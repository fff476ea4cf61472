/** The executor's HTTP interface: the rail behind `core_execute` (docs/contracts.md §6). */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { approverKeySchema, signatureSchema, signedInstantSchema } from './approver.ts';
import { RawJson } from './json.ts';
import { assertionSchema } from './passkey.ts';
import { shortText, verbatimText } from './text.ts';

const INTENT_END_STATUSES = ['completed', 'failed', 'denied', 'cancelled', 'unknown'] as const;

/**
 * `drafting` → `planned` → `awaiting_approval` ⇄ `executing` → `completed`, `failed`, `denied` (a person or the policy
 * said no to a step; the error's code is one of {@link DENIAL_CODES}), `cancelled`, or `unknown` (nobody can say
 * whether a step was carried out).
 */
export const INTENT_STATUSES = [
  ...(['drafting', 'planned', 'awaiting_approval', 'executing'] as const),
  ...INTENT_END_STATUSES,
] as const;
export type IntentStatus = (typeof INTENT_STATUSES)[number];

/** Whether an intent has come to its end. */
export function isIntentOver({ status }: { readonly status: IntentStatus }): boolean {
  return (INTENT_END_STATUSES as readonly string[]).includes(status);
}

/** Why an intent is `denied`: a person said no to a step, or the policy did. */
export const DENIAL_CODES: readonly string[] = ['denied', 'denied_by_policy'];

/** Goes into paths as it is, so it must not read as a step upwards. */
const pathId = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$/, 'must be 1 to 128 of A-Z a-z 0-9 . _ : -, and not begin with . : -');
export const intentIdSchema = pathId;
export const nodeIdSchema = pathId;
export const callDigestSchema = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');

export const CONTEXT_PIECES_MAX = 64;
export const CONTEXT_PIECE_MAX_BYTES = 64 * 1024;

/**
 * Largest body of a request to the executor. More than the 256 KiB of other daemons: a task comes with what was said
 * and read before. Less than the pieces could be together; whoever hands a task over leaves the oldest ones out.
 */
export const INTENT_BODY_MAX_BYTES = 2 * 1024 * 1024;

/** A piece of the conversation that a task is handed over from. */
export const contextPieceSchema = z.strictObject({
  /** A person, an alarm's message or payload, or what a tool gave back. */
  from: z.enum(['person', 'alarm', 'tool']),
  text: verbatimText(CONTEXT_PIECE_MAX_BYTES),
});
export type ContextPiece = z.output<typeof contextPieceSchema>;

/** The members of {@link intentRequestSchema} that are kept as source text. */
export const RAW_INTENT_FIELDS = ['intent'] as const;

/** `POST /messages/async`: a task in words, or an intent with its plan. */
export const intentRequestSchema = z
  .strictObject({
    prose: verbatimText(64 * 1024).optional(),
    intent: z.instanceof(RawJson).optional(),
    idempotency_key: shortText(200).min(1).optional(),
    conversation_id: conversationIdSchema.optional(),
    /**
     * Who is behind it: `chronos` for a turn that an alarm began, with nobody there. A person is taken to be there
     * unless told.
     */
    origin: z.enum(['chronos', 'person']).optional(),
    /**
     * What was said and read in the conversation, oldest first: values of the plan may come from here. The agent's own
     * words are left out, for it could have made them up.
     */
    context: z.array(contextPieceSchema).max(CONTEXT_PIECES_MAX).optional(),
  })
  .refine(({ prose, intent }) => (prose === undefined) !== (intent === undefined), {
    message: 'exactly one of prose and intent must be given',
  });
export type IntentRequest = z.output<typeof intentRequestSchema>;

/** The answer to it. The same idempotency key gives the same intent. */
export const intentAcceptedSchema = z.object({ intent_id: intentIdSchema });

/** Which receipt proves an outcome. Neo and the executor both serve it at `path`. */
export const receiptPointerSchema = z.object({
  /** The hash of the last envelope, which stands for all before it (docs/receipts.md). */
  sha256: callDigestSchema,
  envelopes: z.int().min(1),
  /** `/intents/{id}/receipt` */
  path: z.string(),
});
export type ReceiptPointer = z.output<typeof receiptPointerSchema>;

/** `GET /messages/async/{id}`. */
export const intentStateSchema = z.object({
  status: z.enum(INTENT_STATUSES),
  /** The intent of the same user that has to come to its end first. */
  queued_behind: intentIdSchema.optional(),
  /** Whether the agent that handed it over waits no more and is to be woken when it is over. */
  parked: z.boolean().optional(),
  /** What came of it; written as its source text. */
  result: z.unknown().optional(),
  /** What the executor needs to know before it can plan. */
  clarify: z.string().optional(),
  error: z.object({ code: z.string().optional(), message: z.string() }).optional(),
  /** Of an intent that has come to its end. */
  receipt: receiptPointerSchema.optional(),
});

/** A step that waits for a human. */
export const gateSchema = z.object({
  node_id: nodeIdSchema,
  question: z.string(),
  options: z.array(z.string()).optional(),
  /** What will be done when it is approved; `args` keeps its digits, `call_sha256` binds an answer to it. */
  call: z.object({ tool: z.string(), args: z.unknown(), call_sha256: callDigestSchema }),
  /** SHA-256 of the question's UTF-8 form; each asking has another one, and an answer counts for no other. */
  displayed_sha256: callDigestSchema,
  /** When the question stops to wait, in UTC. */
  expires_at: z.string(),
});

/** `GET /intents/{id}/gates`. */
export const gateListSchema = z.object({ pending: z.array(gateSchema) });

/**
 * `POST /intents/{id}/gates/{node_id}/answer`, on the executor and on an agent daemon that passes it on. Whoever sends
 * it needs no right of their own: what counts is the signature of an approver of the intent's user (`approver.ts`).
 */
export const gateAnswerSchema = z
  .strictObject({
    approved: z.boolean(),
    /** One of the gate's options, or words. */
    answer: verbatimText(16 * 1024).optional(),
    /** The call and the question that were shown; the answer counts for no others. */
    call_sha256: callDigestSchema,
    displayed_sha256: callDigestSchema,
    /** The public key of whoever answers, or the id of their passkey. */
    approver: approverKeySchema,
    /** Until when the answer may be taken; at most 24 hours ahead. */
    expires_at: signedInstantSchema,
    /** Of a key. */
    signature: signatureSchema.optional(),
    /** Of a passkey; the digest of the answer is its challenge. */
    passkey: assertionSchema.optional(),
  })
  .refine(({ signature, passkey }) => (signature === undefined) !== (passkey === undefined), {
    path: ['signature'],
    message: 'is required, or passkey in its place',
    // Beside what else is wrong.
    when: () => true,
  });
export type GateAnswer = z.output<typeof gateAnswerSchema>;

/** What an agent daemon says to an answer that the executor took. */
export const gateAnsweredSchema = z.object({
  intent_id: intentIdSchema,
  node_id: nodeIdSchema,
  approved: z.boolean(),
});

/** `POST /intents/{id}/cancel`; the body may be missing. */
export const cancelSchema = z.strictObject({
  /** Why, in a sentence for the receipt. */
  reason: shortText(500).min(1).optional(),
});

/**
 * `POST /intents/{id}/park`: the agent ends its turn. When the intent is over, an alarm says so in this conversation.
 * Harmless when repeated; an intent that is over is not parked any more, and the answer says how it stands.
 */
export const parkSchema = z.strictObject({ conversation_id: conversationIdSchema });
export const parkedSchema = z.object({
  intent_id: intentIdSchema,
  status: z.enum(INTENT_STATUSES),
  parked: z.boolean(),
});

/** The kinds of server-sent events of `GET /events?intent_id=`. */
export const INTENT_EVENTS = ['gate.invoked', 'intent.attest', 'intent.fail', 'intent.cancel'] as const;
