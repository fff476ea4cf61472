/** Creates an alarm from a request, edits it, and compares two definitions. */
import type { AlarmCreate, AlarmPatch } from '../../wire/alarm.ts';
import {
  ALARM_KINDS,
  DELAY_MAX_SECONDS,
  fieldOf,
  isOption,
  type MemberOf,
  memberOf,
  OPTION_FIELDS,
  type OptionField,
  OWNER_FIELDS,
  type OwnerField,
  SERIES_FIELDS,
} from '../../wire/alarm-fields.ts';
import { decidesCommand, decidesTime } from '../../wire/alarm-rights.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { RawJson } from '../../wire/json.ts';
import { isLookedAt, isSubscription } from '../../wire/look.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { isByPerson } from '../../wire/set-by.ts';
import { showValue } from '../../wire/validate.ts';
import {
  type Alarm,
  type AlarmState,
  isClaimed,
  NOT_DEFERRED,
  type Occurrence,
  scheduledOccurrence,
  withoutSchedule,
} from './alarm.ts';
import { withoutBackfill } from './backfill.ts';
import { authorOption, timedBy } from './cause.ts';
import { stateOfNewCheck } from './checks.ts';
import { nextOfEvents } from './events.ts';
import { type Calendars, NO_CALENDARS, requireCalendar } from './holidays.ts';
import { encodeOptions, isSameOption, optionsOf } from './options.ts';
import { releaseWaiting } from './policies.ts';
import { DEFAULT_TIMEZONE, nextOccurrence, onlyOccurrence, seriesOf } from './series.ts';
import { authorOfMessage, withAuthors } from './text-authors.ts';
import { READ_FROM_WORDS, type WordHours, withNewTime, withTime, withTimeOf } from './when.ts';

/** Limits of the service. */
export type DefinitionLimits = {
  /** Shortest interval of a cron series, in seconds. */
  minIntervalSeconds: number;
  /** `max_failures` when the client gives none. */
  maxFailures: number;
};

/** The fields that say when an alarm of a kind fires. */
const TIMES_OF = {
  once: ['delay_seconds', 'fire_at'],
  cron: ['cron_expr'],
  rrule: ['rrule'],
  event: ['event', 'after', 'expect'],
} as const satisfies Record<Alarm['kind'], readonly OwnerField[]>;
const TIME_FIELDS = ALARM_KINDS.flatMap((kind) => [...TIMES_OF[kind]]);
const SERIES_ONLY = ['timezone', ...SERIES_FIELDS] as const;
/** Fields of a series that an alarm with events has too. */
const OF_EVENTS_TOO: readonly string[] = ['overlap', 'pause_on_failure'];

function invalid(message: string): ReveilleError {
  return new ReveilleError('invalid_request', message);
}

/** @param remedy beside omitting the field */
function refuseFieldsOfOtherKind(input: Partial<AlarmCreate> | AlarmPatch, kind: Alarm['kind'], remedy = ''): void {
  for (const home of ALARM_KINDS) {
    const foreign = home === kind ? undefined : TIMES_OF[home].find((name) => input[name] !== undefined);
    if (foreign)
      throw invalid(`${foreign} is only for kind "${home}"; this alarm is "${kind}", omit ${foreign}${remedy}`);
  }
  // A time in words is read in a zone, whatever it means.
  const given = SERIES_ONLY.filter((name) => input[name] !== undefined && (name !== 'timezone' || !input.when));
  const refused = kind === 'event' ? given.filter((name) => !OF_EVENTS_TOO.includes(name)) : given;
  const ofSeries = kind === 'once' || kind === 'event' ? refused[0] : undefined;
  if (ofSeries)
    throw invalid(
      `${ofSeries} is only for a series (kind "cron" or "rrule"); this alarm is "${kind}", omit ${ofSeries}`,
    );
  if (kind === 'event') refuseOfEvents(input);
}

/** What an alarm with events cannot have, and what excludes each other. */
function refuseOfEvents(given: Partial<AlarmCreate> | AlarmPatch): void {
  const { event, after, expect, jitter_seconds, overlap, wake_computer } = given;
  if (jitter_seconds) throw invalid('jitter_seconds is only for alarms with a time; this alarm is "event", omit it');
  if (overlap === 'skip' || overlap === 'buffer_one')
    throw invalid(`overlap must be allow or buffer_all for kind "event", so that no event is lost (got ${overlap})`);
  if (event && isSubscription(event) && isLookedAt(event) && event.look_every !== undefined)
    throw invalid('event.look_every is for a server that is asked; with delivery "webhook" omit it');
  if (wake_computer && event && isLookedAt(event))
    throw invalid(
      `wake_computer would wake the computer for each look at the ${event.source}; omit it, or use a webhook`,
    );
  if (event && after) throw invalid('event and after exclude each other; give one of them');
  if (expect && event && 'deadline' in event && event.deadline !== undefined)
    throw invalid('expect and event.deadline both say when nothing has come; give one of them');
}

