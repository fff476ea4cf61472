/** Alarms and fires as aligned lines. Pure: clock, zone and terminal are parameters. */
import { formatDuration, formatLateness } from '../../kit/clock/duration.ts';
import {
  calendarTime,
  fromNow,
  type LocalContext,
  localTime,
  shortTime,
  wallTime,
  zoneName,
} from '../../kit/clock/local-time.ts';
import { conditionText, type NameOfAlarm, waitText } from '../../kit/phrase/condition-text.ts';
import type { Conditions } from '../../kit/phrase/conditions.ts';
import { scheduleText } from '../../kit/phrase/schedule-text.ts';
import { unusedCalendar } from '../../kit/phrase/unused-calendar.ts';
import { oneLine, printable } from '../../kit/text/hidden-characters.ts';
import { ID_PREFIX, shortIds } from '../../kit/text/short-ids.ts';
import type { AlarmCreated, AlarmEdited, AlarmPreview, AlarmView, FireView, HookMade } from '../../wire/alarm.ts';
import { type FieldsWith, type FieldType, fieldOf, OWNER_FIELDS } from '../../wire/alarm-fields.ts';
import type { HookView, ObjectField } from '../../wire/conditions.ts';
import { plainError } from '../../wire/fire.ts';
import { type SetBy, setByText } from '../../wire/set-by.ts';
import { withoutTrailing } from '../../wire/text.ts';
import { columns, counted, fit, pad, table, textWidth, wrap } from './columns.ts';
import type { Output } from './output.ts';

/** The reader: clock, zone, terminal width and colours. */
export type Reader = LocalContext & { width: number; paint: Output['paint'] };

/** Enough text to fill any terminal; the rest of a long message is not measured. */
const PREVIEW_CHARACTERS = 400;
/** Between the name of a fact and its value. */
const INDENT = '  ';

const instant = (text: string) => Date.parse(text);

/** Label and message on one line, shortened. */
export function preview({ label, wake_message: message }: { label: string; wake_message: string }): string {
  const text = label === '' ? message : `${label}: ${message}`;
  const head = oneLine(text.slice(0, PREVIEW_CHARACTERS).toWellFormed());
  return text.length > PREVIEW_CHARACTERS ? `${head}…` : head;
}

/** Aligned facts, one per line; long values continue on the next line. */
export function facts(
  entries: readonly (readonly [name: string, value: string | undefined])[],
  look: Reader,
): string[] {
  const given = entries.filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
  const nameWidth = Math.max(0, ...given.map(([name]) => name.length));
  const room = look.width - INDENT.length - nameWidth - 2;
  return given.flatMap(([name, value]) =>
    wrap(value, Math.max(20, room)).map((line, at) =>
      `${INDENT}${look.paint('dim', pad(at === 0 ? name : '', nameWidth))}  ${line}`.trimEnd(),
    ),
  );
}

/** `in 9 min 58 s, 14:10:00 CEST`. */
export function instantText(text: string, look: Reader): string {
  return `${fromNow(instant(text), look.now)}, ${localTime(instant(text), look)}`;
}

/**
 * How a new alarm's time was understood: its next instants, starting with the alarm's own. `zone` is missing when the
 * schedule has none; `every` is the rhythm of a series, `assumed` what the words left open.
 */
export type FiresRead = {
  readonly zone?: string | undefined;
  readonly every?: string | undefined;
  readonly rings: readonly number[];
  readonly assumed?: string | undefined;
};

const SHOWN_ONCE = '(shown only now)';

/** The address of webhooks, and the secret, which is shown once. @param base the public listener, where it is known */
export function hookLines(hook: HookMade | undefined, base: string | undefined, look: Reader): string[] {
  if (hook === undefined) return [];
  const { secret } = hook;
  return [
    `${INDENT}address ${hookAddress(hook, base)} ${look.paint('dim', `(${senderText(hook)})`)}`,
    ...(secret === undefined ? [] : [`${INDENT}secret  ${secret} ${look.paint('dim', SHOWN_ONCE)}`]),
  ];
}

const SENDERS: Readonly<Record<HookView['verify'], string>> = {
  standard: 'signed as in Standard Webhooks',
  github: 'signed as by GitHub',
  path: 'the address is the secret',
};
const senderText = ({ verify }: HookView) => SENDERS[verify];

