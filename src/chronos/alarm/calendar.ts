/**
 * Wall times that cron fields match, on a calendar without zones. A wall time is written as the milliseconds of the
 * same calendar reading in UTC.
 */
import type { CronFields } from './cron.ts';

export const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/**
 * How many years ahead a match is searched. The rarest pattern is the 29th of February on one weekday. It recurs after
 * at most 40 years, because 2100 is no leap year.
 */
export const HORIZON_YEARS = 48;

/** The days of a month that match, day d as bit d − 1. `month` counts from 0. */
function matchingDays(fields: CronFields, year: number, month: number): number {
  if ((fields.months & (1 << month)) === 0) return 0;
  const firstWeekday = new Date(Date.UTC(year, month, 1)).getUTCDay();
  const length = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  let byWeekday = 0;
  for (let day = 0; day < length; day++) {
    if ((fields.daysOfWeek & (1 << ((firstWeekday + day) % 7))) !== 0) byWeekday |= 1 << day;
  }
  const byDate = fields.daysOfMonth & (2 ** length - 1);
  return fields.eitherDay ? byDate | byWeekday : byDate & byWeekday;
}

/** The number of bits that are set. */
function countBits(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** The lowest bit that is set, from 0. */
function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

/** The first matching time of day at or after hour and minute, in milliseconds since midnight. */
function timeOfDayFrom(fields: CronFields, hour: number, minute: number): number | undefined {
  for (const candidate of fields.hours) {
    if (candidate < hour) continue;
    const from = candidate === hour ? minute : 0;
    const found = fields.minutes.find((value) => value >= from);
    if (found !== undefined) return candidate * HOUR_MS + found * MINUTE_MS;
  }
  return undefined;
}

/** The first matching wall time strictly after `after`; `undefined` when there is none within {@link HORIZON_YEARS}. */
export function nextWallTime(fields: CronFields, after: number): number | undefined {
  const from = new Date((Math.floor(after / MINUTE_MS) + 1) * MINUTE_MS);
  const year = from.getUTCFullYear();
  const firstMonth = from.getUTCMonth();
  const today = from.getUTCDate() - 1;
  let days = matchingDays(fields, year, firstMonth) & (-1 << today);
  if ((days & (1 << today)) !== 0) {
    const timeOfDay = timeOfDayFrom(fields, from.getUTCHours(), from.getUTCMinutes());
    if (timeOfDay !== undefined) return Date.UTC(year, firstMonth, today + 1) + timeOfDay;
    days &= ~(1 << today);
  }
  for (let month = firstMonth; ; ) {
    if (days !== 0) {
      const midnight = Date.UTC(year, month, lowestBit(days) + 1);
      return midnight + fields.hours[0]! * HOUR_MS + fields.minutes[0]! * MINUTE_MS;
    }
    month++;
    if (month > firstMonth + HORIZON_YEARS * 12) return undefined;
    days = matchingDays(fields, year + Math.floor(month / 12), month % 12);
  }
}

/** How many wall times match in `(after, until]`. The work grows with the number of months between them. */
export function countWallTimes(fields: CronFields, after: number, until: number): number {
  const from = new Date((Math.floor(after / MINUTE_MS) + 1) * MINUTE_MS);
  const to = new Date((Math.floor(until / MINUTE_MS) + 1) * MINUTE_MS);
  if (to <= from) return 0;
  const perDay = fields.hours.length * fields.minutes.length;
  const firstYear = from.getUTCFullYear();
  const monthAfterLast = (to.getUTCFullYear() - firstYear) * 12 + to.getUTCMonth();
  let count = countSinceMonthBegan(fields, to) - countSinceMonthBegan(fields, from);
  for (let month = from.getUTCMonth(); month < monthAfterLast; month++) {
    count += countBits(matchingDays(fields, firstYear + Math.floor(month / 12), month % 12)) * perDay;
  }
  return count;
}

/** How many wall times match from the first of the month until `end`, excluding `end`. */
function countSinceMonthBegan(fields: CronFields, end: Date): number {
  const days = matchingDays(fields, end.getUTCFullYear(), end.getUTCMonth());
  const today = 1 << (end.getUTCDate() - 1);
  const count = countBits(days & (today - 1)) * fields.hours.length * fields.minutes.length;
  if ((days & today) === 0) return count;
  const hour = end.getUTCHours();
  const fullHours = fields.hours.filter((value) => value < hour).length;
  const minutes = fields.hours.includes(hour)
    ? fields.minutes.filter((value) => value < end.getUTCMinutes()).length
    : 0;
  return count + fullHours * fields.minutes.length + minutes;
}

/**
 * The shortest time between two consecutive matches as the wall clock counts it, in milliseconds. A clock change can
 * bring two of them closer together in real time.
 */
export function shortestWallGap(fields: CronFields): number {
  const times = fields.hours.flatMap((hour) => fields.minutes.map((minute) => hour * HOUR_MS + minute * MINUTE_MS));
  let shortest = Number.POSITIVE_INFINITY;
  for (let index = 1; index < times.length; index++) shortest = Math.min(shortest, times[index]! - times[index - 1]!);
  const overnight = shortestDayGap(fields) * DAY_MS - times.at(-1)! + times[0]!;
  return Math.min(shortest, overnight);
}

/** The fewest days from one matching date to the next. */
function shortestDayGap(fields: CronFields): number {
  let fewest = Number.POSITIVE_INFINITY;
  let previous: number | undefined;
  // Within 28 years every kind of year is followed by every kind that can follow it, except for a skipped leap day.
  for (let month = 0; month < 12 * 29; month++) {
    const start = Date.UTC(2000, month, 1) / DAY_MS;
    for (let days = matchingDays(fields, 2000 + Math.floor(month / 12), month % 12); days !== 0; days &= days - 1) {
      const day = start + lowestBit(days);
      if (previous !== undefined) fewest = Math.min(fewest, day - previous);
      if (fewest === 1) return fewest;
      previous = day;
    }
  }
  return fewest === Number.POSITIVE_INFINITY ? 365 * 28 : fewest;
}
