/**
 * The coming fires of an owner's alarms as an iCalendar file (RFC 5545), for calendar apps that subscribe to it. Pure.
 *
 * A series that fires at most once a day, at a time of day, is one event with a rule. The next fires of any other series
 * are an event each.
 */
import { offsetAt, zoneOf } from '../../kit/clock/zone.ts';
import {
  calendarFile,
  calendarText,
  component,
  readingText,
  timezoneLines,
  utcText,
} from '../../kit/recurrence/calendar-text.ts';
import { parseRecurrence, type Rule, WEEKDAYS } from '../../kit/recurrence/recurrence.ts';
import { type Alarm, type AlarmState, scheduledOccurrence } from './alarm.ts';
import { parseCron } from './cron.ts';
import { isEvery } from './every.ts';
import type { Calendars } from './holidays.ts';
import { instantOfWall, LAST_INSTANT } from './occurrence.ts';
import { optionsOf } from './options.ts';
import { DEFAULT_TIMEZONE, seriesOf } from './series.ts';
import { nextFireAt } from './view.ts';

const DAY_MS = 86_400_000;

/** Limits of the single events of a series: their time range, and their number per alarm. */
const SINGLE_DAYS = 60;
const MOST_OF_ALARM = 50;
/** Maximum number of events in a file. */
const MOST_EVENTS = 2_000;
/** Maximum length of a message. */
const MOST_CHARACTERS = 2_000;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The suggested refresh interval for apps. */
const REFRESH = 'PT15M';

export type CalendarFeedOptions = {
  readonly now: number;
  readonly calendars: Calendars | undefined;
  /** Whether messages are in it; otherwise only labels are. */
  readonly messages: boolean;
  /** The owner, for the name of the calendar. */
  readonly owner: string;
};

type Event = { readonly lines: string[]; readonly zone: string | undefined; readonly start: number };

/** All days of a month, and of a week, as bits. */
const ALL_DAYS = 2 ** 31 - 1;
const ALL_WEEKDAYS = 127;
const ALL_MONTHS = 4095;

const bits = (mask: number, lowest: number) =>
  Array.from({ length: 31 }, (_, bit) => bit)
    .filter((bit) => (mask & (1 << bit)) !== 0)
    .map((bit) => bit + lowest);

/** The rule of a cron expression with one fixed time of day; `undefined` for any other. */
function ruleOfCron(cronExpr: string): { rule: string; minuteOfDay: number } | undefined {
  if (isEvery(cronExpr)) return undefined;
  const { minutes, hours, daysOfMonth, months, daysOfWeek, eitherDay, followsRealTime } = parseCron(cronExpr);
  const [minute = 0, hour = 0] = [minutes[0], hours[0]];
  if (minutes.length > 1 || hours.length > 1 || eitherDay || followsRealTime) return undefined;
  const hasDays = (daysOfMonth & ALL_DAYS) !== ALL_DAYS;
  const hasWeekdays = (daysOfWeek & ALL_WEEKDAYS) !== ALL_WEEKDAYS;
  if (hasDays && hasWeekdays) return undefined;
  const month = (months & ALL_MONTHS) === ALL_MONTHS ? '' : `;BYMONTH=${bits(months, 1).join(',')}`;
  const weekdays = bits(daysOfWeek, 0).map((day) => WEEKDAYS[(day + 6) % 7]!);
  const rule = hasDays
    ? `FREQ=${month === '' ? 'MONTHLY' : 'YEARLY'}${month};BYMONTHDAY=${bits(daysOfMonth, 1).join(',')}`
    : hasWeekdays
      ? `FREQ=WEEKLY${month};BYDAY=${weekdays.join(',')}`
      : `FREQ=DAILY${month}`;
  return { rule, minuteOfDay: hour * 60 + minute };
}

const BY_DAYS = new Set(['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']);

/** Parts that say the day of a rule; without one it is that of the first occurrence, which not every app honours. */
function impliedDay(rule: Rule, reading: number): string {
  const { frequency, byDay, byMonthDay, byYearDay, byWeekNo, byMonth } = rule;
  if ((byDay ?? byMonthDay ?? byYearDay ?? byWeekNo) !== undefined) return '';
  const date = new Date(reading);
  const day = `;BYMONTHDAY=${date.getUTCDate()}`;
  if (frequency === 'MONTHLY') return day;
  if (frequency !== 'YEARLY') return '';
  return byMonth === undefined ? `;BYMONTH=${date.getUTCMonth() + 1}${day}` : day;
}