/** An address whose base is not known begins with the path. */
const hookAddress = ({ address }: HookView, base: string | undefined) =>
  base !== undefined && address.startsWith('/') ? `${withoutTrailing(base, '/')}${address}` : oneLine(address);

/** The output of `alarm set`. @param alarm what it waits for, if it has no time */
export function renderCreated(
  created: Omit<AlarmCreated, 'reading'>,
  look: Reader,
  reading?: FiresRead,
  alarm: Conditions = {},
  nameOf?: NameOfAlarm,
): string[] {
  const { id, next_fire_at: next, status, deduped } = created;
  const done = deduped ? 'Already set with this key and definition:' : 'Set';
  const lines = [`${done} ${look.paint('bold', id)}`];
  if ((alarm.event ?? alarm.after ?? alarm.expect) !== undefined)
    return [...lines, `${INDENT}${oneLine(waitText(alarm, nameOf))}`];
  if (next === undefined) return [...lines, `${INDENT}it is ${status}`];
  if (reading === undefined) return [...lines, `${INDENT}fires ${instantText(next, look)}`];
  const { zone, every, assumed } = reading;
  const rings = reading.rings.map((at) => calendarTime(at, { now: look.now, zone: zone ?? look.zone }));
  if (every !== undefined) lines.push(`${INDENT}a series: ${every}`);
  lines.push(`${INDENT}fires ${fromNow(instant(next), look.now)}: ${rings.join(', then ')}`);
  return zone === undefined
    ? lines
    : [...lines, `${INDENT}read in ${zone}${assumed === undefined ? '' : `, ${assumed}`}`];
}

/** The output of `alarm preview`: the occurrences, with the excluded ones. */
export function renderPreview(preview: AlarmPreview & { assumed?: string }, look: Reader): string[] {
  const { text, timezone: zone, occurrences, left_out = [], notes, assumed } = preview;
  const lines = [
    ...occurrences.map(({ at, note }) => ({ at: instant(at), note, distance: fromNow(instant(at), look.now) })),
    ...left_out.map(({ at, note }) => ({ at: instant(at), note, distance: '-' })),
  ].sort((one, other) => one.at - other.at);
  const rows = lines.map(({ at, distance }) => [calendarTime(at, { now: look.now, zone }), distance]);
  const aside = (note: string) => `${INDENT}${look.paint('dim', note)}`;
  const dates = columns(rows, look.width - INDENT.length).flatMap((row, at) => {
    const { note } = lines[at]!;
    return [`${INDENT}${row}`, ...(note === undefined ? [] : [`${INDENT}${aside(note)}`])];
  });
  const said = [assumed, ...notes].filter((note) => note !== undefined);
  return [text, ...(dates.length === 0 ? [`${INDENT}no fire`] : dates), ...said.map(aside)];
}

/** `in 10 h` of `in 10 h 27 min`: the next column has the clock time. */
const coarse = (relative: string) => relative.replace(/(\d+ \w+) \d+ \w+/, '$1');

function nextFire(alarm: AlarmView, look: Reader): [relative: string, absolute: string] {
  if (alarm.in_flight) return ['fires now', ''];
  if (waitsWithoutEnd(alarm)) return ['on an event', ''];
  if (alarm.next_fire_at !== undefined) {
    const at = instant(alarm.next_fire_at);
    return [at <= look.now ? 'is due' : coarse(fromNow(at, look.now)), shortTime(at, look)];
  }
  if (alarm.status !== 'fired' || alarm.last_fired_at === undefined) return ['-', ''];
  const at = instant(alarm.last_fired_at);
  return [coarse(fromNow(at, look.now)), shortTime(at, look)];
}

/** Whether only an event fires it. */
const waitsWithoutEnd = ({ kind, status, next_fire_at: next }: AlarmView) =>
  kind === 'event' && status === 'active' && next === undefined;

/** The reason why the next fire is deferred, if any. */
/** `Ada, a person` or `ChatGPT (client https://…), a program with your permission`. */
function authorText(by: SetBy): string {
  return `${oneLine(setByText(by))}, ${by.kind === 'person' ? 'a person' : 'a program with your permission'}`;
}

