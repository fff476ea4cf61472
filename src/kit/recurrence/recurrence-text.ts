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

/** The days within the period of a rule; `undefined` for other patterns. */
function daysText({ frequency, interval, byDay, byMonthDay, byMonth, bySetPos }: Rule): string | undefined {
  const every = interval === 1 ? `every ${UNITS[frequency]}` : `every ${interval} ${UNITS[frequency]}s`;
  const months = byMonth && joined(byMonth.map((month) => MONTHS[month - 1]!));
  if (frequency === 'YEARLY') {
    const [day] = byDay ?? [];
    // With a month, the number of a weekday counts within it.
    if (day && day.nth !== 0 && byDay?.length === 1 && byMonth?.length === 1 && !byMonthDay && !bySetPos)
      return `${every} on ${ordinal(day.nth)} ${DAYS[day.weekday]} in ${months}`;
    if (byDay || bySetPos || byMonthDay?.length !== 1 || byMonth?.length !== 1)
      return byMonthDay || byDay || byMonth || bySetPos ? undefined : every;
    return byMonthDay[0]! > 0 ? `${every} on ${months} ${byMonthDay[0]}` : undefined;
  }
  const inMonths = months === undefined ? '' : ` in ${months}`;
  if (byMonthDay && (byDay || bySetPos || frequency !== 'MONTHLY')) return undefined;
  if (byMonthDay)
    return `${every} on ${joined(byMonthDay.map((day) => (day > 0 ? `day ${day}` : `${ordinal(day)} day`)))}${inMonths}`;
  if (!byDay) return bySetPos ? undefined : `${every}${inMonths}`;
  if (bySetPos) {
    if (frequency !== 'MONTHLY' || !isWeekdays(byDay)) return undefined;
    return `${every} on ${joined(bySetPos.map((position) => `${ordinal(position)} weekday`))}${inMonths}`;
  }
  if (byDay.some(({ nth }) => nth === 0) && frequency === 'MONTHLY') return undefined;
  const names = joined(byDay.map(({ weekday, nth }) => `${nth === 0 ? '' : `${ordinal(nth)} `}${DAYS[weekday]}`));
  const days = isWeekdays(byDay) ? 'weekday' : names;
  if (interval === 1 && (frequency === 'WEEKLY' || frequency === 'DAILY')) return `every ${days}${inMonths}`;
  return `${every} on ${isWeekdays(byDay) ? 'weekdays' : names}${inMonths}`;
}

/** The times of day, `10:00`; empty when the rule and its start name none; `undefined` for other patterns. */
function timesOf({ frequency, byHour, byMinute, bySecond }: Rule, start: Moment | undefined): string[] | undefined {
  if (['HOURLY', 'MINUTELY', 'SECONDLY'].includes(frequency)) return byHour || byMinute || bySecond ? undefined : [];
  if (bySecond && (bySecond.length > 1 || bySecond[0] !== 0)) return undefined;
  const began = start && start.zone !== 'UTC' ? new Date(start.reading) : undefined;
  if (!byHour && !byMinute && !began) return [];
  const hours = byHour ?? (began && [began.getUTCHours()]);
  const minutes = byMinute ?? (began && [began.getUTCMinutes()]);
  return hours && minutes && hours.flatMap((hour) => minutes.map((minute) => `${two(hour)}:${two(minute)}`));
}

function timesText(rules: readonly Rule[], start: Moment | undefined): string | undefined {
  const lists = rules.map((rule) => timesOf(rule, start));
  if (lists.some((list) => list === undefined)) return undefined;
  const times = [...new Set(lists.flatMap((list) => list!))].sort();
  if (times.length > MOST_TIMES) return undefined;
  return times.length === 0 ? '' : ` at ${joined(times)}`;
}

/** Whether rules fire on the same days: several rules are how different minutes of the same days are written. */
function areSameDays(rules: readonly Rule[]): boolean {
  const days = rules.map((rule) => JSON.stringify({ ...rule, byHour: undefined, byMinute: undefined }));
  return days.every((of) => of === days[0]) && rules.every(({ byHour, count }) => byHour && count === undefined);
}

function endText({ count, until }: Rule): string {
  if (count !== undefined) return `, ${count} time${count === 1 ? '' : 's'}`;
  return until === undefined ? '' : ` until ${new Date(until.reading).toISOString().slice(0, 10)}`;
}

/**
 * `every 2 weeks on Monday at 10:00`, `every month on the last Friday at 17:00, 5 times`.
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
  const { rules, start, added, excluded } = read;
  const [rule] = rules;
  if (rule === undefined || (rules.length > 1 && !areSameDays(rules))) return undefined;
  if (added.length > 0 || rule.byYearDay || rule.byWeekNo) return undefined;
  const days = daysText(rule);
  const times = timesText(rules, start);
  if (days === undefined || times === undefined) return undefined;
  const without = excluded.length === 0 ? '' : `, except ${excluded.length} date${excluded.length === 1 ? '' : 's'}`;
  return `${days}${times}${endText(rule)}${without}`;
}
