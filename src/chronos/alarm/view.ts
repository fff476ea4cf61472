/** The owner's view of an alarm and its attempts (docs/reference/api.md, "chronosd: alarms"). */
import type { Clock } from '../../kit/clock/clock.ts';
import { type AlarmView, alarmViewSchema, type FireView } from '../../wire/alarm.ts';
import { type FieldName, type FieldType, fieldOf, isOption, memberOf } from '../../wire/alarm-fields.ts';
import { ALARM_RIGHTS, type Reader, type Sight } from '../../wire/alarm-rights.ts';
import { readCause } from '../../wire/cause.ts';
import type { Check, EventSource, HookView, Run } from '../../wire/conditions.ts';
import { RawJson } from '../../wire/json.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { clientThatMade, isByPerson, readSetBy } from '../../wire/set-by.ts';
import {
  type Alarm,
  type AlarmState,
  type Attempt,
  isClaimed,
  type Occurrence,
  scheduledOccurrence,
  TURN_RUNS,
} from './alarm.ts';
import { waitingBackfill } from './backfill.ts';
import { authorOption } from './cause.ts';
import { deadlineOf, eventStateOf, isEventFire, isLook, waitingEvents } from './events.ts';
import { type Calendars, endOfCalendar, isMissingCalendar, NO_CALENDARS } from './holidays.ts';
import { hookViewOf } from './hook.ts';
import { LAST_INSTANT } from './occurrence.ts';
import { type AlarmOptions, optionsOf } from './options.ts';
import { DEFAULT_TIMEZONE } from './series.ts';
import { textAuthorsOf } from './text-authors.ts';
import { waitsFor } from './waits-for.ts';

/** Omits absent members, so that the JSON omits them too. */
function present<T extends object>(members: { [K in keyof T]: T[K] | null | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null && value !== undefined)) as T;
}

const instantOrNull = (epochMs: number | null | undefined) =>
  epochMs === null || epochMs === undefined ? null : formatInstant(epochMs);

/**
 * The instant of an occurrence's next attempt. For a deferred one it is the end of the deferral, not the next request
 * to the router.
 */
function nextAttemptAt({ dueAt, heldUntil }: Occurrence): number | undefined {
  return dueAt === null ? undefined : Math.max(dueAt, heldUntil ?? dueAt);
}

/** The instant of the next attempt of an active alarm's own schedule, or with the events that wait. */
export function nextFireAt(state: AlarmState): number | undefined {
  const { alarm, occurrences } = state;
  if (alarm.status !== 'active') return undefined;
  const scheduled = scheduledOccurrence(state);
  if (alarm.kind !== 'event') return scheduled && nextAttemptAt(scheduled);
  const fires = occurrences.filter((one) => (one === scheduled ? !isLook(alarm, one) : isEventFire(alarm, one)));
  const looks = scheduled && isLook(alarm, scheduled);
  const next = Math.min(
    ...fires.map((one) => nextAttemptAt(one) ?? LAST_INSTANT),
    looks ? deadlineOf(alarm) : LAST_INSTANT,
  );
  return next < LAST_INSTANT ? next : undefined;
}

/** The deferral to show: of several deferred occurrences, the one that is due first. */
function firstDeferral({ occurrences }: AlarmState): AlarmView['held_back'] | null {
  // A deferred occurrence is later than scheduled. A replica of a version without deferrals may keep a reason when the
  // next occurrence of a series reuses the row; that occurrence is on time.
  const deferrals = occurrences.flatMap((occurrence) => {
    const { heldReason, heldUntil, scheduledFor, claimedAt } = occurrence;
    const until = nextAttemptAt(occurrence);
    return heldUntil === null || until === undefined || until <= scheduledFor || claimedAt !== null
      ? []
      : [{ reason: heldReason ?? TURN_RUNS, until }];
  });
  const [first] = deferrals.sort((one, other) => one.until - other.until);
  return first ? { reason: first.reason, until: formatInstant(first.until) } : null;
}