/**
 * The rule of recurrence lines with one rule and one time of day; `undefined` for any other.
 *
 * @param reading the wall clock at an occurrence
 */
function ruleOfLines(text: string, reading: number): string | undefined {
  const { rules, added, excluded } = parseRecurrence(text);
  const [rule, ...more] = rules;
  if (rule === undefined || more.length > 0 || added.length > 0 || excluded.length > 0) return undefined;
  if (!BY_DAYS.has(rule.frequency)) return undefined;
  if ([rule.byHour, rule.byMinute, rule.bySecond].some((values) => (values?.length ?? 1) > 1)) return undefined;
  const [, value = ''] = /^RRULE:(.*)$/im.exec(text.replace(/\r?\n[ \t]/g, '')) ?? /^\s*(FREQ=.*)$/is.exec(text) ?? [];
  // The event begins with an occurrence, which has the time of day. Its end is written as an instant.
  const parts = value
    .trim()
    .toUpperCase()
    .split(';')
    .filter((part) => !/^(?:COUNT|UNTIL|BYHOUR|BYMINUTE|BYSECOND)=/.test(part));
  return `${parts.join(';')}${impliedDay(rule, reading)}`;
}

/** Where the rule of an alarm ends; `undefined` for a rule that counts, whose end takes too much work to find. */
function untilOf(rrule: string | undefined, timezone: string): number | undefined {
  const { count, until } = rrule === undefined ? {} : (parseRecurrence(rrule).rules[0] ?? {});
  if (count !== undefined) return undefined;
  if (until === undefined) return LAST_INSTANT;
  if (until.zone?.toUpperCase() === 'UTC') return until.reading;
  // A date as the end includes its day.
  return instantOfWall(zoneOf(timezone), until.isDate ? until.reading + DAY_MS - 1000 : until.reading);
}

/** The end of a rule as its last part: an instant, a number of occurrences, or none; `undefined` if neither says it. */
function endOf({ endsAt, maxFires, scheduledFires, options, timezone }: Alarm): string | undefined {
  const ofRule = untilOf(optionsOf({ options }).rrule, timezone ?? DEFAULT_TIMEZONE);
  if (ofRule === undefined) return undefined;
  const until = Math.min(ofRule, endsAt ?? LAST_INSTANT);
  const left = maxFires === null ? undefined : Math.max(1, maxFires - scheduledFires);
  if (until === LAST_INSTANT) return left === undefined ? '' : `;COUNT=${left}`;
  return left === undefined ? `;UNTIL=${utcText(until)}` : undefined;
}

/** The rule of a series from its next occurrence on; `undefined` if no rule of a calendar says the same. */
function ruleOf(alarm: Alarm, first: number): string | undefined {
  const { rrule, holidays } = optionsOf(alarm);
  if (holidays !== undefined) return undefined;
  const timezone = alarm.timezone ?? DEFAULT_TIMEZONE;
  const reading = first + offsetAt(timezone, first);
  const ofCron = alarm.kind === 'cron' ? ruleOfCron(alarm.cronExpr!) : undefined;
  const rule = alarm.kind === 'cron' ? ofCron?.rule : ruleOfLines(rrule!, reading);
  // The clock may skip the time of this occurrence, so that it fires at another one.
  const isMoved =
    offsetAt(timezone, first - 1) < offsetAt(timezone, first) ||
    (ofCron !== undefined && reading % DAY_MS !== ofCron.minuteOfDay * 60_000);
  const end = rule === undefined || isMoved ? undefined : endOf(alarm);
  return end === undefined ? undefined : `${rule}${end}`;
}

/** When the alarm has changed last, for calendar apps: an edit, or a fire, after which the series begins later. */
const changedAt = ({ alarm }: AlarmState) => Math.max(alarm.updatedAt, alarm.lastFiredAt ?? 0, alarm.createdAt);

function event(
  state: AlarmState,
  uid: string,
  when: readonly string[],
  { messages }: CalendarFeedOptions,
): readonly string[] {
  const { alarm } = state;
  const changed = utcText(changedAt(state));
  const [line = ''] = alarm.wakeMessage.trim().split('\n', 1);
  const title = alarm.label || (messages ? line.slice(0, 200) : '') || 'Alarm';
  return component('VEVENT', [
    `UID:${uid}@reveille`,
    `DTSTAMP:${changed}`,
    ...when,
    `SUMMARY:${calendarText(title)}`,
    ...(messages ? [`DESCRIPTION:${calendarText(alarm.wakeMessage.slice(0, MOST_CHARACTERS))}`] : []),
    `CREATED:${utcText(alarm.createdAt)}`,
    `LAST-MODIFIED:${changed}`,
    // It grows with each change, as the sequence numbers of an event must.
    `SEQUENCE:${Math.max(0, Math.floor((changedAt(state) - alarm.createdAt) / 1000))}`,
    'CLASS:PRIVATE',
    'TRANSP:TRANSPARENT',
  ]);
}

