/** Turns, conversations and events as an agent daemon shows them (docs/reference/api.md, "Delivery to a daemon"). */
import { z } from 'zod';
import { conversationIdSchema, LIST_LIMIT_MAX } from './alarm.ts';
import { INVALID_CURSOR, positionCursor, wholeNumber } from './settings.ts';
import { typeList } from './text.ts';
import { turnUsageSchema } from './usage.ts';
import { LATE_REASONS, turnTermsSchema, WAKE_ORIGIN } from './wake.ts';

/** The cause of a turn: a person or a timer. */
export const TURN_ORIGINS = ['user', WAKE_ORIGIN] as const;
export type TurnOrigin = (typeof TURN_ORIGINS)[number];

/**
 * `queued` (accepted, not started) → `running` → `done`, `failed` (the model could not answer) or `interrupted` (the
 * daemon stopped too often during the turn). A restarted daemon sets a `running` turn back to `queued`. A wake's turn
 * that failed temporarily is `queued` again, with `retry_at` and `error`.
 */
export const TURN_STATUSES = ['queued', 'running', 'done', 'failed', 'interrupted'] as const;
export type TurnStatus = (typeof TURN_STATUSES)[number];

/** A turn as `GET /conversations/{id}` shows it. Members that do not apply (yet) are absent. */
export const turnViewSchema = z.object({
  id: z.string(),
  conversation_id: z.string(),
  origin: z.enum(TURN_ORIGINS),
  alarm_id: z.string().optional(),
  fire_id: z.string().optional(),
  scheduled_for: z.string().optional(),
  missed_count: z.number().optional(),
  /** Why it was late, if known. */
  late_because: z.enum(LATE_REASONS).optional(),
  label: z.string().optional(),
  set_at: z.string().optional(),
  /** The person or program that set the alarm, as text; absent if the agent did. */
  set_by: z.string().optional(),
  /** The model, the only tools and the channels that the alarm names; absent if it names none. */
  terms: turnTermsSchema.optional(),
  message: z.string(),
  /** The sender's source text. Parsing it can lose digits. */
  payload: z.unknown().optional(),
  status: z.enum(TURN_STATUSES),
  /** The agent's answer; for a `failed` turn, the part before the failure. */
  reply: z.string().optional(),
  /** Why the turn is `failed` or `interrupted`; with `retry_at`, why it waits. */
  error: z.string().optional(),
  model: z.string().optional(),
  /** What its models used so far; absent if it is not known. */
  usage: turnUsageSchema.optional(),
  created_at: z.string(),
  /** Start of the last attempt. */
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
  /** When a `queued` turn that failed temporarily is tried again. */
  retry_at: z.string().optional(),
  /** Number of starts of the turn; more than 1 if the daemon stopped during it, or if it was retried. */
  attempts: z.number(),
});
export type TurnView = z.infer<typeof turnViewSchema>;

/** One conversation in `GET /conversations`. */
export const conversationSummarySchema = z.object({
  id: z.string(),
  turn_count: z.number(),
  created_at: z.string(),
  last_activity_at: z.string(),
  /** The beginning of the newest turn's message. */
  last_message: z.string(),
});
export type ConversationSummary = z.infer<typeof conversationSummarySchema>;

/** The answer to `GET /conversations`, newest activity first. */
export const conversationListSchema = z.object({
  conversations: z.array(conversationSummarySchema),
  next_cursor: z.string().optional(),
});

/** The answer to `GET /conversations/{id}`, with turns in the order of acceptance. */
export const conversationViewSchema = z.object({
  id: z.string(),
  turn_count: z.number(),
  created_at: z.string(),
  last_activity_at: z.string(),
  turns: z.array(turnViewSchema),
  /** The newest event of this conversation; `GET /events` continues from it without a gap. */
  last_event_id: z.number().optional(),
  next_cursor: z.string().optional(),
});