/** A command takes the place of the agent's turn. */
function refuseTermsBesideRun({ run, model, tools }: { [N in 'run' | 'model' | 'tools']?: unknown }): void {
  const given = run == null ? undefined : model != null ? 'model' : tools != null ? 'tools' : undefined;
  if (given) throw invalid(`run and ${given} exclude each other, because a command has no model; omit ${given}`);
}

/** The kind of a request; one that names none has that of its time. */
const kindOf = (input: AlarmCreate) =>
  input.kind ?? ALARM_KINDS.find((kind) => TIMES_OF[kind].some((name) => input[name] !== undefined));

/** When a `once` alarm is due. The instant may be in the past. */
function instantOfOnce(delaySeconds: number | undefined, fireAt: number | undefined, now: number): number {
  if (delaySeconds !== undefined && fireAt !== undefined)
    throw invalid('delay_seconds and fire_at exclude each other; give one of them');
  if (delaySeconds !== undefined) return now + Math.round(delaySeconds * 1000);
  if (fireAt === undefined) throw invalid('an alarm of kind "once" needs delay_seconds or fire_at');
  return fireAt;
}

/** The members that the owner sets. */
type Definition = Pick<Alarm, MemberOf<Exclude<OwnerField, OptionField>> | 'options'>;

const OWNER_OPTIONS = OPTION_FIELDS.filter((name): name is OptionField & OwnerField => fieldOf(name).by === undefined);
const DEFINED = OWNER_FIELDS.filter((name) => !isOption(name)).map((name) => ({
  name,
  member: memberOf(name as Exclude<OwnerField, OptionField>),
  absent: fieldOf(name).absent,
}));

const stored = (value: unknown) => (value instanceof RawJson ? value.text : value);

/** The members as requested; an omitted field has the value of its absence. */
function requested(input: AlarmCreate, author: string | undefined, traceparent: string | undefined): Definition {
  const check_state = stateOfNewCheck(input.check, author);
  const run_by_person = input.run !== undefined && isByPerson(author);
  const members: Record<string, unknown> = {
    options: encodeOptions({ ...input, check_state, run_by_person, traceparent }),
  };
  for (const { name, member, absent } of DEFINED) members[member] = stored(input[name] ?? absent);
  return members as Definition;
}

/** What chronosd remembers about who set the command and the check, and who decides when they run, after an edit. */
function rightsAfter(before: Alarm, patch: AlarmPatch, author: string | undefined, setBy: string | null) {
  const byPerson = isByPerson(author);
  const { run, run_by_person = false, check_state } = optionsOf(before);
  const isOthers = !byPerson && (decidesTime(patch) || decidesCommand(patch));
  // A person who sets a command wants it to run at the times that the alarm has then.
  const timed = decidesTime(patch) || (byPerson && patch.run) ? (author ?? null) : timedBy(before);
  const newCheck = patch.check === undefined ? check_state : stateOfNewCheck(patch.check, author);
  const { byPerson: _, ...ofOthers } = newCheck ?? {};
  return {
    run_by_person:
      patch.run === undefined ? run !== undefined && run_by_person && !isOthers : patch.run !== null && byPerson,
    check_state: !byPerson && decidesTime(patch) && newCheck?.byPerson ? ofOthers : newCheck,
    timed_by: timed === setBy ? null : authorOption(timed),
  };
}

/** The members that an edit changes. `null` clears a field. @param setBy the author of the texts afterwards */
function changed(
  before: Alarm,
  patch: AlarmPatch,
  author: string | undefined,
  setBy: string | null,
): Partial<Definition> {
  const members: Record<string, unknown> = {};
  for (const { name, member, absent } of DEFINED)
    if (patch[name] !== undefined) members[member] = stored(patch[name] ?? absent);
  members.options = encodeOptions({
    ...optionsOf(before),
    ...patch,
    ...rightsAfter(before, patch, author, setBy),
  });
  return members;
}