const isOpen = ({ status }: Alarm) => status === 'active' || status === 'paused';

/** The secret of a webhook is not shown again. */
function withoutSecret(event: AlarmOptions['event']): AlarmOptions['event'] | null {
  if (event?.source !== 'webhook') return event ?? null;
  const { secret: _, ...shown } = event;
  return shown;
}

/** What a view needs besides the alarm. */
type ViewContext = {
  readonly calendars?: Calendars | undefined;
  readonly clock?: Pick<Clock, 'now'>;
  /** Where webhooks reach the alarms from outside. */
  readonly publicUrl?: string | undefined;
  /** The person or client that reads, as authors are stored; without one, the agent. */
  readonly reader?: string | undefined;
};

const HIDDEN = '(not shown)';

/** The address of a check without its credentials, and without its query unless that is kept. */
function shownUrl(text: string, keepsQuery: boolean): string {
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') [url.username, url.password] = ['hidden', ''];
  if (!keepsQuery && url.search !== '') url.search = '?hidden';
  if (!keepsQuery) url.hash = '';
  return url.href === new URL(text).href ? text : url.href;
}

/** The program of a command without its arguments. */
const programOf = ([program, ...more]: readonly string[]): string[] => [program!, ...(more.length > 0 ? [HIDDEN] : [])];

function shownCheck(check: Check | undefined, keepsQuery: boolean): Check | undefined {
  if (check?.command && !keepsQuery)
    return { ...check, command: { ...check.command, argv: programOf(check.command.argv) } };
  if (check?.http === undefined) return check;
  const { headers, url, ...rest } = check.http;
  const names = headers && Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN]));
  return { ...check, http: { ...rest, url: shownUrl(url, keepsQuery), ...(names && { headers: names }) } };
}

/** What a reader sees of a member, by its sight in the table of rights. */
const SIGHTS: Readonly<Record<Sight, (value: unknown, alarm: Alarm, reader: string | undefined) => unknown>> = {
  shown: (value) => value,
  no_headers: (value, alarm) => (optionsOf(alarm).check_state?.byPerson ? shownCheck(value as Check, true) : value),
  no_query(value, alarm, reader) {
    const { byClient } = optionsOf(alarm).check_state ?? {};
    const by = readSetBy(reader!);
    return by.kind === 'client' && by.client_id === byClient ? value : shownCheck(value as Check, false);
  },
  no_secret_address: (value, alarm, reader) =>
    (value as HookView).verify !== 'path' || optionsOf(alarm).hook_by === authorOption(reader) ? value : null,
  program: (value) => ({ ...(value as Run), argv: programOf((value as Run).argv) }),
  no_arguments(value) {
    const event = value as EventSource;
    return event.source === 'mcp' && event.arguments ? { ...event, arguments: { hidden: true } } : event;
  },
};

const readerOf = (reader: string | undefined): Reader =>
  reader === undefined ? 'agent' : isByPerson(reader) ? 'person' : 'client';

/** A member of the view, as the reader may see it. */
function seen(name: keyof AlarmView, value: unknown, { alarm }: AlarmState, { reader }: ViewContext): unknown {
  const kind = readerOf(reader);
  if (kind === 'person' || value === null) return value;
  return SIGHTS[ALARM_RIGHTS[name][kind]](value, alarm, reader);
}

/** The address of an alarm, as the reader may see it. */
export function hookOf(state: AlarmState, context: ViewContext): HookView | undefined {
  const hook = hookViewOf(state.alarm, context.publicUrl);
  return hook && ((seen('hook', hook, state, context) as HookView | null) ?? undefined);
}

type Member = { name: keyof AlarmView; of: (state: AlarmState, context: ViewContext) => unknown };

