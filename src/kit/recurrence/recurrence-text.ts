/** Formats recurrence rules as a phrase. Pure. */
import { ReveilleError } from '../../wire/errors.ts';
import { type Moment, parseRecurrence, type Recurrence, type Rule, type Weekday } from './recurrence.ts';

const UNITS = {
  SECONDLY: 'second',
  MINUTELY: 'minute',
  HOURLY: 'hour',
  DAILY: 'day',
  WEEKLY: 'week',
  MONTHLY: 'month',
  YEARLY: 'year',
} as const;
const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTHS = 'January February March April May June July August September October November December'.split(' ');
/** A longer list of times is no help for a reader. */
const MOST_TIMES = 6;

const two = (number: number) => String(number).padStart(2, '0');
const joined = (parts: readonly string[]) =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;

/** `the 2nd`, `the last`, `the 3rd last` */
function ordinal(nth: number): string {
  const size = Math.abs(nth);
  const ending = size > 10 && size < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][size % 10] ?? 'th');
  if (nth > 0) return `the ${size}${ending}`;
  return size === 1 ? 'the last' : `the ${size}${ending} last`;
}

const isWeekdays = (days: readonly Weekday[]) =>
  days.length === 5 && days.every(({ weekday, nth }) => nth === 0 && weekday < 5);

/** What a rule leaves to its start, from there: the day of a week, a month or a year. */
function withDaysOf(rule: Rule, { reading }: Moment): Rule {
  const { frequency, byDay, byMonthDay, byMonth, byYearDay, byWeekNo } = rule;
  if (byDay || byMonthDay || byYearDay || byWeekNo) return rule;
  const began = new Date(reading);
  if (frequency === 'WEEKLY') return { ...rule, byDay: [{ weekday: (began.getUTCDay() + 6) % 7, nth: 0 }] };
  const byDate = { ...rule, byMonthDay: [began.getUTCDate()] };
  if (frequency === 'YEARLY') return { ...byDate, byMonth: byMonth ?? [began.getUTCMonth() + 1] };
  return frequency === 'MONTHLY' ? byDate : rule;
}

/** The days that each month always has, January first. */
export const SHORTEST_MONTHS: readonly number[] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The months of a day in a quarter, counted from its beginning (1) or its end (-1). */
const QUARTERS: Readonly<Record<number, string>> = { 1: '1,4,7,10', [-1]: '3,6,9,12' };

/** The days of a rule, and which months or years have them. */
type Days = { readonly days: string; readonly only?: string };

/** The days within the period of a rule; `undefined` for other patterns. */
function daysText({ frequency, interval, byDay, byMonthDay, byMonth, bySetPos }: Rule): Days | undefined {
  const numbers = bySetPos ?? byMonthDay ?? byDay?.map(({ nth }) => nth) ?? [];
  const isQuarterly =
    interval === 1 &&
    frequency === 'MONTHLY' &&
    numbers.length === 1 &&
    QUARTERS[Math.sign(numbers[0]!)] === byMonth?.join();
  const unit = isQuarterly ? 'quarter' : UNITS[frequency];
  const every = interval === 1 ? `every ${unit}` : `every ${interval} ${unit}s`;
  const months = byMonth && joined(byMonth.map((month) => MONTHS[month - 1]!));
  if (frequency === 'YEARLY') {
    const [day] = byDay ?? [];
    // With a month, the number of a weekday counts within it.
    if (day && day.nth !== 0 && byDay?.length === 1 && byMonth?.length === 1 && !byMonthDay && !bySetPos) {
      const only = Math.abs(day.nth) > 4 ? ' in years that have it' : '';
      return { days: `${every} on ${ordinal(day.nth)} ${DAYS[day.weekday]} in ${months}`, only };
    }
    const [date = 0] = byMonthDay ?? [];
    if (byDay || bySetPos || byMonthDay?.length !== 1 || byMonth?.length !== 1) return undefined;
    const isLeap = date > 28 && byMonth[0] === 2;
    return date > 0 ? { days: `${every} on ${months} ${date}`, only: isLeap ? ' in leap years' : '' } : undefined;
  }
  const inMonths = months === undefined || isQuarterly ? '' : ` in ${months}`;
  /** Not every month has the day that is the farthest from its beginning or end. */
  const onlyIf = (numbers: readonly number[], always: number) =>
    numbers.some((number) => Math.abs(number) > always)
      ? ` in months that have ${numbers.length === 1 ? 'it' : 'them'}`
      : '';
  if (byMonthDay && (byDay || bySetPos || frequency !== 'MONTHLY')) return undefined;
  if (byMonthDay) {
    const dates = joined(byMonthDay.map((day) => (day > 0 ? `day ${day}` : `${ordinal(day)} day`)));
    const shortest = Math.min(...(byMonth ?? [2]).map((month) => SHORTEST_MONTHS[month - 1]!));
    return { days: `${every} on ${dates}${inMonths}`, only: onlyIf(byMonthDay, shortest) };
  }
  // The day that the start gives is not known.
  const needsDay = frequency === 'MONTHLY' || frequency === 'WEEKLY';
  if (!byDay) return bySetPos || needsDay ? undefined : { days: `${every}${inMonths}` };
  if (bySetPos) {
    if (frequency !== 'MONTHLY' || !isWeekdays(byDay)) return undefined;
    const positions = joined(bySetPos.map((position) => `${ordinal(position)} weekday`));
    return { days: `${every} on ${positions}${inMonths}`, only: onlyIf(bySetPos, 20) };
  }
  if (frequency === 'MONTHLY' && byDay.some(({ nth }) => nth === 0)) return undefined;
  // Of a day of several, only the ones on these days of the week: the distance is another one.
  if (frequency !== 'MONTHLY' && frequency !== 'WEEKLY' && interval > 1) return undefined;
  const names = joined(byDay.map(({ weekday, nth }) => `${nth === 0 ? '' : `${ordinal(nth)} `}${DAYS[weekday]}`));
  const days = isWeekdays(byDay) ? 'weekday' : names;
  if (interval === 1 && (frequency === 'WEEKLY' || frequency === 'DAILY')) return { days: `every ${days}${inMonths}` };
  return { days: `${every} on ${isWeekdays(byDay) ? 'weekdays' : names}${inMonths}`, only: onlyIf(numbers, 4) };
}

