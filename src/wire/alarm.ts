/** Alarms as clients of chronosd see them (docs/reference/api.md, "chronosd: alarms"). */
import { z } from 'zod';
import {
  type ALARM_FIELDS,
  ALARM_KINDS,
  ALARM_STATUSES,
  type AlarmField,
  type FieldName,
  type FieldsWith,
  type FieldType,
  fieldOf,
  OWNER_FIELDS,
  type OwnerField,
  ordered,
  PAYLOAD_MAX_BYTES,
} from './alarm-fields.ts';
import { causeSchema } from './cause.ts';
import { hookViewSchema, OBJECT_SCHEMAS, type ObjectField } from './conditions.ts';
import { idSchema } from './identifier.ts';
import { RawJson } from './json.ts';
import { setBySchema, textAuthorsSchema } from './set-by.ts';
import { wholeNumber } from './settings.ts';
import { instantSchema, shortText, utf8Bytes, verbatimText } from './text.ts';
import { turnUsageSchema } from './usage.ts';

export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 500;

export const ALARM_SORTS = ['newest', 'next'] as const;
export const FIRE_OUTCOMES = ['delivered', 'failed', 'unknown', 'missed', 'skipped'] as const;
/** Stages of a fire. The machine reports the last two. */
export const FIRE_STAGES = ['machine_ready', 'accepted', 'turn_started', 'turn_finished'] as const;

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

const instantText = z.iso.datetime({ offset: true });

type Bounds = { of?: readonly string[]; least?: number | undefined; most?: number | undefined };

const bounded = <S extends { min(n: number): S; max(n: number): S }>(schema: S, { least, most }: Bounds): S => {
  const low = least === undefined ? schema : schema.min(least);
  return most === undefined ? low : low.max(most);
};

/** Names without surrounding space, each once. */
const listOfNames = (most: number) =>
  z
    .array(
      shortText(128)
        .min(1)
        .regex(/^\S(?:.*\S)?$/, 'must not begin or end with a space'),
    )
    .max(most)
    .refine((names) => new Set(names).size === names.length, 'must not repeat a name');

/** The schema of a field in a request body, by type. */
const INPUT = {
  choice: ({ of = [] }: Bounds) => z.enum(of),
  text: ({ most = 0, least }: Bounds) => bounded(shortText(most), { least }),
  string: (bounds: Bounds) => bounded(z.string(), bounds),
  message: ({ most = 0 }: Bounds) => verbatimText(most),
  identifier: () => conversationIdSchema,
  json: () => payloadSchema,
  instant: () => instantSchema,
  seconds: (bounds: Bounds) => bounded(z.number(), bounds),
  count: (bounds: Bounds) => bounded(z.int(), bounds),
  switch: () => z.boolean(),
  list: ({ most = 0 }: Bounds) => listOfNames(most),
  /** By the field; see {@link OBJECT_SCHEMAS}. */
  object: () => z.looseObject({}),
  author: () => setBySchema,
} satisfies Record<FieldType, (bounds: Bounds) => z.ZodType>;

/** The schema of a field in an answer, by type. */
const OUTPUT = {
  ...INPUT,
  text: () => z.string(),
  string: () => z.string(),
  message: () => z.string(),
  identifier: () => z.string(),
  /** Written as its stored source text. */
  json: () => z.instanceof(RawJson),
  instant: () => instantText,
  seconds: () => z.number(),
  count: () => z.int(),
  list: () => z.array(z.string()),
} satisfies Record<FieldType, (bounds: Bounds) => z.ZodType>;

type Fields = typeof ALARM_FIELDS;
type Choice<F> = F extends { of: readonly (infer V extends string)[] } ? z.ZodEnum<{ [K in V]: K }> : never;
type SchemaOf<F extends AlarmField, By extends Record<FieldType, (bounds: Bounds) => z.ZodType>> = F extends {
  type: 'choice';
}
  ? Choice<F>
  : ReturnType<By[F['type']]>;
type Input<N extends FieldName> = N extends ObjectField
  ? (typeof OBJECT_SCHEMAS)[N]
  : SchemaOf<Fields[N], typeof INPUT>;