/**
 * The alarm that a request describes. Its instants are not yet checked against the current time.
 *
 * @param context.now the instant of the request, epoch ms
 * @param context.author the person or program with a proof for this request, as stored; without one, the agent
 * @param context.madeBy the credential of the request, as stored; by default none
 * @param context.hours the hours that a time in words leaves open
 * @param context.traceparent of the request, if it is recorded
 * @param context.earlier the alarm that the request may repeat: its words, if they are the same, keep their meaning
 * @throws ReveilleError `invalid_request` for fields that contradict each other, and for words without one meaning
 */
export function draftAlarm(
  asked: AlarmCreate,
  context: {
    id: string;
    owner: string;
    now: number;
    limits: DefinitionLimits;
    author?: string | undefined;
    madeBy?: string | null;
    earlier?: Alarm | undefined;
    hours?: WordHours | undefined;
    traceparent?: string | undefined;
  },
): Alarm {
  const { id, owner, now, limits, author, madeBy = null, earlier, hours, traceparent } = context;
  const repeated = earlier === undefined ? asked : withTimeOf(earlier, asked);
  const input = repeated === asked ? withTime(asked, { now, hours }) : repeated;
  const kind = kindOf(input);
  if (kind === undefined)
    throw invalid(
      'an alarm needs a time: when in words, delay_seconds, fire_at, cron_expr or rrule; or event, after or expect',
    );
  refuseFieldsOfOtherKind(input, kind);
  refuseTermsBesideRun(input);
  if (kind === 'cron' && input.cron_expr === undefined)
    throw invalid('an alarm of kind "cron" needs cron_expr, such as "0 9 * * 1-5" or "@hourly"');
  if (kind === 'rrule' && input.rrule === undefined)
    throw invalid('an alarm of kind "rrule" needs rrule, such as "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"');
  if (kind === 'event' && (input.event ?? input.after ?? input.expect) === undefined)
    throw invalid('an alarm of kind "event" needs event, such as {"source": "webhook"}, or after, or expect');
  return {
    ...requested(input, author, traceparent),
    kind,
    id,
    owner,
    fireAt: kind === 'once' ? instantOfOnce(input.delay_seconds, input.fire_at, now) : null,
    anchor: now,
    maxFailures: input.max_failures ?? limits.maxFailures,
    setBy: author ?? null,
    madeBy,
    status: 'active',
    failureCount: 0,
    lastError: null,
    createdAt: now,
    updatedAt: now,
    lastFiredAt: null,
    fireCount: 0,
    scheduledFires: 0,
  };
}

/** Checks the instant of a `once` alarm against the current time and returns its occurrence. */
function firstOfOnce(alarm: Alarm, now: number): Occurrence {
  const fireAt = alarm.fireAt!;
  if (fireAt <= now)
    throw invalid(`fire_at must be in the future (got ${formatInstant(fireAt)}, it is now ${formatInstant(now)})`);
  if (fireAt > now + DELAY_MAX_SECONDS * 1000)
    throw invalid(`fire_at must be within ten years (got ${formatInstant(fireAt)})`);
  return onlyOccurrence(alarm);
}

/** Checks a series against the limits and returns its first occurrence after an instant. */
function firstOfSeries(
  alarm: Alarm,
  after: number,
  now: number,
  { limits, calendars }: { limits: DefinitionLimits; calendars: Calendars },
): Occurrence {
  const series = seriesOf(alarm, calendars);
  const [name, rule] = alarm.kind === 'cron' ? ['cron_expr', alarm.cronExpr] : ['rrule', optionsOf(alarm).rrule];
  if (series.shortestIntervalMs < limits.minIntervalSeconds * 1000)
    throw invalid(
      `${name} must leave at least ${limits.minIntervalSeconds} seconds between two occurrences (got ${showValue(rule)})`,
    );
  if (alarm.endsAt !== null && alarm.endsAt <= now)
    throw invalid(
      `ends_at must be in the future (got ${formatInstant(alarm.endsAt)}, it is now ${formatInstant(now)})`,
    );
  const first = nextOccurrence(alarm, after, calendars);
  if (first) return first;
  if (alarm.maxFires !== null && alarm.scheduledFires >= alarm.maxFires)
    throw invalid(
      `max_fires must be at least ${alarm.scheduledFires + 1}, because ${alarm.scheduledFires} have been delivered (got ${alarm.maxFires})`,
    );
  const { holidays } = optionsOf(alarm);
  const outside = holidays === undefined ? '' : ` outside the days of the calendar "${holidays}"`;
  if (alarm.endsAt === null)
    throw invalid(`${name} never fires again${outside} (got ${showValue(rule)}); give one with a time to come`);
  throw invalid(
    `ends_at is before the first occurrence of ${name}, so the alarm would never fire (ends_at ${formatInstant(alarm.endsAt)})`,
  );
}

