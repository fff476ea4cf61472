/** The wake from chronosd through the router to the daemon (docs/reference/api.md). */
import { z } from 'zod';
import { ABSENCES, alarmCreateSchema, conversationIdSchema } from './alarm.ts';
import { type CheckNews, type CheckStateOfWake, checkNewsSchema, checkStateSchema } from './check-verdict.ts';
import { BATCH_MAX_BYTES, type Check, checkSchema, runTermSchema } from './conditions.ts';
import { labelSchema } from './did.ts';
import { ReveilleError } from './errors.ts';
import { givenFireIdSchema, WAKE_NAME_HEADERS } from './fire-id.ts';
import { RawJson } from './json.ts';
import { setBySchema, textAuthorsSchema } from './set-by.ts';
import { instantSchema, shortText, verbatimText } from './text.ts';

/** Origin of a turn that a timer caused. */
export const WAKE_ORIGIN = 'chronos';

/** Members of a body that mark it as a wake, each by itself. */
export const WAKE_MEMBERS = ['origin', 'alarm_id', 'fire_id', 'scheduled_for'] as const;

/** Headers of the delivery to a daemon. */
export const WAKE_HEADERS = {
  user: 'x-matrix-user',
  origin: 'x-matrix-wake-origin',
  alarm: 'x-matrix-wake-alarm',
  fire: 'x-matrix-wake-fire',
} as const;

/** Members of a wake or chat body that keep their source text. */
export const RAW_WAKE_FIELDS = ['payload'] as const;

const payload = z.instanceof(RawJson);

/** Why a wake is late: no process ran when it was due, or the machine had to start first (reported by the router). */
export const LATE_REASONS = [...ABSENCES, 'machine_start'] as const;
export type LateReason = (typeof LATE_REASONS)[number];
const lateReason = z.enum(LATE_REASONS);

/** What an alarm, or the budget, says of its turn. Each member is absent unless it is set. */
const terms = {
  ...alarmCreateSchema.pick({ model: true, tools: true, deliver: true }).shape,
  run: runTermSchema.optional(),
};
export const turnTermsSchema = z.object({
  ...terms,
  /** The budget of the user, for an agent that ends the turn by itself (see {@link TOKEN_LIMIT_HEADER}). */
  tokens_per_turn: z.int().min(1).optional(),
});
export type TurnTerms = z.output<typeof turnTermsSchema>;

/** The terms of an alarm in the body of a wake; `undefined` for a plain one. */
export function termsOf({ model, tools, deliver, run }: TurnTerms): TurnTerms | undefined {
  if ([model, tools, deliver, run].every((term) => term === undefined)) return undefined;
  return {
    ...(model === undefined ? {} : { model }),
    ...(tools === undefined ? {} : { tools }),
    ...(deliver === undefined ? {} : { deliver }),
    ...(run === undefined ? {} : { run }),
  };
}

/** A reply that is exactly this, apart from surrounding space, is kept and causes no notification. */
export const NOTHING_TO_REPORT = 'NOTHING_TO_REPORT';

export const reportsNothing = (reply: string | undefined): boolean => reply?.trim() === NOTHING_TO_REPORT;

/** Sent in a header, so it is visible ASCII; chronosd's are UUIDs. */
const alarmId = z.string().regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 visible ASCII characters');

/**
 * Largest body of a wake and of its delivery to a daemon, more than the 256 KiB of other bodies. It fits a message of
 * that size with all its escapes, and a payload of 64 KiB added by a later edit. It also fits the longest lists of tools
 * and channels, the output of a check, the longest command, the events of a wake with their ids, and the other members.
 */
export const WAKE_BODY_MAX_BYTES = (256 + 64 + 64 + 128 + 16 + 8) * 1024 + 2 * BATCH_MAX_BYTES;

/**
 * Marks a router's 429 as a deferral: the instant (RFC 3339) at which the wake may be tried again. Nothing ran, and
 * nothing failed. A daemon's own answer never has it.
 */
export const DEFERRED_UNTIL_HEADER = 'x-reveille-held-until';

/**
 * In the delivery to a daemon: the tokens that the turn may use. A daemon that cannot keep to it ignores the header, so
 * it is no member of the body, which older daemons check strictly.
 */
export const TOKEN_LIMIT_HEADER = 'x-reveille-token-limit';

/**
 * In the router's answer to a wake: milliseconds (whole number) from the wake's arrival until the machine was ready.
 * Also set if the wake failed after that. Never set for a target without a daemon.
 */
export const MACHINE_READY_HEADER = 'x-reveille-machine-ready-ms';

/**
 * The body that a scheduler posts to the router. `user_id` and `message` suffice; the router derives the other members
 * (`router/repetitions.ts`).
 */
export const wakeRequestSchema = z.strictObject({
  user_id: labelSchema,
  conversation_id: conversationIdSchema.optional(),
  message: verbatimText(256 * 1024),
  payload: payload.optional(),
  alarm_id: alarmId.optional(),
  origin: z.literal(WAKE_ORIGIN).optional(),
  fire_id: givenFireIdSchema.optional(),
  scheduled_for: instantSchema.optional(),
  attempt: z.int().min(1).optional(),
  missed_count: z.int().min(0).optional(),
  label: z.string().max(200).optional(),
  set_at: instantSchema.optional(),
  /** Who wrote the message; absent if the agent did. */
  set_by: setBySchema.optional(),
  /** Who wrote its other texts, where that is another one. */
  text_by: textAuthorsSchema.optional(),
  ...terms,
  /** Quiet hours do not defer it; only the router reads this. */
  urgent: z.boolean().optional(),
  /** Decides before a machine starts whether the agent is woken; the router answers with the verdict. */
  check: checkSchema.optional(),
  check_state: checkStateSchema.optional(),
  /** Why it is late; absent if it is not late, or if the reason is unknown. */
  late_because: lateReason.optional(),
});
export type WakeRequest = z.output<typeof wakeRequestSchema>;