type Output<N extends FieldName> = N extends ObjectField
  ? (typeof OBJECT_SCHEMAS)[N]
  : SchemaOf<Fields[N], typeof OUTPUT>;
type Optional<S extends z.ZodType> = z.ZodOptional<S>;

/** Owner's fields in the order of the bodies: an error names the first wrong one. */
const BODY_FIELDS = ordered<OwnerField>(
  [
    ...([
      'kind',
      'wake_message',
      'label',
      'when',
      'delay_seconds',
      'fire_at',
      'cron_expr',
      'rrule',
      'timezone',
    ] as const),
    ...(['conversation_id', 'payload', 'idempotency_key'] as const),
    ...(['max_failures', 'max_lateness_seconds', 'jitter_seconds'] as const),
  ],
  OWNER_FIELDS,
);

function shapeOf<S>(names: readonly FieldName[], schemaOf: (field: AlarmField, name: FieldName) => z.ZodType): S {
  return Object.fromEntries(names.map((name) => [name, schemaOf(fieldOf(name), name)])) as S;
}

const isObjectField = (name: FieldName): name is ObjectField => name in OBJECT_SCHEMAS;

const inputOf = (field: AlarmField, name: FieldName): z.ZodType =>
  isObjectField(name) ? OBJECT_SCHEMAS[name] : INPUT[field.type](field);

type CreateShape = {
  [N in keyof Pick<Fields, OwnerField>]: Fields[N] extends { required: true } ? Input<N> : Optional<Input<N>>;
};

/**
 * The body that creates an alarm. `chronos/alarm/definition.ts` checks the conditions that depend on `kind`, on the
 * current time or on the schedule engine.
 */
export const alarmCreateSchema = z.strictObject(
  shapeOf<CreateShape>(BODY_FIELDS, (field, name) =>
    field.required ? inputOf(field, name) : inputOf(field, name).optional(),
  ),
);
export type AlarmCreate = z.output<typeof alarmCreateSchema>;

/** Occurrences of a preview at most. */
export const PREVIEW_MAX = 100;

/** The body of a preview: that of a create, without the need of a message. */
export const alarmPreviewRequestSchema = alarmCreateSchema.partial({ wake_message: true }).extend({
  count: z.int().min(1).max(PREVIEW_MAX).optional(),
  /** Occurrences from this instant on; by default from now. */
  from: instantSchema.optional(),
});
export type AlarmPreviewRequest = z.output<typeof alarmPreviewRequestSchema>;

const unchangeable = z.never({ error: 'cannot be changed; omit it, or set a new alarm' }).optional();

type Fixed = FieldsWith<{ edit: 'never' }>;
type SetOnly = FieldsWith<{ edit: 'set' }>;
type PatchShape = {
  [N in keyof Pick<Fields, Exclude<OwnerField, Fixed>>]: Optional<
    N extends SetOnly ? Input<N> : z.ZodNullable<Input<N>>
  >;
} & { [N in keyof Pick<Fields, Fixed>]: typeof unchangeable };

/** Whether the body of an edit may contain a field. */
const isEditable = (name: OwnerField) => fieldOf(name).edit !== 'never';

/**
 * The body that edits an alarm: any creation field except `kind` and `idempotency_key`. `null` removes an optional
 * field. A payload of JSON `null` is an ordinary payload.
 */
export const alarmPatchSchema = z.strictObject(
  shapeOf<PatchShape>(
    [...BODY_FIELDS.filter(isEditable), ...BODY_FIELDS.filter((name) => !isEditable(name))],
    (field, name) => {
      if (field.edit === 'never') return unchangeable;
      return field.edit === 'set' ? inputOf(field, name).optional() : inputOf(field, name).nullable().optional();
    },
  ),
);
export type AlarmPatch = z.output<typeof alarmPatchSchema>;

/** More fires of one backfill need the owner's confirmation. */
export const BACKFILL_UNCONFIRMED = 1_000;

/** The body of `POST /v1/alarms/{id}/backfill`. */
export const alarmBackfillSchema = z.strictObject({
  /** The time to backfill: from this instant, and before the other one. */
  from: instantSchema,
  to: instantSchema,
  /** Required for more fires than {@link BACKFILL_UNCONFIRMED}. */
  confirm_over: z.boolean().optional(),
  /** Only counts the fires; adds none. */
  dry_run: z.boolean().optional(),
});
export type AlarmBackfill = z.output<typeof alarmBackfillSchema>;

