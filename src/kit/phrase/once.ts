/** The meaning of a phrase that names one instant: `tomorrow 9am`, `in 3 days at 9am`. Pure. */
import type { Day, Parts } from './parts.ts';
import { type PhraseContext, PhraseError, type Reading } from './reading.ts';
import {
  calendarDay,
  DAY_MS,
  dayOf,
  formatWall,
  HOUR_MS,
  instantOf,
  MINUTE_MS,
  noTime,
  SECOND_MS,
  timeOfDay,
  wallOf,
} from './time-of-day.ts';
import { MONTHS, type Unit, WEEKDAYS } from './vocabulary.ts';

/** Instants have four-digit years. */
const LATEST = Date.UTC(9999, 11, 31);

const EXACT_MS: Readonly<Partial<Record<Unit, number>>> = { second: SECOND_MS, minute: MINUTE_MS, hour: HOUR_MS };

function dateOf(text: string, { year, month, day }: Extract<Day, { kind: 'date' }>, now: number, time: number): number {
  if (month < 1 || month > 12) throw new PhraseError(`"${text}": there is no month ${month}`);
  if (year !== undefined) {
    const wall = calendarDay(year, month, day);
    if (wall === undefined) throw new PhraseError(`"${text}": ${MONTHS[month - 1]} ${year} has no day ${day}`);
    return wall;
  }
  const thisYear = new Date(now).getUTCFullYear();
  // There is a leap day within any eight years.
  for (let candidate = thisYear; candidate <= thisYear + 8; candidate++) {
    const wall = calendarDay(candidate, month, day);
    if (wall !== undefined && wall + time > now) return wall;
  }
  throw new PhraseError(`"${text}": ${MONTHS[month - 1]} has no day ${day}`);
}

/** The day of a weekday, as a wall time. */
function weekdayOf(
  text: string,
  { weekday, week }: Extract<Day, { kind: 'weekday' }>,
  now: number,
  time: number,
): number {
  const today = dayOf(now);
  const todays = new Date(today).getUTCDay();
  const ahead = (weekday - todays + 7) % 7;
  const coming = today + (ahead === 0 ? 7 : ahead) * DAY_MS;
  const at = (day: number) => formatWall(day + time);
  const name = WEEKDAYS[weekday]!;
  switch (week) {
    case 'next':
      throw new PhraseError(`"next ${name}" is ambiguous: it can be the coming one or the one after`, [
        at(coming),
        at(coming + 7 * DAY_MS),
      ]);
    case 'next week': {
      // If weeks begin on Sunday, next week differs for Sundays, and if today is Sunday.
      const monday = today + (8 - (todays === 0 ? 7 : todays)) * DAY_MS;
      const byMonday = monday + ((weekday + 6) % 7) * DAY_MS;
      const bySunday = today + (7 - todays + weekday) * DAY_MS;
      if (byMonday === bySunday) return byMonday;
      throw new PhraseError(
        `"${text}" depends on the day on which a week begins`,
        [bySunday, byMonday].sort((one, other) => one - other).map(at),
      );
    }
    case 'this': {
      const daysLeft = todays === 0 ? 0 : 7 - todays;
      if (ahead <= daysLeft && today + ahead * DAY_MS + time > now) return today + ahead * DAY_MS;
      throw new PhraseError(`this week's ${name} has passed`, [at(coming)]);
    }
    default: {
      if (ahead !== 0) return coming;
      if (today + time <= now) return coming;
      throw new PhraseError(`today is ${name}: the phrase can mean today or the day in a week`, [
        at(today),
        at(coming),
      ]);
    }
  }
}

function addMonths(text: string, wall: number, months: number): number {
  const from = new Date(wall);
  const first = Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months, 1);
  if (!(first <= LATEST)) throw new PhraseError(`"${text}" is beyond the year 9999`);
  const length = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months + 1, 0)).getUTCDate();
  const timeOnDay = wall - dayOf(wall);
  if (from.getUTCDate() <= length) return first + (from.getUTCDate() - 1) * DAY_MS + timeOnDay;
  throw new PhraseError(`"${text}": that month has no day ${from.getUTCDate()}`, [
    formatWall(first + (length - 1) * DAY_MS + timeOnDay),
    formatWall(first + length * DAY_MS + timeOnDay),
  ]);
}

