/** The meaning of a phrase that names one instant: `tomorrow 9am`, `in 3 days at 9am`. Pure. */
import { type Day, type DayOfMonth, isDayOf, type Parts } from './parts.ts';
import { DEFAULT_HOURS, type PhraseContext, PhraseError, type PhraseHours, type Reading } from './reading.ts';
import {
  calendarDay,
  clockText,
  DAY_MS,
  dayOf,
  endOfDay,
  formatWall,
  HOUR_MS,
  instantOf,
  MINUTE_MS,
  SECOND_MS,
  type Time,
  timeOfDay,
  usualTime,
  wallOf,
} from './time-of-day.ts';
import { MONTHS, type Unit, WEEKDAYS } from './vocabulary.ts';

const END_OF_DAY: Time = { hour: 0, minute: 0, second: 0, as: 'end of day' };

/** Instants have four-digit years. */
const LATEST = Date.UTC(9999, 11, 31);

const EXACT_MS: Readonly<Partial<Record<Unit, number>>> = { second: SECOND_MS, minute: MINUTE_MS, hour: HOUR_MS };

type DateParts = Extract<Day, { kind: 'date' }>;

/** @throws PhraseError for a day of the week that contradicts its date */
function dateOf(text: string, date: DateParts, now: number, time: number): number {
  const wall = wallOfDate(text, date, now, time);
  const weekday = new Date(wall).getUTCDay();
  if (date.weekday === undefined || date.weekday === weekday) return wall;
  const [is, said] = [weekday, date.weekday].map((each) => capital(WEEKDAYS[each]!));
  throw new PhraseError(`"${text}": ${formatWall(wall).slice(0, 10)} is a ${is}, not a ${said}`, [
    formatWall(wall + time),
  ]);
}

const capital = (word: string) => word[0]!.toUpperCase() + word.slice(1);

