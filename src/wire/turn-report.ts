/** Turn reports: the stages of a fire after its wake was accepted, reported by the woken machine. */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { labelSchema } from './did.ts';
import { formatInstant } from './rfc3339.ts';
import { instantSchema, shortText } from './text.ts';
import { readUsage, turnUsageSchema } from './usage.ts';
import { reportsNothing } from './wake.ts';

/**
 * Stages that a machine reports. `turn_waits`: the turn failed temporarily and is retried automatically. Only this
 * stage may be reported again; the latest report is kept.
 */
export const TURN_STAGES = ['turn_started', 'turn_waits', 'turn_finished'] as const;
export type TurnStage = (typeof TURN_STAGES)[number];

/** Outcomes of a turn. `unknown`: it may have run, and its outcome cannot be determined. */
export const TURN_OUTCOMES = ['ok', 'failed', 'unknown'] as const;
export type TurnOutcome = (typeof TURN_OUTCOMES)[number];

/** Begins the error of a turn that waits for the person's answer to a question, instead of for a retry. */
export const WAITS_FOR_ANSWER = 'waits for your answer';

export const TURN_REPORTS_MAX = 8;
export const TURN_ERROR_MAX_CHARACTERS = 500;
/** Only the beginning of a reply is reported; the conversation has all of it. */
export const TURN_REPLY_MAX_CHARACTERS = 4000;

const common = {
  /** When it happened, by the machine's clock. */
  at: instantSchema,
  turn_id: shortText(128).min(1).optional(),
  conversation_id: conversationIdSchema.optional(),
};

const turnReportSchema = z.discriminatedUnion('stage', [
  z.strictObject({ stage: z.literal('turn_started'), ...common }),
  z.strictObject({
    stage: z.literal('turn_waits'),
    ...common,
    /** When it is tried again. */
    retry_at: instantSchema,
    /** Why it failed. */
    error: shortText(TURN_ERROR_MAX_CHARACTERS).optional(),
  }),
  z.strictObject({
    stage: z.literal('turn_finished'),
    ...common,
    /** Absent if the outcome of the turn cannot be determined. */
    ok: z.boolean().optional(),
    /** Why it failed. */
    error: shortText(TURN_ERROR_MAX_CHARACTERS).optional(),
    /** The beginning of the agent's answer. */
    reply: shortText(TURN_REPLY_MAX_CHARACTERS).optional(),
    /** What its models used; absent if it is not known. */
    usage: turnUsageSchema.optional(),
  }),
]);

/** The body of `POST /v1/fires/{fire_id}/receipts`. */
export const turnReportPostSchema = z.strictObject({
  /** The owner of the alarm. */
  user_id: labelSchema,
  receipts: z.array(turnReportSchema).min(1).max(TURN_REPORTS_MAX),
});
export type TurnReportPost = z.output<typeof turnReportPostSchema>;

/** The answer: the number of new reports and of known ones. */
export const turnReportsRecordedSchema = z.object({ recorded: z.int(), known: z.int() });

/**
 * The answer of the router's `GET /internal/receipt-keys/{user_id}`: the current key, then one that was just replaced.
 */
export const turnReportKeysSchema = z.object({
  keys: z
    .array(z.string().regex(/^[0-9a-f]{64}$/))
    .min(1)
    .max(2),
});

/** A machine's report of one stage. Instants are epoch milliseconds. */
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
  /** Of `turn_finished` only: what its models used, as JSON. */
  usage: string | null;
  turnId: string | null;
  conversationId: string | null;
};

/** Text for a turn report: cut to size, without characters that some databases cannot store. */
function storable(text: string, characters = TURN_ERROR_MAX_CHARACTERS): string {
  return text.slice(0, characters).toWellFormed().replaceAll('\0', '\u{fffd}');
}

/** The reported beginning of an answer. It is never silence unless the whole answer is. */
export function beginningOfReply(reply: string): string {
  const beginning = storable(reply, TURN_REPLY_MAX_CHARACTERS);
  return reportsNothing(beginning) && !reportsNothing(reply) ? `${beginning.trim()} …` : beginning;
}

/** The request body for a fire's reports. */
export function turnReportBody(userId: string, reports: readonly TurnReport[]): string {
  const receipts = reports.map(({ stage, at, outcome, error, retryAt, reply, usage, turnId, conversationId }) => ({
    stage,
    at: formatInstant(at),
    turn_id: turnId ?? undefined,
    conversation_id: conversationId ?? undefined,
    ...(stage === 'turn_started' ? {} : { error: error === null ? undefined : storable(error) }),
    ...(stage === 'turn_waits' ? { retry_at: formatInstant(retryAt ?? at) } : {}),
    ...(stage === 'turn_finished'
      ? {
          ok: outcome === 'unknown' ? undefined : outcome === 'ok',
          // An empty reply is not a valid text.
          reply: reply === null || reply === '' ? undefined : beginningOfReply(reply),
          usage: readUsage(usage),
        }
      : {}),
  }));
  return JSON.stringify({ user_id: userId, receipts });
}

/** The reports in a body. The first report of each stage is used. */
export function reportsOf({ receipts }: TurnReportPost): TurnReport[] {
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
      usage: finished?.usage === undefined ? null : JSON.stringify(finished.usage),
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