/** Days in the answer about a calendar at most. */
export const CALENDAR_DAYS_MAX = 1_000;

export const calendarQuerySchema = z.strictObject({
  /** IANA; events that are no whole days cover other days in other zones. Default UTC. */
  timezone: z.string().min(1).max(64).optional(),
});

/** The days of an installed calendar from yesterday on, at most {@link CALENDAR_DAYS_MAX}. */
export const calendarSchema = z.object({ name: z.string(), timezone: z.string(), days: z.array(z.iso.date()) });
export type CalendarDays = z.infer<typeof calendarSchema>;

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

/** An opaque change counter, which only 0.1.0 sends. */
export const alarmChangeCounterSchema = z.object({ mark: z.string().optional() });

export const fireListQuerySchema = z.strictObject({
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  cursor: z.string().max(200).optional(),
});

type Hidden = FieldsWith<{ view: 'never' }>;
/** Members that a view always has; others are absent when the field is. */
type Always = Exclude<FieldName, FieldsWith<{ absent: unknown }>> | FieldsWith<{ view: 'always' }>;
type ViewShape = {
  [N in keyof Omit<Fields, Hidden>]: N extends Always ? Output<N> : Optional<Output<N>>;
};

const viewed = <N extends keyof ViewShape>(...names: N[]): Pick<ViewShape, N> =>
  shapeOf(names, (field, name) => {
    const schema: z.ZodType = isObjectField(name) ? OBJECT_SCHEMAS[name] : OUTPUT[field.type](field);
    return field.absent === undefined || field.view === 'always' ? schema : schema.optional();
  });

const FIRST_VIEWED = ['id', 'label', 'kind', 'cron_expr', 'rrule', 'timezone', 'fire_at'] as const;
const THEN_VIEWED = [
  ...(['conversation_id', 'wake_message', 'payload', 'status', 'idempotency_key', 'max_failures'] as const),
  ...(['failure_count', 'last_error', 'created_at', 'last_fired_at', 'fire_count'] as const),
] as const;
type Before = (typeof FIRST_VIEWED | typeof THEN_VIEWED)[number];
const isViewedLast = (name: OwnerField): name is Exclude<OwnerField & keyof ViewShape, Before> =>
  fieldOf(name).view !== 'never' && ![...FIRST_VIEWED, ...THEN_VIEWED].some((before) => before === name);

/** An alarm as chronosd shows it to its owner. Inapplicable members are absent. */
export const alarmViewSchema = z.object({
  ...viewed(...FIRST_VIEWED),
  /** The instant of the next attempt; only while `active`, and absent where only an event makes it fire. */
  next_fire_at: instantText.optional(),
  ...viewed(...THEN_VIEWED),
  /** A delivery of this alarm is in progress. */
  in_flight: z.boolean(),
  ...viewed(...BODY_FIELDS.filter(isViewedLast)),
  /** Who wrote the message. */
  ...viewed('set_by'),
  /** Who wrote the other texts, where that is another one. */
  text_by: textAuthorsSchema.optional(),
  /** The program that made it with an access token; absent for alarms of persons and of the agent. */
  made_by: z.object({ client_id: z.string() }).optional(),
  /** Only for `event`, while open: what it waits for, in words. */
  waits_for: z.string().optional(),
  /** How many events wait for a wake. */
  waiting_events: z.int().optional(),
  /** The next occurrence is deferred, by the router or by `overlap`: the reason, and when it is tried at the latest. */
  held_back: z.object({ reason: z.string(), until: instantText }).optional(),
  /** Where its events, or its heartbeats, are sent. */
  hook: hookViewSchema.optional(),
  /** Where a rule without DTSTART begins; only for `rrule`. */
  starts_at: instantText.optional(),
  /** The calendar of `holidays` is missing or cannot be read, so the series fires on its days too. */
  holidays_missing: z.literal(true).optional(),
  /** The last day of the calendar of `holidays`, such as `2026-12-26`, when it has passed: nothing is excluded any more. */
  holidays_ended: z.string().optional(),
  /** The first and the last instant of a backfill that still wait. */
  backfill_left: z.object({ first: instantText, last: instantText }).optional(),
});
export type AlarmView = z.infer<typeof alarmViewSchema>;

