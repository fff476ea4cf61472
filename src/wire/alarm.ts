/** Alarms as clients of chronosd see them (docs/reference/api.md, "chronosd: alarms"). */
import { z } from 'zod';
import { idSchema } from './identifier.ts';
import { instantSchema } from './instant.ts';
import { RawJson } from './json.ts';
import { wholeNumber } from './settings.ts';
import { shortText, utf8Bytes, verbatimText } from './text.ts';

export const WAKE_MESSAGE_MAX_BYTES = 64 * 1024;
export const PAYLOAD_MAX_BYTES = 64 * 1024;
export const DELAY_MAX_SECONDS = 10 * 366 * 24 * 3600;
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 500;

export const ALARM_KINDS = ['once', 'cron'] as const;
export const ALARM_STATUSES = ['active', 'paused', 'fired', 'cancelled', 'failed'] as const;
export const ALARM_SORTS = ['newest', 'next'] as const;
export const FIRE_OUTCOMES = ['delivered', 'failed', 'unknown', 'missed'] as const;
/** Stages of a fire. The machine reports the last two. */
export const FIRE_STAGES = ['machine_ready', 'accepted', 'turn_started', 'turn_finished'] as const;

export type AlarmKind = (typeof ALARM_KINDS)[number];
export type AlarmStatus = (typeof ALARM_STATUSES)[number];
export type AlarmSort = (typeof ALARM_SORTS)[number];
export type FireOutcome = (typeof FIRE_OUTCOMES)[number];
export type FireStage = (typeof FIRE_STAGES)[number];

/** Why no process fired a due alarm: the computer slept, chronosd did not run, or its process got no CPU time. */
export const ABSENCES = ['slept', 'not_running', 'stalled'] as const;
export type AbsenceReason = (typeof ABSENCES)[number];

/** Members of a create or edit body that keep their source text. */
export const RAW_ALARM_FIELDS = ['payload'] as const;

export const conversationIdSchema = idSchema(128);

export const alarmIdSchema = z
  .string()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, 'must be a UUID in lower case');

/** A payload as source text, as {@link parseJsonObject} returns it for a field named in `raw`. */
export const payloadSchema = z.instanceof(RawJson).superRefine((payload, context) => {
  const bytes = utf8Bytes(payload.text);
  if (bytes > PAYLOAD_MAX_BYTES)
    context.addIssue({
      code: 'custom',
      message: `must be at most ${PAYLOAD_MAX_BYTES} bytes of JSON, it has ${bytes}`,
    });
  if (!payload.text.isWellFormed())
    context.addIssue({ code: 'custom', message: 'must be well-formed Unicode; it contains a lone surrogate' });
});

/** The person who wrote the alarm's message; absent if the agent did. */
export const setBySchema = z.strictObject({ kind: z.literal('person'), name: shortText(100).min(1) });

const alarmFields = {
  wake_message: verbatimText(WAKE_MESSAGE_MAX_BYTES),
  label: shortText(200),
  delay_seconds: z.number().min(1).max(DELAY_MAX_SECONDS),
  fire_at: instantSchema,
  cron_expr: z.string().min(1).max(200),
  timezone: z.string().min(1).max(64),
  conversation_id: conversationIdSchema,
  payload: payloadSchema,
  max_failures: z.int().min(1).max(1000),
  max_lateness_seconds: z.number().min(0).max(DELAY_MAX_SECONDS),
  jitter_seconds: z.number().min(0).max(3600),
  ends_at: instantSchema,
  max_fires: z.int().min(1),
  urgent: z.boolean(),
  wake_computer: z.boolean(),
};

/**
 * The body that creates an alarm. `chronos/alarm/definition.ts` checks the conditions that depend on `kind`, on the
 * current time or on the schedule engine.
 */
export const alarmCreateSchema = z.strictObject({
  kind: z.enum(ALARM_KINDS),
  wake_message: alarmFields.wake_message,
  label: alarmFields.label.optional(),
  delay_seconds: alarmFields.delay_seconds.optional(),
  fire_at: alarmFields.fire_at.optional(),
  cron_expr: alarmFields.cron_expr.optional(),
  timezone: alarmFields.timezone.optional(),
  conversation_id: alarmFields.conversation_id.optional(),
  payload: alarmFields.payload.optional(),
  idempotency_key: shortText(200).min(1).optional(),
  max_failures: alarmFields.max_failures.optional(),
  max_lateness_seconds: alarmFields.max_lateness_seconds.optional(),
  jitter_seconds: alarmFields.jitter_seconds.optional(),
  ends_at: alarmFields.ends_at.optional(),
  max_fires: alarmFields.max_fires.optional(),
  urgent: alarmFields.urgent.optional(),
  wake_computer: alarmFields.wake_computer.optional(),
});
export type AlarmCreate = z.output<typeof alarmCreateSchema>;

const unchangeable = z.never({ error: 'cannot be changed; set a new alarm' }).optional();

/**
 * The body that edits an alarm: any creation field except `kind` and `idempotency_key`. `null` removes an optional
 * field.
 */