/**
 * The first occurrence of an alarm that starts or restarts at `now`.
 *
 * @throws ReveilleError `invalid_request` for a definition that contradicts the current time or the limits
 */
export function firstOccurrence(
  alarm: Alarm,
  now: number,
  limits: DefinitionLimits,
  calendars = NO_CALENDARS,
): Occurrence {
  if (alarm.kind === 'once') return firstOfOnce(alarm, now);
  if (alarm.kind === 'event') return nextOfEvents(alarm, now);
  const { holidays } = optionsOf(alarm);
  if (holidays !== undefined) requireCalendar(holidays, calendars);
  return firstOfSeries(alarm, now, now, { limits, calendars });
}

/** The columns that are compared by value; {@link differingFields} has the rules for the others. */
const COMPARED = DEFINED.filter(({ name }) => !['idempotency_key', 'fire_at', 'timezone'].includes(name));

/**
 * The fields in which two definitions differ, by their wire names. Two alarms with the same `delay_seconds`, or with the
 * same `when`, are the same definition although their instants differ: the later request repeats the earlier one.
 */
export function differingFields(one: Alarm, other: Alarm): string[] {
  const names: string[] = COMPARED.filter(({ member }) => one[member] !== other[member]).map(({ name }) => name);
  const [options, others] = [optionsOf(one), optionsOf(other)];
  names.push(...OWNER_OPTIONS.filter((name) => !isSameOption(options[name], others[name])));
  // An explicit default equals an omitted field.
  if ((one.timezone ?? DEFAULT_TIMEZONE) !== (other.timezone ?? DEFAULT_TIMEZONE)) names.push('timezone');
  const bothAbsolute = one.delaySeconds === null && other.delaySeconds === null;
  if (bothAbsolute && one.fireAt !== other.fireAt) names.push('fire_at');
  const sameWords = options.when !== undefined && options.when === others.when;
  return sameWords ? names.filter((name) => !READ_FROM_WORDS.some((read) => read === name)) : names;
}

/** Editing one of these fields restarts the schedule. */
const RESTARTING_FIELDS = [...TIME_FIELDS, 'timezone'] as const;
/** Editing one of these fields keeps the schedule's instants, or moves each a little. */
const BOUNDING_FIELDS = ['jitter_seconds', 'ends_at', 'max_fires', 'holidays'] as const;

const edits = (patch: AlarmPatch, fields: readonly (keyof AlarmPatch)[]) =>
  fields.some((name) => patch[name] !== undefined);

/** Whether an edit may change when an alarm fires. */
export const editsSchedule = (patch: AlarmPatch): boolean =>
  edits(patch, ['when', ...RESTARTING_FIELDS, ...BOUNDING_FIELDS]);

/** Replaces the old schedule with a new one. */
function replaceScheduled(state: AlarmState, first: Occurrence): Occurrence[] {
  const current = scheduledOccurrence(state);
  // The same instant is the same occurrence: it keeps its claim and its number of attempts.
  if (current?.fireId !== first.fireId) return [...withoutSchedule(state.occurrences), first];
  const others = state.occurrences.filter((occurrence) => occurrence !== current);
  return [...others, { ...current, dueAt: first.dueAt, ...NOT_DEFERRED }];
}

function restartSchedule(state: AlarmState, alarm: Alarm, first: Occurrence): AlarmState {
  const pending = alarm.status === 'paused' ? { ...first, dueAt: null } : first;
  const { alarm: after, occurrences } = withoutBackfill({ alarm, occurrences: replaceScheduled(state, pending) });
  return { alarm: { ...after, failureCount: 0 }, occurrences };
}

/**
 * Applies new limits to the pending occurrence of the schedule. An occurrence that is already due stays unchanged: the
 * limits apply to later ones.
 */