/** The `data` of each kind of server-sent event of `GET /events`. */
export const turnEventSchemas = {
  /** A turn changed its state. */
  turn: z.object({
    conversation_id: z.string(),
    turn_id: z.string(),
    status: z.enum(TURN_STATUSES),
    attempts: z.number(),
    origin: z.enum(TURN_ORIGINS),
    alarm_id: z.string().optional(),
    fire_id: z.string().optional(),
    model: z.string().optional(),
    error: z.string().optional(),
    retry_at: z.string().optional(),
  }),
  /**
   * A piece of the reply. `offset` counts UTF-16 units from the reply's beginning. The new reply is the old one up to
   * `offset`, followed by `text`. An offset of 0 restarts the reply.
   */
  say: z.object({ conversation_id: z.string(), turn_id: z.string(), offset: z.number(), text: z.string() }),
  /**
   * A tool call of a turn: `begun` before the call, `finished` with its result. A turn that runs again after a crash
   * sends no events for calls that had finished.
   */
  tool: z.object({
    conversation_id: z.string(),
    turn_id: z.string(),
    /** The same in both events of a call; unique across all turns. */
    call_id: z.string(),
    /** Number of the model's answer that requested the call, from 1. */
    step: z.number(),
    name: z.string(),
    state: z.enum(['begun', 'finished']),
    /** With `begun`: the beginning of the arguments as the model wrote them. */
    input: z.string().optional(),
    /** With `finished`: whether the model got an error. */
    is_error: z.boolean().optional(),
    /** With `finished`: the beginning of the model's view of the result. */
    output: z.string().optional(),
    took_ms: z.number().optional(),
  }),
  /**
   * An approval gate of the executor (docs/reference/api.md, "Executor"). It is answered by `POST
   * /intents/{intent_id}/gates/{node_id}/answer`; its decision is sent as another event with `state`. A new stream
   * first gets the waiting gates, without an event id.
   */
  gate: z.object({
    conversation_id: z.string(),
    /** Absent if the question arose after its turn had ended. */
    turn_id: z.string().optional(),
    intent_id: z.string(),
    node_id: z.string(),
    state: z.enum(['asked', 'approved', 'denied', 'lapsed']),
    question: z.string().optional(),
    options: z.array(z.string()).optional(),
    /** The call: tool, arguments and their digest, as the executor shows them. */
    call: z.unknown().optional(),
    /** Digest of the exact question; an answer names it besides the call. */
    displayed_sha256: z.string().optional(),
    /** When the question expires. */
    expires_at: z.string().optional(),
    /** Reason of a decision that no person made. */
    reason: z.string().optional(),
    /** The decider's name in the executor's approver list. */
    by: z.string().optional(),
  }),
  /** The daemon's current activity for a turn, for a waiting person. */
  status: z.object({ conversation_id: z.string(), turn_id: z.string(), text: z.string() }),
  /** A notice for the person. Without a `turn_id` it is about the event stream itself. */
  notice: z.object({
    conversation_id: z.string().optional(),
    turn_id: z.string().optional(),
    code: z.enum(['run_again', 'interrupted', 'events_lost', 'unknown_event_id']),
    text: z.string(),
  }),
} as const;
export type TurnEventType = keyof typeof turnEventSchemas;
const TURN_EVENT_TYPES = Object.keys(turnEventSchemas) as TurnEventType[];
export type TurnEventData<Type extends TurnEventType> = z.infer<(typeof turnEventSchemas)[Type]>;

const pageLimit = wholeNumber(1, LIST_LIMIT_MAX).optional();
/** The query of `GET /conversations`. A cursor holds the last activity and the id of the last conversation shown. */
export const conversationListQuerySchema = z.strictObject({
  limit: pageLimit,
  cursor: z
    .string()
    .regex(/^\d{1,15}~[A-Za-z0-9._:-]{1,128}$/, INVALID_CURSOR)
    .transform((text) => {
      const [lastActivityAt, id] = text.split('~') as [string, string];
      return { lastActivityAt: Number(lastActivityAt), id };
    })
    .optional(),
});

/**
 * The query of `GET /conversations/{id}`. A cursor is the position of the last turn shown, in the order of acceptance.
 */
export const conversationQuerySchema = z.strictObject({ limit: pageLimit, cursor: positionCursor.optional() });

/** An event's number in `Last-Event-ID` and `last_event_id`. */
const eventIdSchema = z
  .string()
  .regex(/^\d{1,15}$/, 'must be the id of an earlier event')
  .transform(Number);

/** The query of `GET /events`. */
export const eventQuerySchema = z.strictObject({
  conversation_id: conversationIdSchema.optional(),
  last_event_id: eventIdSchema.optional(),
  /** Only these types; `notice` is always sent. A reader without `gate` does not count as a possible approver. */
  types: typeList(TURN_EVENT_TYPES).optional(),
});

/** Header of `GET /events` with which a reconnecting client names the last event it received. */
export const eventHeadersSchema = z.object({ 'Last-Event-ID': eventIdSchema.optional() });
