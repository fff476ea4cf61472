/** Turns, conversations and events as an agent daemon shows them (docs/contracts.md §5). */
import { z } from 'zod';
import { conversationIdSchema, LIST_LIMIT_MAX } from './alarm.ts';
import { wholeNumber } from './settings.ts';
import { LATE_REASONS, WAKE_ORIGIN } from './wake.ts';

/** Who caused a turn: a person, or a timer. */
export const TURN_ORIGINS = ['user', WAKE_ORIGIN] as const;
export type TurnOrigin = (typeof TURN_ORIGINS)[number];

/**
 * `queued` (accepted, not begun) → `running` → `done`, `failed` (the model could not answer) or `interrupted` (the
 * daemon was stopped too often while the turn ran). A daemon that restarts puts a `running` turn back to `queued`; so is
 * the turn of a wake that failed for a reason that passes, with `retry_at` and `error`.
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
  /** Why it was late, where that is known. */
  late_because: z.enum(LATE_REASONS).optional(),
  label: z.string().optional(),
  set_at: z.string().optional(),
  /** The person who set the alarm; absent: the agent did. */
  set_by: z.string().optional(),
  message: z.string(),
  /** Written as the sender's source text: a reader that needs its digits must not parse it. */
  payload: z.unknown().optional(),
  status: z.enum(TURN_STATUSES),
  /** What the agent answered; also the part of an answer that a `failed` turn was cut off after. */
  reply: z.string().optional(),
  /** Why the turn is `failed` or `interrupted`, or, of one with `retry_at`, why it waits. */
  error: z.string().optional(),
  model: z.string().optional(),
  created_at: z.string(),
  /** When the last attempt began. */
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
  /** Of a `queued` turn that failed for a reason that passes: when it is tried again. */
  retry_at: z.string().optional(),
  /** How often the turn was begun; more than 1 when the daemon stopped under it, or it was tried again. */
  attempts: z.number(),
});
export type TurnView = z.infer<typeof turnViewSchema>;

/** A line of `GET /conversations`. */
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

/** The answer to `GET /conversations/{id}`, turns in the order they were accepted. */
export const conversationViewSchema = z.object({
  id: z.string(),
  turn_count: z.number(),
  created_at: z.string(),
  last_activity_at: z.string(),
  turns: z.array(turnViewSchema),
  /** The newest event of this conversation by then: what `GET /events` goes on from without a gap. */
  last_event_id: z.number().optional(),
  next_cursor: z.string().optional(),
});

/** The `data` of each kind of server-sent event of `GET /events`. */
export const turnEventSchemas = {
  /** A turn entered another state. */
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
   * A piece of the reply. `offset` counts UTF-16 units from the reply's beginning: the reply so far becomes what stood
   * before `offset`, followed by `text`. An offset of 0 starts the reply anew.
   */
  say: z.object({ conversation_id: z.string(), turn_id: z.string(), offset: z.number(), text: z.string() }),
  /**
   * A tool call of a turn: once as `begun` before it is made, once as `finished` with what came of it. A turn that runs
   * again after a crash tells nothing anew of calls that had finished.
   */
  tool: z.object({
    conversation_id: z.string(),
    turn_id: z.string(),
    /** The same in both events of a call; unique over all turns. */
    call_id: z.string(),
    /** Which of the turn's model answers asked for it; 1 for the first. */
    step: z.number(),
    name: z.string(),
    state: z.enum(['begun', 'finished']),
    /** The beginning of the arguments as the model wrote them; when it has begun. */
    input: z.string().optional(),
    /** When it has finished: whether the model was told of a failure. */
    is_error: z.boolean().optional(),
    /** The beginning of what the model was told; when it has finished. */
    output: z.string().optional(),
    took_ms: z.number().optional(),
  }),
  /**
   * The executor asks a human before it goes on (docs/contracts.md §6). Answered by `POST
   * /intents/{intent_id}/gates/{node_id}/answer`; told again with `state` when it has been decided. To a stream that
   * has just been opened, what waits by then is told without an event id.
   */
  gate: z.object({
    conversation_id: z.string(),
    /** Absent when the question came up after its turn had ended. */
    turn_id: z.string().optional(),
    intent_id: z.string(),
    node_id: z.string(),
    state: z.enum(['asked', 'approved', 'denied', 'lapsed']),
    question: z.string().optional(),
    options: z.array(z.string()).optional(),
    /** What would be done: tool, arguments and their digest, as the executor shows them. */
    call: z.unknown().optional(),
    /** What an answer has to name beside the call: the very question. */
    displayed_sha256: z.string().optional(),
    /** When the question stops to wait. */
    expires_at: z.string().optional(),
    /** Why it was decided as it was, when no person decided it. */
    reason: z.string().optional(),
    /** Who decided it, as the executor's roster calls their key. */
    by: z.string().optional(),
  }),
  /** What the daemon is doing for a turn right now, for a person who waits. */
  status: z.object({ conversation_id: z.string(), turn_id: z.string(), text: z.string() }),
  /** Something that a person should know. Without a `turn_id` it is about the event stream itself. */
  notice: z.object({
    conversation_id: z.string().optional(),
    turn_id: z.string().optional(),
    code: z.enum(['run_again', 'interrupted', 'events_lost', 'unknown_event_id']),
    text: z.string(),
  }),
} as const;
export type TurnEventType = keyof typeof turnEventSchemas;
export type TurnEventData<Type extends TurnEventType> = z.infer<(typeof turnEventSchemas)[Type]>;

const pageLimit = wholeNumber(1, LIST_LIMIT_MAX).optional();
const anotherCursor = 'must be the next_cursor of an earlier answer, unchanged';

/** The query of `GET /conversations`. A cursor says how active the last conversation shown was, and its id. */
export const conversationListQuerySchema = z.strictObject({
  limit: pageLimit,
  cursor: z
    .string()
    .regex(/^\d{1,15}~[A-Za-z0-9._:-]{1,128}$/, anotherCursor)
    .transform((text) => {
      const [lastActivityAt, id] = text.split('~') as [string, string];
      return { lastActivityAt: Number(lastActivityAt), id };
    })
    .optional(),
});

/** The query of `GET /conversations/{id}`. A cursor is the place of the last turn shown in the order of acceptance. */
export const conversationQuerySchema = z.strictObject({
  limit: pageLimit,
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, anotherCursor)
    .transform(Number)
    .optional(),
});

/** An event's number, as `Last-Event-ID` and `last_event_id` carry it. */
const eventIdSchema = z
  .string()
  .regex(/^\d{1,15}$/, 'must be the id of an event that was received earlier')
  .transform(Number);

/** The query of `GET /events`. */
export const eventQuerySchema = z.strictObject({
  conversation_id: conversationIdSchema.optional(),
  last_event_id: eventIdSchema.optional(),
});

/** The header of `GET /events` with which a client that comes back says what it saw last. */
export const eventHeadersSchema = z.object({ 'Last-Event-ID': eventIdSchema.optional() });