export const alarmPatchSchema = z.strictObject({
  wake_message: alarmFields.wake_message.optional(),
  label: alarmFields.label.nullable().optional(),
  delay_seconds: alarmFields.delay_seconds.optional(),
  fire_at: alarmFields.fire_at.optional(),
  cron_expr: alarmFields.cron_expr.optional(),
  timezone: alarmFields.timezone.nullable().optional(),
  conversation_id: alarmFields.conversation_id.nullable().optional(),
  /** A JSON `null` here is an ordinary payload. */
  payload: alarmFields.payload.optional(),
  max_failures: alarmFields.max_failures.nullable().optional(),
  max_lateness_seconds: alarmFields.max_lateness_seconds.nullable().optional(),
  jitter_seconds: alarmFields.jitter_seconds.nullable().optional(),
  ends_at: alarmFields.ends_at.nullable().optional(),
  max_fires: alarmFields.max_fires.nullable().optional(),
  urgent: alarmFields.urgent.nullable().optional(),
  wake_computer: alarmFields.wake_computer.nullable().optional(),
  kind: unchangeable,
  idempotency_key: unchangeable,
});
export type AlarmPatch = z.output<typeof alarmPatchSchema>;

export const alarmListQuerySchema = z.strictObject({
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  status: z.enum(ALARM_STATUSES).optional(),
  kind: z.enum(ALARM_KINDS).optional(),
  cursor: z.string().max(200).optional(),
  /** Matches label and message; ASCII letters match in either case. */
  text: z.string().min(1).max(200).optional(),
  /** `next`: active alarms by next due time, earliest first. Default `newest`. */
  sort: z.enum(ALARM_SORTS).optional(),
  /** With `sort=next`: only alarms due up to this instant. */
  until: instantSchema.optional(),
});

/** An opaque change counter. Compare it only for equality with an earlier value. */
export const alarmChangeCounterSchema = z.object({ mark: z.string().optional() });

export const fireListQuerySchema = z.strictObject({
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  cursor: z.string().max(200).optional(),
});

const instantText = z.iso.datetime({ offset: true });

/** An alarm as chronosd shows it to its owner. Inapplicable members are absent. */
export const alarmViewSchema = z.object({
  id: z.string(),
  label: z.string(),
  kind: z.enum(ALARM_KINDS),
  cron_expr: z.string().optional(),
  timezone: z.string().optional(),
  fire_at: instantText.optional(),
  /** The instant of the next attempt; only while `active`. */
  next_fire_at: instantText.optional(),
  conversation_id: z.string().optional(),
  wake_message: z.string(),
  /** Written as its stored source text. */
  payload: z.instanceof(RawJson).optional(),
  status: z.enum(ALARM_STATUSES),
  idempotency_key: z.string().optional(),
  max_failures: z.int(),
  failure_count: z.int(),
  last_error: z.string().optional(),
  created_at: instantText,
  last_fired_at: instantText.optional(),
  fire_count: z.int(),
  /** A delivery of this alarm is in progress. */
  in_flight: z.boolean(),
  max_lateness_seconds: z.number().optional(),
  jitter_seconds: z.number().optional(),
  ends_at: instantText.optional(),
  max_fires: z.int().optional(),
  /** The user's quiet hours do not defer it. */
  urgent: z.boolean().optional(),
  /** The computer is woken from sleep for it, if a wake program is set up. */
  wake_computer: z.boolean().optional(),
  /** The person who wrote the message; absent if the agent did. */
  set_by: setBySchema.optional(),
  /** The router deferred the next occurrence: the reason, and when it is tried again. */
  held_back: z.object({ reason: z.string(), until: instantText }).optional(),
});
export type AlarmView = z.infer<typeof alarmViewSchema>;

/** `finished_at` without `ok`: the outcome of the turn cannot be determined. */
const turnStateSchema = z.object({
  turn_id: z.string().optional(),
  conversation_id: z.string().optional(),
  started_at: instantText.optional(),
  finished_at: instantText.optional(),
  ok: z.boolean().optional(),
  error: z.string().optional(),
  /** Last temporary failure. Without `finished_at`, the turn is retried automatically at `retry_at`. */
  waits: z.object({ at: instantText, retry_at: instantText, error: z.string().optional() }).optional(),
  /** The beginning of the agent's answer. */
  reply: z.string().optional(),
});

/** One attempt to deliver an occurrence, as the fire ledger shows it. */
export const fireViewSchema = z.object({
  fire_id: z.string(),
  scheduled_for: instantText,
  attempt: z.int(),
  started_at: instantText,
  finished_at: instantText,
  lateness_ms: z.number(),
  /** Why it is late, if known. */
  late_because: z.enum(ABSENCES).optional(),
  outcome: z.enum(FIRE_OUTCOMES),
  http_status: z.int().optional(),
  error: z.string().optional(),
  /** Number of missed occurrences of the series that this one replaces after downtime. */
  missed_count: z.int().optional(),
  /** When the machine was ready for this attempt, and when it accepted the wake. */
  machine_ready_at: instantText.optional(),
  accepted_at: instantText.optional(),
  /**
   * The last stage reached, from the attempts in this answer and the machine's reports. Accepted does not mean
   * finished.
   */
  reached: z.enum(FIRE_STAGES).optional(),
  /** The machine's report of the turn, by the machine's clock. */
  turn: turnStateSchema.optional(),
});
export type FireView = z.infer<typeof fireViewSchema>;

/** The answer to a create. */
export const alarmCreatedSchema = alarmViewSchema
  .pick({ id: true, next_fire_at: true, status: true })
  .extend({ deduped: z.boolean() });
export type AlarmCreated = z.infer<typeof alarmCreatedSchema>;

export const alarmListSchema = z.object({
  alarms: z.array(alarmViewSchema),
  count: z.int(),
  next_cursor: z.string().optional(),
});

export const fireListSchema = z.object({ fires: z.array(fireViewSchema), next_cursor: z.string().optional() });