function wallOfDate(text: string, { year, month, day }: DateParts, now: number, time: number): number {
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
export function relativeOf(text: string, parts: Parts, { now, zone, hours = DEFAULT_HOURS }: PhraseContext): Reading {
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
    const [time, assumed] = onlyTime(text, parts, dayOf(wall), hours);
    const at = instantOf(dayOf(wall) + time, zone);
    return { kind: 'instant', at, zone, ...(assumed !== undefined && { assumed }) };
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

/** The phrase's time of day, in milliseconds since midnight, and whether the phrase left it open. */
function onlyTime(
  text: string,
  { times, halfDay }: Parts,
  day: number,
  hours: PhraseHours,
): [time: number, assumed?: string] {
  const [time] = times;
  if (time === undefined) {
    const usual = usualTime(halfDay, hours);
    return [timeOfDay(usual, undefined), `at ${clockText(usual)}, because no time was given`];
  }
  if (times.length > 1) throw new PhraseError(`"${text}" names several times; an alarm that fires once has one time`);
  if (time.as === 'end of day') {
    const end = endOfDay(hours, new Date(day).getUTCDay());
    return [timeOfDay(end, undefined), `at ${clockText(end)}, the end of the day`];
  }
  if (time.as === 'midnight')
    throw new PhraseError('"midnight" can be the beginning or the end of that day', [
      formatWall(day),
      formatWall(day + DAY_MS),
    ]);
  return [timeOfDay(time, halfDay)];
}

/** A day of the month that begins at a wall time. */
function dayInMonth({ nth, of }: DayOfMonth, month: Date): number {
  const [year, index] = [month.getUTCFullYear(), month.getUTCMonth()];
  const step = nth < 0 ? -DAY_MS : DAY_MS;
  let day = nth < 0 ? Date.UTC(year, index + 1, 0) : Date.UTC(year, index, 1);
  for (let left = Math.abs(nth); ; day += step) {
    if (isDayOf(of, day)) left--;
    if (left === 0) return day;
  }
}

const firstOfMonth = (year: number, index: number) => new Date(Date.UTC(year, index, 1));

/** The days that can be the end of a period, as wall times: its last Monday to Friday, and its last day. */
function endsOf({ of, ahead, month }: Extract<Day, { kind: 'end' }>, now: number): number[] {
  const today = new Date(now);
  if (of === 'week') {
    const monday = dayOf(now) + (ahead * 7 - ((today.getUTCDay() + 6) % 7)) * DAY_MS;
    return [monday + 4 * DAY_MS, monday + 6 * DAY_MS];
  }
  const length = { month: 1, quarter: 3, year: 12 }[of];
  const begin = month === undefined ? Math.floor(today.getUTCMonth() / length) * length : month - 1;
  const isPast = begin < today.getUTCMonth();
  const last =
    month === undefined
      ? firstOfMonth(today.getUTCFullYear(), begin + (ahead + 1) * length - 1)
      : firstOfMonth(today.getUTCFullYear() + ahead + (isPast ? 1 : 0), begin);
  const day = (kind: DayOfMonth['of']) => dayInMonth({ nth: -1, of: kind }, last);
  return [...new Set([day('weekday'), day('day')])];
}

/** `end of month`: refused when both its last day and its last Monday to Friday are in the future. */
function endOf(
  text: string,
  day: Extract<Day, { kind: 'end' }>,
  now: number,
  timeOn: (day: number) => [time: number, assumed?: string],
): readonly [wall: number, assumed: string | undefined] {
  const timesAt = (ahead: number) =>
    endsOf({ ...day, ahead }, now).map((end) => {
      const [time, assumed] = timeOn(end);
      return [end + time, assumed] as const;
    });
  const found = timesAt(day.ahead).filter(([wall]) => wall > now);
  // On a Saturday, the end of the week can be that of the next one.
  const [only, other = day.of === 'week' ? timesAt(day.ahead + 1)[0] : undefined] = found;
  if (only !== undefined && other === undefined) return only;
  if (only === undefined)
    throw new PhraseError(
      `"${text}" has passed: it is ${formatWall(now)}`,
      timesAt(day.ahead + 1).map(([wall]) => formatWall(wall)),
    );
  throw new PhraseError(
    `"${text}" can be the last day of the ${day.of} or its last weekday`,
    [only, other!].map(([wall]) => formatWall(wall)),
  );
}

/** A day of the phrase's month, as a wall time. */
function monthDayOf(
  { day, month, monthsAhead }: Extract<Day, { kind: 'in month' }>,
  now: number,
  time: number,
): number {
  const today = new Date(now);
  if (month === undefined)
    return dayInMonth(day, firstOfMonth(today.getUTCFullYear(), today.getUTCMonth() + monthsAhead));
  const coming = dayInMonth(day, firstOfMonth(today.getUTCFullYear(), month - 1));
  return coming + time > now ? coming : dayInMonth(day, firstOfMonth(today.getUTCFullYear() + 1, month - 1));
}

function nextWeekday(now: number): number {
  let day = dayOf(now) + DAY_MS;
  while (!isDayOf('weekday', day)) day += DAY_MS;
  return day;
}

/** The day of a phrase, as a wall time. @param time its time of day, by which a day in the past is recognised */
function wallDay(text: string, day: Exclude<Day, { kind: 'end' }>, now: number, time: number): number {
  switch (day.kind) {
    case 'offset':
      return dayOf(now) + day.days * DAY_MS;
    case 'date':
      return dateOf(text, day, now, time);
    case 'in month':
      return monthDayOf(day, now, time);
    case 'weekday':
      return weekdayOf(text, day, now, time);
    case 'next weekday':
      return nextWeekday(now);
    case 'next': {
      const today = new Date(now);
      const [year, month] = [today.getUTCFullYear(), today.getUTCMonth()];
      return day.unit === 'year' ? Date.UTC(year + 1, 0, 1) : Date.UTC(year, month + 1, 1);
    }
  }
}

/** What a phrase left open: `on Monday at 09:00, because no day or time was given`. */
function assumedOf(day: Day | undefined, wall: number, assumed: string | undefined): string | undefined {
  const named =
    day?.kind === 'next'
      ? `on the 1st`
      : day?.kind === 'weekday' && day.isAssumed
        ? `on ${capital(WEEKDAYS[new Date(wall).getUTCDay()]!)}`
        : undefined;
  if (named === undefined) return assumed;
  if (assumed === undefined || !assumed.endsWith('no time was given')) return `${named}, because no day was given`;
  return `${named} ${assumed.replace('no time', 'no day or time')}`;
}

/** The next day of a month with a number, and on a day of the week if one is given: `november 13 2026`. */
function monthOfDay(date: number, weekday: number | undefined, now: number): string {
  const today = new Date(now);
  for (let ahead = 0; ; ahead++) {
    const month = (today.getUTCMonth() + ahead) % 12;
    const year = today.getUTCFullYear() + Math.floor((today.getUTCMonth() + ahead) / 12);
    const wall = calendarDay(year, month + 1, date);
    const isOther = weekday !== undefined && wall !== undefined && new Date(wall).getUTCDay() !== weekday;
    if (wall === undefined || wall <= now || isOther) continue;
    return `${MONTHS[month]} ${date}${weekday === undefined ? '' : ` ${year}`}`;
  }
}

export function onceOf(text: string, parts: Parts, { now, zone, hours = DEFAULT_HOURS }: PhraseContext): Reading {
  const wallNow = wallOf(now, zone);
  const { times } = parts;
  const isEndOfDay = times.length === 1 && times[0]!.as === 'end of day';
  // `end of day` is that of today, and not of tomorrow when it has passed.
  const day = parts.day ?? (isEndOfDay ? ({ kind: 'offset', days: 0, word: 'today' } as const) : undefined);
  if (parts.monthDays.length > 0) {
    const [date, ...others] = parts.monthDays as [number, ...number[]];
    if (others.length > 0) throw new PhraseError(`"${text}" names several days; set an alarm for each`);
    const weekday = day?.kind === 'weekday' ? day.weekday : undefined;
    const every = date > 28 || day !== undefined ? [] : [`every month on day ${date}`];
    throw new PhraseError(`"${text}" has a day without a month`, [monthOfDay(date, weekday, wallNow), ...every], {
      replaces: new RegExp(`(?:on )?(?:the )?(?:day ?${date}|${date} ?(?:st|nd|rd|th)|first of)\\b(?: of)?`, 'i'),
    });
  }
  if (parts.start !== undefined || parts.only !== undefined)
    throw new PhraseError(`"${text}" does not have a frequency`, ['every day at 9:00']);
  if (parts.hours !== undefined) throw new PhraseError(`"${text}" has hours of the day, which need "every hour"`);
  const isMidnightAlone = times.length === 1 && times[0]!.as === 'midnight';
  const isTonight = day === undefined || (day.kind === 'offset' && day.word === 'tonight');
  if (isMidnightAlone && isTonight) return { kind: 'instant', at: instantOf(dayOf(wallNow) + DAY_MS, zone), zone };
  const instant = (wall: number, assumed: string | undefined): Reading => ({
    ...{ kind: 'instant', at: instantOf(wall, zone), zone },
    ...(assumed !== undefined && { assumed }),
  });
  if (day?.kind === 'end') {
    if (times.length === 0 && parts.halfDay === undefined) times.push(END_OF_DAY);
    return instant(...endOf(text, day, wallNow, (end) => onlyTime(text, parts, end, hours)));
  }
  if (day === undefined) {
    const [time, assumed] = onlyTime(text, parts, dayOf(wallNow), hours);
    const today = dayOf(wallNow) + time;
    return instant(today > wallNow ? today : today + DAY_MS, assumed);
  }
  const early = isMidnightAlone ? 0 : onlyTime(text, parts, dayOf(wallNow), hours)[0];
  const found = wallDay(text, day, wallNow, early);
  const [time, assumed] = onlyTime(text, parts, found, hours);
  const wall = found + time;
  if (wall <= wallNow) {
    const later =
      day.kind === 'in month'
        ? [formatWall(monthDayOf({ ...day, monthsAhead: day.monthsAhead + 1 }, wallNow, time) + time)]
        : day.kind === 'offset' && day.days === 0
          ? [formatWall(wall + DAY_MS)]
          : [];
    throw new PhraseError(`"${text}" has passed: it is ${formatWall(wallNow)} in ${zone}`, later);
  }
  return instant(wall, assumedOf(day, wall, assumed));
}