/** `in 2 hours`, `in 3 days at 9am`. */
export function relativeOf(text: string, parts: Parts, { now, zone }: PhraseContext): Reading {
  const { ahead = [], times, halfDay } = parts;
  if (parts.day !== undefined || parts.monthDays.length > 0)
    throw new PhraseError(`"${text}" has a duration and a day; use only one of them`);
  if (parts.hours !== undefined) throw new PhraseError(`"${text}" has a duration and hours; use only one of them`);
  const isExact = ahead.every(({ unit }) => EXACT_MS[unit] !== undefined);
  const exactMs = ahead.reduce((sum, { amount, unit }) => sum + amount * (EXACT_MS[unit] ?? 0), 0);
  if (isExact) {
    if (times.length > 0 || halfDay !== undefined)
      throw new PhraseError(`"${text}" has a duration and a time; use only one of them`);
    if (exactMs < SECOND_MS) throw new PhraseError(`"${text}" is less than a second`, ['in 1 second']);
    return { kind: 'delay', seconds: Math.round(exactMs / SECOND_MS) };
  }
  let wall = wallOf(now, zone);
  for (const { amount, unit } of ahead) {
    if (EXACT_MS[unit] !== undefined) continue;
    if (!Number.isInteger(amount))
      throw new PhraseError(`"${text}": ${amount} ${unit}s is not a whole number of ${unit}s`);
    if (unit === 'day' || unit === 'week') wall += amount * (unit === 'week' ? 7 : 1) * DAY_MS;
    else wall = addMonths(text, wall, amount * (unit === 'year' ? 12 : 1));
    if (wall > LATEST) throw new PhraseError(`"${text}" is beyond the year 9999`);
  }
  if (times.length > 0 || halfDay !== undefined) {
    if (exactMs > 0) throw new PhraseError(`"${text}" has a duration and a time; use only one of them`);
    return { kind: 'instant', at: instantOf(dayOf(wall) + onlyTime(text, parts, dayOf(wall)), zone), zone };
  }
  const at = instantOf(wall, zone) + exactMs;
  const days = ahead.every(({ unit }) => unit === 'day' || unit === 'week' || EXACT_MS[unit] !== undefined);
  const elapsed = ahead.reduce(
    (sum, { amount, unit }) => sum + amount * (EXACT_MS[unit] ?? (unit === 'week' ? 7 : 1) * DAY_MS),
    0,
  );
  // With a clock change in between, a day does not have 24 hours.
  if (days && at - now !== elapsed)
    throw new PhraseError(`the clocks in ${zone} change within "${text}"`, [
      `in ${elapsed / HOUR_MS} hours`,
      formatWall(wallOf(at, zone)),
    ]);
  return { kind: 'instant', at: Math.round(at / SECOND_MS) * SECOND_MS, zone };
}

/** The phrase's single time of day, in milliseconds since midnight. */
function onlyTime(text: string, { times, halfDay }: Parts, day: number): number {
  const [time] = times;
  if (time === undefined) throw noTime(text, halfDay);
  if (times.length > 1) throw new PhraseError(`"${text}" names several times; an alarm that fires once has one time`);
  if (time.as === 'midnight')
    throw new PhraseError('"midnight" can be the beginning or the end of that day', [
      formatWall(day),
      formatWall(day + DAY_MS),
    ]);
  return timeOfDay(time, halfDay);
}

/** The last day of the phrase's month, as a wall time. */
function monthEndOf({ month, monthsAhead }: Extract<Day, { kind: 'month end' }>, now: number, time: number): number {
  const today = new Date(now);
  const lastDay = (year: number, index: number) => Date.UTC(year, index + 1, 0);
  if (month === undefined) return lastDay(today.getUTCFullYear(), today.getUTCMonth() + monthsAhead);
  const coming = lastDay(today.getUTCFullYear(), month - 1);
  return coming + time > now ? coming : lastDay(today.getUTCFullYear() + 1, month - 1);
}

export function onceOf(text: string, parts: Parts, { now, zone }: PhraseContext): Reading {
  const wallNow = wallOf(now, zone);
  const { day, times } = parts;
  if (parts.monthDays.length > 0) {
    const [date] = parts.monthDays as [number];
    const coming = new Date(wallNow);
    // If that day of the current month has passed, the next month.
    const month = coming.getUTCMonth() + (date <= coming.getUTCDate() ? 1 : 0);
    throw new PhraseError(
      `"${text}" has a day without a month; add the month, as in "${MONTHS[month % 12]} ${date}", or use "every month"`,
    );
  }
  if (parts.hours !== undefined) throw new PhraseError(`"${text}" has hours of the day, which need "every hour"`);
  const isMidnightAlone = times.length === 1 && times[0]!.as === 'midnight';
  const isTonight = day === undefined || (day.kind === 'offset' && day.word === 'tonight');
  if (isMidnightAlone && isTonight) return { kind: 'instant', at: instantOf(dayOf(wallNow) + DAY_MS, zone), zone };
  if (day === undefined) {
    const time = onlyTime(text, parts, dayOf(wallNow));
    const today = dayOf(wallNow) + time;
    return { kind: 'instant', at: instantOf(today > wallNow ? today : today + DAY_MS, zone), zone };
  }
  const wallDay = (time: number): number => {
    if (day.kind === 'offset') return dayOf(wallNow) + day.days * DAY_MS;
    if (day.kind === 'date') return dateOf(text, day, wallNow, time);
    if (day.kind === 'month end') return monthEndOf(day, wallNow, time);
    return weekdayOf(text, day, wallNow, time);
  };
  if (times.length === 0) throw noTime(text, parts.halfDay);
  const early = times.length === 1 && times[0]!.as !== 'midnight' ? timeOfDay(times[0]!, parts.halfDay) : 0;
  const wall = wallDay(early) + onlyTime(text, parts, wallDay(early));
  if (wall <= wallNow) {
    const time = wall - dayOf(wall);
    const later =
      day.kind === 'month end'
        ? [formatWall(monthEndOf({ kind: 'month end', monthsAhead: day.monthsAhead + 1 }, wallNow, time) + time)]
        : day.kind === 'offset' && day.days === 0
          ? [formatWall(wall + DAY_MS)]
          : [];
    throw new PhraseError(`"${text}" has passed: it is ${formatWall(wallNow)} in ${zone}`, later);
  }
  return { kind: 'instant', at: instantOf(wall, zone), zone };
}