function heldBack({ held_back: held }: AlarmView): string | undefined {
  return held && oneLine(held.reason);
}

/** A line about failures of an alarm, if any. */
function trouble(alarm: AlarmView): string | undefined {
  const last = alarm.last_error === undefined ? '' : `: ${oneLine(plainError(alarm.last_error))}`;
  if (alarm.failure_count > 0)
    return `${counted(alarm.failure_count, 'failed attempt')} of ${alarm.max_failures}, the last one${last}`;
  return alarm.last_error === undefined ? undefined : `last error${last}`;
}

const HEADINGS = ['ID', 'STATUS', 'SCHEDULE', 'FIRES', 'AT', 'MESSAGE'] as const;

/** An alarm as others refer to it: by its label, or the beginning of its id. */
export const alarmName = (label: string | undefined, id: string) => (label ? `"${oneLine(label)}"` : id);

/** The part beyond a list: the number of further alarms, and whether finished ones are included. */
export type BeyondList = { readonly left: number; readonly history: 'shown' | 'hidden' };

/** The output of `alarm list`. */
export function renderAlarms(alarms: readonly AlarmView[], { left, history }: BeyondList, look: Reader): string[] {
  if (alarms.length === 0)
    return [history === 'shown' ? 'No alarms.' : 'No active alarms; --all includes finished ones.'];
  const ids = shortIds(alarms.map(({ id }) => id));
  const labels = new Map(alarms.map(({ id, label }) => [id, label]));
  const nameOf = (id: string) => alarmName(labels.get(id), ids.get(id) ?? id.slice(0, ID_PREFIX));
  const rows = alarms.map((alarm) => [
    ids.get(alarm.id)!,
    alarm.status,
    fit(shortSchedule(alarm, look, nameOf), SCHEDULE_WIDTH),
    ...nextFire(alarm, look),
    preview(alarm),
  ]);
  const [heading, ...lines] = table(HEADINGS, rows, look);
  const body = alarms.flatMap((alarm, at) => {
    const over = alarm.status === 'fired' || alarm.status === 'cancelled';
    const line = over ? look.paint('dim', lines[at]!) : lines[at]!;
    const wrong = over ? undefined : trouble(alarm);
    const held = over ? undefined : heldBack(alarm);
    const isCut = textWidth(shortSchedule(alarm, look, nameOf)) > SCHEDULE_WIDTH;
    const below = (text: string) => fit(`${' '.repeat(ID_PREFIX + 2)}${text}`, look.width);
    return [
      line,
      ...(isCut ? [look.paint('dim', below(schedule(alarm, look, { nameOf, detail: 'words' })))] : []),
      ...(over ? [] : (['check', 'run'] as const))
        .filter((field) => alarm[field] !== undefined)
        .map((field) => look.paint('dim', below(fieldRow(alarm, field, look).join(' ')))),
      ...(held === undefined ? [] : [look.paint('dim', below(held))]),
      ...(wrong === undefined ? [] : [look.paint(alarm.status === 'failed' ? 'red' : 'yellow', below(wrong))]),
    ];
  });
  const more = left === 0 ? '' : `, ${left} more with --limit ${alarms.length + left}`;
  const over = history === 'shown' ? '' : '; --all includes finished ones';
  const short = zoneName(look.now, look.zone);
  const zone = short === look.zone ? short : `${look.zone} (${short})`;
  const foot = `${counted(alarms.length, 'alarm')}${more}${over}. Times in ${zone}.`;
  return [heading!, ...body, '', look.paint('dim', foot)];
}

/** @param detail with `words`, a rule that has words is shown without its lines */
function schedule(
  alarm: AlarmView,
  look: Reader,
  { nameOf, detail = 'all' }: { nameOf?: NameOfAlarm | undefined; detail?: 'words' | 'all' } = {},
): string {
  if (alarm.kind === 'once' && alarm.fire_at !== undefined)
    return `once, at ${localTime(instant(alarm.fire_at), look)}`;
  const text = oneLine(scheduleText(alarm, { nameOf }));
  const expression = oneLine((alarm.rrule ?? alarm.cron_expr ?? '').trim().replace(/\s+/g, ' '));
  const isShown = text.includes(expression) || (detail === 'words' && alarm.rrule !== undefined);
  return isShown ? text : `${text} (${expression})`;
}