/** The answer to a backfill: the alarm, and its new fires. With `dry_run`, the fires that a backfill would add. */
export const alarmBackfilledSchema = alarmViewSchema.extend({
  backfill: z.object({
    /** Fires that were added, and fires of that time that were delivered or wait already. */
    added: z.int(),
    known: z.int(),
    /** The first and the last instant of the added ones. */
    first: instantText.optional(),
    last: instantText.optional(),
    /** Nothing was added. */
    dry_run: z.literal(true).optional(),
  }),
});
export type AlarmBackfilled = z.infer<typeof alarmBackfilledSchema>;

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
  /** What its models used; absent if it is not known. */
  usage: turnUsageSchema.optional(),
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
  /** Who caused it; absent for the alarm's own clock. */
  cause: causeSchema.optional(),
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

/** How a schedule is understood. */
export const whenReadingSchema = z.object({
  /** `every 2 weeks on Monday at 10:00 in Europe/Berlin`, and what words left open; `waits for a webhook`. */
  text: z.string(),
  timezone: z.string(),
  /**
   * The next instants, with the offset of the zone; at most three. Jitter is not included. Of an alarm with events, the
   * instant at which it fires if nothing comes.
   */
  next: z.array(instantText),
});
export type WhenReading = z.infer<typeof whenReadingSchema>;

const previewedSchema = z.object({
  at: instantText,
  /** The instant with the offset of the zone. */
  local: instantText,
  /** What a clock change or a calendar does to it. */
  note: z.string().optional(),
});
export type PreviewedOccurrence = z.infer<typeof previewedSchema>;

/** The answer to a preview. Jitter is not included in the instants. */
export const alarmPreviewSchema = z.object({
  kind: z.enum(ALARM_KINDS),
  text: z.string(),
  timezone: z.string(),
  reading: whenReadingSchema,
  occurrences: z.array(previewedSchema),
  /** The occurrences that `holidays` excludes; at most 100. */
  left_out: z.array(previewedSchema).optional(),
  /** What the other fields do. */
  notes: z.array(z.string()),
});
export type AlarmPreview = z.infer<typeof alarmPreviewSchema>;

/** The secret that senders sign with is shown once: by the answer to the create or edit that makes it. */
const hookMadeSchema = hookViewSchema.extend({ secret: z.string().optional() });
export type HookMade = z.infer<typeof hookMadeSchema>;

/** The answer to a create. */
export const alarmCreatedSchema = alarmViewSchema.pick({ id: true, next_fire_at: true, status: true }).extend({
  deduped: z.boolean(),
  /** The zone by whose clock it fires; absent where none matters. */
  timezone: z.string().optional(),
  reading: whenReadingSchema,
  hook: hookMadeSchema.optional(),
});
export type AlarmCreated = z.infer<typeof alarmCreatedSchema>;

/** The answer to an edit; `reading` is present when it may have changed the schedule. */
export const alarmEditedSchema = alarmViewSchema.extend({
  reading: whenReadingSchema.optional(),
  hook: hookMadeSchema.optional(),
});
export type AlarmEdited = z.infer<typeof alarmEditedSchema>;

export const alarmListSchema = z.object({
  alarms: z.array(alarmViewSchema),
  count: z.int(),
  next_cursor: z.string().optional(),
});

/** Alarms of which the wakes of a day are counted at most. */
export const TOTALS_MAX = 1_000;

/** The load of an owner's alarms. */
export const alarmTotalsSchema = z.object({
  active: z.int(),
  /** Fires of the active alarms in the next 24 hours by their times, before checks and budgets; events are not counted. */
  wakes_per_day: z.int(),
  /** More alarms are due in that time than the {@link TOTALS_MAX} that are counted. */
  at_least: z.literal(true).optional(),
});
export type AlarmTotals = z.infer<typeof alarmTotalsSchema>;

export const fireListSchema = z.object({ fires: z.array(fireViewSchema), next_cursor: z.string().optional() });