/** The events of one alarm. */
function eventsOf(state: AlarmState, options: CalendarFeedOptions): Event[] {
  const { alarm } = state;
  const next = nextFireAt(state);
  const scheduled = scheduledOccurrence(state);
  // An alarm with events fires at a time only if none comes.
  if (next === undefined || scheduled === undefined || alarm.kind === 'event') return [];
  const single = (uid: string, at: number): Event => ({
    lines: [...event(state, uid, [`DTSTART:${utcText(at)}`], options)],
    ...{ zone: undefined, start: at },
  });
  if (alarm.kind === 'once') return [single(alarm.id, next)];
  const series = seriesOf(alarm, options.calendars);
  const first = scheduled.nominal;
  const rule = ruleOf(alarm, first);
  const timezone = alarm.timezone ?? DEFAULT_TIMEZONE;
  if (rule !== undefined) {
    const isUtc = timezone.toUpperCase() === 'UTC';
    const start = isUtc
      ? `DTSTART:${utcText(first)}`
      : `DTSTART;TZID=${timezone}:${readingText(first + offsetAt(timezone, first))}`;
    const lines = event(state, alarm.id, [start, `RRULE:${rule}`], options);
    return [{ lines: [...lines], zone: isUtc ? undefined : timezone, start: first }];
  }
  const until = Math.min(alarm.endsAt ?? LAST_INSTANT, options.now + SINGLE_DAYS * DAY_MS);
  const left = alarm.maxFires === null ? MOST_OF_ALARM : Math.min(MOST_OF_ALARM, alarm.maxFires - alarm.scheduledFires);
  const events: Event[] = [];
  for (let at: number | undefined = first; at !== undefined && events.length < left; at = series.next(at)) {
    if (at > until && events.length > 0) break;
    // The next fire may be deferred.
    events.push(single(`${alarm.id}-${utcText(at)}`, at === first ? Math.max(at, next) : at));
  }
  return events;
}

/** Alarms and events of one step, about 2 ms: due alarms fire between two steps. */
const STEP = 20;

/**
 * The text of the calendar. It keeps no alarm, so that its memory is that of its events.
 *
 * @param states active alarms, the next to fire first; one that fires meanwhile may come again
 * @param pause waits between two steps
 */
export async function calendarFeed(
  states: Iterable<AlarmState> | AsyncIterable<AlarmState>,
  options: CalendarFeedOptions,
  pause: () => Promise<unknown>,
): Promise<string> {
  const texts: string[] = [];
  const zones = new Map<string, { first: number; last: number }>();
  const seen = new Set<string>();
  let work = 0;
  for await (const state of states) {
    if (texts.length >= MOST_EVENTS) break;
    if (seen.has(state.alarm.id)) continue;
    seen.add(state.alarm.id);
    const events = eventsOf(state, options).slice(0, MOST_EVENTS - texts.length);
    for (const { lines, zone, start } of events) {
      texts.push(calendarFile(lines));
      if (zone === undefined) continue;
      const { first, last } = zones.get(zone) ?? { first: start, last: start };
      zones.set(zone, { first: Math.min(first, start), last: Math.max(last, start) });
    }
    work += 1 + events.length;
    if (work < STEP) continue;
    work = 0;
    await pause();
  }
  const timezones: string[] = [];
  for (const [zone, { first, last }] of zones) {
    timezones.push(...timezoneLines(zone, first - DAY_MS, last));
    await pause();
  }
  // A calendar must have a component.
  if (texts.length === 0) timezones.push(...timezoneLines('UTC', options.now, options.now));
  // The owner of an installation without a name is a UUID.
  const name = UUID.test(options.owner) ? 'Reveille' : calendarText(`Reveille: ${options.owner}`);
  const head = calendarFile([
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//Reveille//Upcoming//EN',
    'CALSCALE:GREGORIAN',
    'METHOD:PUBLISH',
    `NAME:${name}`,
    `X-WR-CALNAME:${name}`,
    `REFRESH-INTERVAL;VALUE=DURATION:${REFRESH}`,
    `X-PUBLISHED-TTL:${REFRESH}`,
    ...timezones,
  ]);
  return `${head}${texts.join('')}${calendarFile(['END:VCALENDAR'])}`;
}
