/** Receipts: how far a fire got after its wake was accepted, told by the machine that it woke. */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { labelSchema } from './did.ts';
import { instantSchema } from './instant.ts';
import { formatInstant } from './rfc3339.ts';
import { shortText } from './text.ts';

/**
 * What a machine reports. `turn_waits`: the turn failed for a reason that passes and is tried again by itself; the one
 * stage that may be reported again, and of which the latest report counts.
 */
export const TURN_STAGES = ['turn_started', 'turn_waits', 'turn_finished'] as const;
export type TurnStage = (typeof TURN_STAGES)[number];

/** What came of a turn; `unknown`: it may have run, and nobody can find out what came of it. */
export const TURN_OUTCOMES = ['ok', 'failed', 'unknown'] as const;
export type TurnOutcome = (typeof TURN_OUTCOMES)[number];

export const RECEIPTS_MAX = 8;
export const RECEIPT_ERROR_MAX_CHARACTERS = 500;
/** Of a reply its beginning is reported; the whole of it stands in the conversation. */
export const RECEIPT_REPLY_MAX_CHARACTERS = 4000;

const common = {
  /** When it happened, by the machine's clock. */
  at: instantSchema,
  turn_id: shortText(128).min(1).optional(),
  conversation_id: conversationIdSchema.optional(),
};

const receiptSchema = z.discriminatedUnion('stage', [
  z.strictObject({ stage: z.literal('turn_started'), ...common }),
  z.strictObject({
    stage: z.literal('turn_waits'),
    ...common,
    /** When it is tried again. */
    retry_at: instantSchema,
    /** Why it failed. */
    error: shortText(RECEIPT_ERROR_MAX_CHARACTERS).optional(),
  }),
  z.strictObject({
    stage: z.literal('turn_finished'),
    ...common,
    /** Left out where what came of the turn cannot be found out. */
    ok: z.boolean().optional(),
    /** Why it is not ok. */
    error: shortText(RECEIPT_ERROR_MAX_CHARACTERS).optional(),
    /** The beginning of what the agent answered. */
    reply: shortText(RECEIPT_REPLY_MAX_CHARACTERS).optional(),
  }),
]);

/** The body of `POST /v1/fires/{fire_id}/receipts`. */
export const receiptPostSchema = z.strictObject({
  /** Whose alarm it is. */
  user_id: labelSchema,
  receipts: z.array(receiptSchema).min(1).max(RECEIPTS_MAX),
});
export type ReceiptPost = z.output<typeof receiptPostSchema>;

/** The answer: how many were new, and how many were known. */
export const receiptsRecordedSchema = z.object({ recorded: z.int(), known: z.int() });

/**
 * The answer of the router's `GET /internal/receipt-keys/{user_id}`: the present key first, then one that has just been
 * replaced.
 */
export const receiptKeysSchema = z.object({
  keys: z
    .array(z.string().regex(/^[0-9a-f]{64}$/))
    .min(1)
    .max(2),
});

/** What a machine has to say of one stage. Instants are epoch milliseconds. */
export type TurnReport = {
  stage: TurnStage;
  at: number;
  /** Of `turn_finished` only. */
  outcome: TurnOutcome | null;
  error: string | null;
  /** Of `turn_waits` only. */
  retryAt: number | null;
  /** Of `turn_finished` only: the beginning of the answer. */
  reply: string | null;
  turnId: string | null;
  conversationId: string | null;
};

/** Text as it may stand in a receipt: cut to size, without what some databases cannot store. */
function storable(text: string, characters = RECEIPT_ERROR_MAX_CHARACTERS): string {
  return text.slice(0, characters).toWellFormed().replaceAll('\0', '\u{fffd}');
}

/** The body that reports some stages of one fire. */
export function receiptBody(userId: string, reports: readonly TurnReport[]): string {
  const receipts = reports.map(({ stage, at, outcome, error, retryAt, reply, turnId, conversationId }) => ({
    stage,
    at: formatInstant(at),
    turn_id: turnId ?? undefined,
    conversation_id: conversationId ?? undefined,
    ...(stage === 'turn_started' ? {} : { error: error === null ? undefined : storable(error) }),
    ...(stage === 'turn_waits' ? { retry_at: formatInstant(retryAt ?? at) } : {}),
    ...(stage === 'turn_finished'
      ? {
          ok: outcome === 'unknown' ? undefined : outcome === 'ok',
          // An answer of nothing is no text that may be sent.
          reply: reply === null || reply === '' ? undefined : storable(reply, RECEIPT_REPLY_MAX_CHARACTERS),
        }
      : {}),
  }));
  return JSON.stringify({ user_id: userId, receipts });
}

/** The stages that a body reports; of several that name the same stage the first counts. */
export function reportsOf({ receipts }: ReceiptPost): TurnReport[] {
  const reports = new Map<TurnStage, TurnReport>();
  for (const receipt of receipts) {
    if (reports.has(receipt.stage)) continue;
    const finished = receipt.stage === 'turn_finished' ? receipt : undefined;
    reports.set(receipt.stage, {
      stage: receipt.stage,
      at: receipt.at,
      outcome: finished ? outcomeOf(finished.ok) : null,
      error: ('error' in receipt ? receipt.error : undefined) ?? null,
      retryAt: receipt.stage === 'turn_waits' ? receipt.retry_at : null,
      reply: finished?.reply ?? null,
      turnId: receipt.turn_id ?? null,
      conversationId: receipt.conversation_id ?? null,
    });
  }
  return [...reports.values()];
}

function outcomeOf(ok: boolean | undefined): TurnOutcome {
  if (ok === undefined) return 'unknown';
  return ok ? 'ok' : 'failed';
}