function applyLimits(
  state: AlarmState,
  alarm: Alarm,
  now: number,
  rules: { limits: DefinitionLimits; calendars: Calendars },
): AlarmState {
  const current = scheduledOccurrence(state);
  // Without its calendar, or with another one, a series may have occurrences before the pending one.
  const hasOtherDays = optionsOf(alarm).holidays !== optionsOf(state.alarm).holidays;
  const pending = current && (hasOtherDays ? Math.min(current.nominal - 1, now) : current.nominal - 1);
  const after = pending ?? now;
  const first = alarm.kind === 'once' ? onlyOccurrence(alarm) : firstOfSeries(alarm, after, now, rules);
  const isDue = current !== undefined && (current.attempt > 0 || current.scheduledFor <= now);
  if (!isDue) return restartSchedule(state, alarm, first);
  const due = { alarm, occurrences: state.occurrences };
  // With another jitter, the fires of a backfill would have the ids of delivered ones.
  return alarm.jitterSeconds === state.alarm.jitterSeconds ? due : withoutBackfill(due);
}

/** Makes deferred occurrences due. */
function releaseDeferred(state: AlarmState, now: number): AlarmState {
  const occurrences = state.occurrences.map((occurrence) =>
    occurrence.heldUntil === null || isClaimed(occurrence)
      ? occurrence
      : { ...occurrence, dueAt: now, ...NOT_DEFERRED },
  );
  return { alarm: state.alarm, occurrences };
}

/**
 * Edits an alarm.
 *
 * - A new instant, expression or zone restarts the schedule from `now`.
 * - Jitter and the limits of a series apply from the next occurrence on.
 * - An alarm that becomes urgent is tried at once if quiet hours deferred it.
 * - An occurrence that waits for a turn is tried at once if `overlap` is set.
 * - Other edits leave pending occurrences unchanged.
 *
 * The author of a changed text is the editor, and the others keep their authors: nothing that the agent wrote may be
 * attributed to a person who renames the alarm.
 *
 * @param limits.author the person or program with a proof for this edit, as stored; without one, the agent
 * @throws ReveilleError `conflict` when the alarm is final, `invalid_request` as for a creation
 */
export function editAlarm(
  stored: AlarmState,
  asked: AlarmPatch,
  now: number,
  limits: DefinitionLimits & { author?: string | undefined; hours?: WordHours | undefined },
  calendars = NO_CALENDARS,
): AlarmState {
  const before = stored.alarm;
  if (before.status !== 'active' && before.status !== 'paused')
    throw new ReveilleError('conflict', `this alarm is ${before.status} and can no longer be edited; set a new one`);
  if (Object.keys(asked).length === 0) throw invalid('nothing to edit; name at least one field to change');
  const patch = withNewTime(before, asked, { now, hours: limits.hours });
  refuseFieldsOfOtherKind(patch, before.kind, ', or set a new alarm');
  refuseTermsBesideRun({ ...optionsOf(before), ...patch });
  if (before.kind === 'event') refuseOfEvents({ ...(optionsOf(before) as AlarmPatch), ...patch });

  if (typeof patch.holidays === 'string') requireCalendar(patch.holidays, calendars);

  const movesOnce = patch.delay_seconds !== undefined || patch.fire_at !== undefined;
  const restartsSeries = [patch.cron_expr, patch.rrule, patch.timezone, patch.event, patch.after, patch.expect].some(
    (value) => value !== undefined,
  );
  // Words that no longer say when it fires are dropped, with their zone.
  const reworded = TIME_FIELDS.some((name) => patch[name] !== undefined) && patch.when === undefined;
  const unsaid = { when: null as unknown as undefined, ...(before.kind === 'once' && { timezone: null }) };
  const setBy = authorOfMessage(before, patch, limits.author);
  const edited: Alarm = {
    ...before,
    ...changed(before, reworded ? { ...patch, ...unsaid } : patch, limits.author, setBy),
    delaySeconds: movesOnce ? (patch.delay_seconds ?? null) : before.delaySeconds,
    fireAt: movesOnce ? instantOfOnce(patch.delay_seconds, patch.fire_at, now) : before.fireAt,
    anchor: restartsSeries ? now : before.anchor,
    maxFailures: patch.max_failures === undefined ? before.maxFailures : (patch.max_failures ?? limits.maxFailures),
    updatedAt: now,
  };
  const alarm = withAuthors(before, edited, patch, limits.author);
  const waiting = patch.overlap === undefined ? stored : releaseWaiting(stored, now);
  const state = alarm.urgent && !before.urgent ? releaseDeferred(waiting, now) : waiting;
  if (edits(patch, RESTARTING_FIELDS))
    return restartSchedule(state, alarm, firstOccurrence(alarm, now, limits, calendars));
  if (edits(patch, BOUNDING_FIELDS)) return applyLimits(state, alarm, now, { limits, calendars });
  return { alarm, occurrences: state.occurrences };
}