/** Members that are no fields of the alarm. */
const COMPUTED: Readonly<Record<string, Member['of']>> = {
  next_fire_at: (state) => instantOrNull(nextFireAt(state)),
  in_flight: ({ alarm, occurrences }) => occurrences.some((one) => isClaimed(one) && !isLook(alarm, one)),
  held_back: firstDeferral,
  event: ({ alarm }) => withoutSecret(optionsOf(alarm).event),
  hook: ({ alarm }, { publicUrl }) => hookViewOf(alarm, publicUrl) ?? null,
  text_by: ({ alarm }) => textAuthorsOf(alarm) ?? null,
  made_by: ({ alarm }) => {
    const client_id = clientThatMade(alarm.madeBy);
    return client_id === undefined ? null : { client_id };
  },
  waits_for: ({ alarm }) => (isOpen(alarm) ? (waitsFor(alarm) ?? null) : null),
  waiting_events: ({ alarm }) => (isOpen(alarm) && waitingEvents(eventStateOf(alarm))) || null,
  starts_at: ({ alarm }) => (alarm.kind === 'rrule' ? formatInstant(alarm.anchor) : null),
  holidays_missing: ({ alarm }, { calendars = NO_CALENDARS }) => {
    const { holidays } = optionsOf(alarm);
    return holidays !== undefined && isMissingCalendar(holidays, calendars) ? true : null;
  },
  holidays_ended: ({ alarm }, { calendars = NO_CALENDARS, clock }) => {
    const { holidays } = optionsOf(alarm);
    if (holidays === undefined || clock === undefined || !isOpen(alarm)) return null;
    const timezone = alarm.timezone ?? DEFAULT_TIMEZONE;
    return endOfCalendar(holidays, { timezone, calendars, now: clock.now() }) ?? null;
  },
  backfill_left: ({ alarm }) => {
    const waits = waitingBackfill(alarm);
    return waits ? { first: formatInstant(waits.first), last: formatInstant(waits.last) } : null;
  },
};

/** Stored values in their form on the wire, by type; others are equal. */
const FORMS: Partial<Record<FieldType, (value: never) => unknown>> = {
  instant: formatInstant,
  json: (text: string) => new RawJson(text),
  author: readSetBy,
};

function viewOfField(name: FieldName): Member['of'] {
  // An absent option is not stored.
  if (isOption(name)) return ({ alarm }) => optionsOf(alarm)[name] ?? null;
  const { type, absent, view } = fieldOf(name);
  const member = memberOf(name);
  const form = FORMS[type] as ((value: unknown) => unknown) | undefined;
  return ({ alarm }) => {
    const value = alarm[member];
    if (value === null || (value === absent && view !== 'always')) return null;
    return form ? form(value) : value;
  };
}

/** In the order of the schema. */
const MEMBERS = Object.keys(alarmViewSchema.shape).map(
  (name): Member => ({ name: name as keyof AlarmView, of: COMPUTED[name] ?? viewOfField(name as FieldName) }),
);

export function viewAlarm(state: AlarmState, context: ViewContext = {}): AlarmView {
  const view: Record<string, unknown> = {};
  for (const { name, of } of MEMBERS) {
    const value = seen(name, of(state, context), state, context);
    if (value !== null) view[name] = value;
  }
  return view as AlarmView;
}

/** One entry of the fire ledger. Lateness counts from the due time to the start of this attempt. */
export function viewAttempt(attempt: Attempt): FireView {
  return present<FireView>({
    fire_id: attempt.fireId,
    scheduled_for: formatInstant(attempt.scheduledFor),
    attempt: attempt.attempt,
    started_at: formatInstant(attempt.startedAt),
    finished_at: formatInstant(attempt.finishedAt),
    lateness_ms: attempt.startedAt - attempt.scheduledFor,
    late_because: attempt.lateBecause,
    outcome: attempt.outcome,
    http_status: attempt.httpStatus,
    error: attempt.error,
    missed_count: attempt.missedCount || null,
    cause: attempt.cause === null ? null : readCause(attempt.cause),
    machine_ready_at: instantOrNull(
      attempt.machineReadyMs === null ? null : attempt.startedAt + attempt.machineReadyMs,
    ),
    accepted_at: instantOrNull(attempt.outcome === 'delivered' ? attempt.finishedAt : null),
  });
}