const MINUTE_MS = 60_000;
const timeOf = (moment: Moment) => new Date(moment.reading).toISOString().slice(11, 16);

/** The times of day, `10:00`; empty when the rule and its start name none; `undefined` for other patterns. */
function timesOf(rule: Rule, start: Moment | undefined): string[] | undefined {
  const { frequency, byHour, byMinute, bySecond, bySetPos } = rule;
  if (['HOURLY', 'MINUTELY', 'SECONDLY'].includes(frequency)) return byHour || byMinute || bySecond ? undefined : [];
  if (bySecond && (bySecond.length > 1 || bySecond[0] !== 0)) return undefined;
  const began = start && start.zone !== 'UTC' ? new Date(start.reading) : undefined;
  if (!byHour && !byMinute && !began) return bySetPos ? undefined : [];
  const hours = byHour ?? (began && [began.getUTCHours()]);
  const minutes = byMinute ?? (began && [began.getUTCMinutes()]);
  const times = hours && minutes && hours.flatMap((hour) => minutes.map((minute) => `${two(hour)}:${two(minute)}`));
  // BYSETPOS counts each time of a day.
  return bySetPos && times?.length !== 1 ? undefined : times;
}

function timesText(rules: readonly Rule[], start: Moment | undefined): string[] | undefined {
  const lists = rules.map((rule) => timesOf(rule, start));
  if (lists.some((list) => list === undefined)) return undefined;
  const times = [...new Set(lists.flatMap((list) => list!))].sort();
  return times.length > MOST_TIMES ? undefined : times;
}

/** Whether rules fire on the same days: several rules are how different minutes of the same days are written. */
function areSameDays(rules: readonly Rule[]): boolean {
  const days = rules.map((rule) => JSON.stringify({ ...rule, byHour: undefined, byMinute: undefined }));
  return days.every((of) => of === days[0]) && rules.every(({ byHour, count }) => byHour && count === undefined);
}

/** ` from 2026-11-30`; with the time if it is after the first one of a day. */
function startText(start: Moment | undefined, times: readonly string[]): string {
  if (start === undefined) return '';
  const time = timeOf(start);
  const isLater = times[0] === undefined ? !start.isDate : time > times[0];
  return ` from ${dateText(start)}${isLater || start.zone === 'UTC' ? ` ${time}` : ''}${zoneText(start)}`;
}

const dateText = ({ reading }: Moment) => new Date(reading).toISOString().slice(0, 10);
const zoneText = ({ zone }: Moment) => (zone === 'UTC' ? ' UTC' : '');

function endText({ count, until }: Rule): string {
  if (count !== undefined) return `, ${count} time${count === 1 ? '' : 's'}`;
  if (until === undefined) return '';
  const seconds = new Date(until.reading).toISOString().slice(16, 19);
  const time = until.isDate ? '' : ` ${timeOf(until)}${seconds === ':00' ? '' : seconds}`;
  return ` until ${dateText(until)}${time}${zoneText(until)}`;
}

/**
 * `every 2 weeks on Monday at 10:00 from 2026-11-30`, `every month on the last Friday at 17:00, 5 times`. The text is
 * true of each instant of the rules; what it does not name is in the rules only.
 *
 * @returns `undefined` for rules without such a phrase
 */
export function recurrenceText(text: string): string | undefined {
  let read: Recurrence;
  try {
    read = parseRecurrence(text);
  } catch (error) {
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
  const { start, added, excluded } = read;
  const rules = read.rules.map((rule) =>
    start === undefined || start.zone === 'UTC' ? rule : withDaysOf(rule, start),
  );
  const [rule] = rules;
  if (rule === undefined || (rules.length > 1 && !areSameDays(rules))) return undefined;
  if (added.length > 0 || rule.byYearDay || rule.byWeekNo) return undefined;
  if (start !== undefined && start.reading % MINUTE_MS !== 0) return undefined;
  const named = daysText(rule);
  const times = timesText(rules, start);
  if (named === undefined || times === undefined) return undefined;
  const { days, only = '' } = named;
  const at = times.length === 0 ? '' : ` at ${joined(times)}`;
  const isOtherWeek = rule.weekStart !== 0 && rule.frequency === 'WEEKLY' && rule.interval > 1;
  const weeks = isOtherWeek ? `, weeks beginning on ${DAYS[rule.weekStart]}` : '';
  const without = excluded.length === 0 ? '' : `, except ${excluded.length} date${excluded.length === 1 ? '' : 's'}`;
  return `${days}${at}${only}${startText(start, times)}${endText(rule)}${weeks}${without}`;
}