/** A wake with all members that its caller may omit. */
export type Wake = Omit<WakeRequest, Derived | 'check' | 'check_state'> & {
  [Name in Derived]: NonNullable<WakeRequest[Name]>;
} & {
  /** What is decided before it is delivered. */
  readonly toCheck?: { readonly check: Check; readonly state: CheckStateOfWake };
  /** What its check has said. */
  readonly check?: CheckNews;
};
type Derived = 'origin' | 'fire_id' | 'scheduled_for' | 'attempt' | 'missed_count';

/**
 * Completes a wake that has a name.
 *
 * @param arrivedAt arrival of its first attempt, epoch milliseconds; the default for `scheduled_for`
 */
export function completeWake(request: WakeRequest, fireId: string, arrivedAt: number): Wake {
  const { check, check_state: state = {}, ...members } = request;
  return {
    ...members,
    ...(check && { toCheck: { check, state } }),
    origin: WAKE_ORIGIN,
    fire_id: fireId,
    scheduled_for: request.scheduled_for ?? arrivedAt,
    attempt: request.attempt ?? 1,
    missed_count: request.missed_count ?? 0,
  };
}

/**
 * The caller's name for its wake, from a header; `undefined` if there is none.
 *
 * @throws ReveilleError `invalid_request` naming the header and what is allowed
 */
export function callerWakeName(header: (name: string) => string | undefined): string | undefined {
  const which = WAKE_NAME_HEADERS.find((name) => (header(name) ?? '') !== '');
  if (which === undefined) return undefined;
  const name = header(which)!;
  if (/^[\x20-\x7e]{1,200}$/.test(name)) return name;
  const got = JSON.stringify(name.slice(0, 40));
  throw new ReveilleError('invalid_request', `${which} must be 1 to 200 printable ASCII characters (got ${got})`);
}

/** Members for which an empty text means absent, for clients with fixed body templates. */
const MAY_BE_EMPTY = ['conversation_id', 'alarm_id', 'origin', 'fire_id'] as const;

/** Removes empty texts from the body of a wake or message. */
export function withoutEmptyMembers(body: Record<string, unknown>): Record<string, unknown> {
  for (const name of MAY_BE_EMPTY) if (body[name] === '') delete body[name];
  return body;
}

const ONLY_OF_WAKES = [
  ...([
    'missed_count',
    'label',
    'set_at',
    'set_by',
    'text_by',
    'sent_by',
    'model',
    'tools',
    'deliver',
    'run',
    'check',
    'late_because',
  ] as const),
];

/** The sender of a message that neither the person nor the agent itself wrote. */
export const sentBySchema = z.strictObject({ kind: z.literal('agent'), name: shortText(200).min(1) });
export type SentBy = z.output<typeof sentBySchema>;

/** The body of a daemon's `POST /chat`: a person's message, or a wake, which any of {@link WAKE_MEMBERS} marks. */
export const chatRequestSchema = z
  .strictObject({
    message: verbatimText(256 * 1024),
    conversation_id: conversationIdSchema.optional(),
    payload: payload.optional(),
    origin: z.literal(WAKE_ORIGIN).optional(),
    alarm_id: alarmId.optional(),
    fire_id: givenFireIdSchema.optional(),
    scheduled_for: instantSchema.optional(),
    missed_count: z.int().min(0).optional(),
    label: z.string().max(200).optional(),
    set_at: instantSchema.optional(),
    set_by: setBySchema.optional(),
    text_by: textAuthorsSchema.optional(),
    /** Another agent that wrote the message. No person is present in such a turn, as in that of a timer. */
    sent_by: sentBySchema.optional(),
    ...terms,
    /** What the alarm's check has said. */
    check: checkNewsSchema.optional(),
    late_because: lateReason.optional(),
  })
  .superRefine((body, context) => {
    if (WAKE_MEMBERS.some((name) => body[name] !== undefined)) return;
    for (const name of ONLY_OF_WAKES) {
      if (body[name] !== undefined)
        context.addIssue({ code: 'custom', path: [name], message: `goes only with origin "${WAKE_ORIGIN}"` });
    }
  });
export type ChatRequest = z.output<typeof chatRequestSchema>;

/** A daemon's answer to `POST /chat`: 202 for a new turn, 200 with `deduped` for a known `fire_id`. */
export const chatAcceptedSchema = z.object({ conversation_id: z.string(), turn_id: z.string(), deduped: z.boolean() });
export type ChatAccepted = z.infer<typeof chatAcceptedSchema>;

/** A daemon's answer to `GET /healthz`. Any other answer with status 200 counts as alive and not busy. */
export const daemonHealthSchema = z.object({
  status: z.string(),
  busy: z.boolean(),
  queued: z.int().min(0),
  /** When a waiting turn is tried again: the daemon may be stopped until then, and must run by then. */
  next_turn_at: z.iso.datetime({ offset: true }).optional(),
});
export type DaemonHealth = z.infer<typeof daemonHealthSchema>;