/** Cells of the schedule in a list; a longer schedule is repeated whole below its alarm. */
const SCHEDULE_WIDTH = 18;

/** The rhythm of an alarm as short text; with its zone if the reader's zone differs. */
const shortSchedule = (alarm: AlarmView, { zone }: Reader, nameOf?: NameOfAlarm): string =>
  oneLine(scheduleText(alarm, { zone, nameOf, isShort: true }));

const namesText = (names: readonly string[]) => (names.length === 0 ? 'none' : oneLine(names.join(', ')));

/** A field as text, by type; others as they are. */
const TEXTS: Partial<Record<FieldType, (value: never, look: Reader) => string>> = {
  text: oneLine,
  string: oneLine,
  instant: (text: string, look) => localTime(instant(text), look),
  seconds: (seconds: number) => formatDuration(Math.round(seconds * 1000)),
  list: namesText,
};

type Row = [name: string, value: string | undefined];
type RowField = FieldsWith<{ row: readonly unknown[] }>;

const LAST_ROWS = [
  ...(['ends_at', 'max_fires', 'jitter_seconds', 'max_lateness_seconds'] as const),
  ...(['conversation_id', 'idempotency_key'] as const),
] satisfies RowField[];
const FIRST_ROWS = OWNER_FIELDS.filter(
  (name): name is RowField =>
    name !== 'label' && fieldOf(name).row !== undefined && !LAST_ROWS.some((last) => last === name),
);

const isCondition = (name: RowField): name is RowField & ObjectField => fieldOf(name).type === 'object';

function fieldRow(alarm: AlarmView, name: RowField, look: Reader, nameOf?: NameOfAlarm): Row {
  const { type, absent, row: [title, text] = ['', ''] } = fieldOf(name);
  const value = alarm[name];
  if (value === undefined || value === absent) return [title, undefined];
  if (isCondition(name)) return [title, oneLine(conditionText(name, alarm[name]!, nameOf))];
  const written = (TEXTS[type] as ((value: unknown, look: Reader) => string) | undefined)?.(value, look);
  return [title, text.replace('{}', () => written ?? String(value))];
}

function timesFired(alarm: AlarmView, look: Reader): string | undefined {
  if (alarm.fire_count === 0) return undefined;
  const times = counted(alarm.fire_count, 'time');
  const limit = alarm.max_fires === undefined ? '' : ` of ${alarm.max_fires}`;
  return alarm.last_fired_at === undefined
    ? times
    : `${times}${limit}, the last ${instantText(alarm.last_fired_at, look)}`;
}

function backfillText({ backfill_left: left }: AlarmView, look: Reader): string | undefined {
  if (left === undefined) return undefined;
  const [first, last] = [instant(left.first), instant(left.last)].map((at) => calendarTime(at, look));
  return left.first === left.last ? `fires now for ${first}` : `fires for ${first} to ${last}, one after another`;
}

/** A block of text, indented. */
function block(title: string, text: string, look: Reader): string[] {
  const lines = printable(text)
    .split('\n')
    .map((line) => `${INDENT}${line}`);
  return ['', look.paint('dim', title), ...lines];
}

/** The next fire; of an alarm that waits, with the events that have come, or without one. */
function firesRow({ kind, next_fire_at: next, waiting_events: events }: AlarmView, look: Reader): Row {
  if (next === undefined) return ['fires', undefined];
  const why =
    kind !== 'event' ? '' : events === undefined ? ', if nothing comes' : `, with ${counted(events, 'event')}`;
  return ['fires', `${instantText(next, look)}${why}`];
}

/** What the computer of the reader knows beside the alarm: names of other alarms, and the public listener. */
export type Beside = { readonly nameOf?: NameOfAlarm; readonly base?: string | undefined };

/** The output of `alarm show` about the alarm itself, and of `alarm edit`, with the secret that an edit has made. */
export function renderAlarm(alarm: AlarmEdited, look: Reader, { nameOf, base }: Beside = {}): string[] {
  const { hook } = alarm;
  const calendar = unusedCalendar(alarm);
  const rows = facts(
    [
      ['status', alarm.in_flight ? `${alarm.status}, firing now` : alarm.status],
      fieldRow(alarm, 'label', look),
      firesRow(alarm, look),
      ['waits', heldBack(alarm)],
      ['schedule', alarm.kind === 'event' ? undefined : schedule(alarm, look)],
      ['calendar', calendar && oneLine(calendar)],
      ['backfill', backfillText(alarm, look)],
      ...[...FIRST_ROWS, ...LAST_ROWS].map((name) => fieldRow(alarm, name, look, nameOf)),
      ['address', hook && `${hookAddress(hook, base)} (${senderText(hook)})`],
      ['secret', hook?.secret && `${hook.secret} ${SHOWN_ONCE}`],
      ['set', instantText(alarm.created_at, look)],
      ['set by', alarm.set_by && authorText(alarm.set_by)],
      ...(['label', 'payload'] as const).map((text): [string, string | undefined] => {
        const author = alarm.text_by?.[text];
        return [`${text} by`, author && (author.kind === 'agent' ? 'the agent' : authorText(author))];
      }),
      ['has fired', timesFired(alarm, look)],
      ['trouble', trouble(alarm)],
    ],
    look,
  );
  return [
    `Alarm ${look.paint('bold', alarm.id)}`,
    ...rows,
    ...block('Message', alarm.wake_message, look),
    ...(alarm.payload === undefined ? [] : block('Payload', alarm.payload.text, look)),
  ];
}

/** The router's answer. An accepted wake does not mean that the turn has ended. */
function outcomeOf({ outcome, http_status: status }: FireView): string {
  const word = outcome === 'delivered' ? 'accepted' : outcome;
  return status === undefined || outcome === 'skipped' ? word : `${word} (${status})`;
}

/** The fires of an alarm: one line per attempt, with errors below. */
export function renderFires(fires: readonly FireView[], more: boolean, look: Reader): string[] {
  if (fires.length === 0) return ['', look.paint('dim', 'It has not fired yet.')];
  const rows = fires.map((fire) => [
    wallTime(instant(fire.scheduled_for), look),
    String(fire.attempt),
    outcomeOf(fire),
    formatLateness(fire.lateness_ms, fire.late_because),
    formatDuration(instant(fire.finished_at) - instant(fire.started_at)),
  ]);
  const [heading, ...lines] = columns([['DUE', 'ATTEMPT', 'OUTCOME', 'STARTED', 'TOOK'], ...rows], look.width - 2);
  const body = fires.flatMap((fire, at) => {
    const missed = fire.missed_count ? [`${fire.missed_count} earlier occurrences were missed`] : [];
    const notes = [...missed, ...(fire.error === undefined ? [] : [oneLine(plainError(fire.error))])];
    const below = notes
      .flatMap((note) => wrap(note, look.width - 6))
      .map((note) => look.paint('yellow', `      ${note}`));
    return [`${INDENT}${lines[at]}`, ...below];
  });
  const title = more ? `Fires, the ${fires.length} latest attempts` : 'Fires, latest first';
  return ['', look.paint('dim', title), look.paint('dim', `${INDENT}${heading}`), ...body];
}

const VERBS: Readonly<Record<FireView['outcome'], string>> = {
  delivered: 'fired',
  failed: 'failed',
  unknown: 'unknown',
  missed: 'missed',
  skipped: 'skipped',
};

/** One line of `alarm watch`: time, event, alarm, lateness. */
export function renderEvent(alarm: AlarmView, fire: FireView, look: Reader): string[] {
  const delivered = fire.outcome === 'delivered';
  const verb = pad(VERBS[fire.outcome], 7);
  const time = wallTime(instant(fire.started_at), look);
  const attempt = fire.attempt > 1 ? `, attempt ${fire.attempt}` : '';
  const line = `${time}  ${verb}  ${alarm.id.slice(0, ID_PREFIX)}  ${formatLateness(fire.lateness_ms, fire.late_because)}${attempt}  ${preview(alarm)}`;
  const shown = look.paint(delivered ? 'green' : 'yellow', fit(line, look.width));
  return fire.error === undefined ? [shown] : [shown, fit(`          ${oneLine(plainError(fire.error))}`, look.width)];
}
