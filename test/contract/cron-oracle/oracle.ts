/**
 * A slow, simple implementation of "when is this cron expression due?", to check the product's fast one. It iterates
 * over real minutes, reads the wall clock in each, and checks each value separately against its field. It shares no
 * code with the product.
 *
 * The rule from docs/internals/decisions/0002-cron-and-daylight-saving.md: an expression whose minute or hour field starts with `*` is due in
 * every real minute whose reading matches. Any other is due when a matching reading is shown for the first time, and in
 * the first minute after a jump over a matching reading.
 */
import { daysIn, partsOf, type Reading, type WallDays } from './wall-days.ts';

const DAY_MS = 86_400_000;
const HORIZON_DAYS = 50 * 366;

const SHORTHANDS: Record<string, string> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const MONTH_NAMES = ['', 'JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAY_NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

/** An expression as one predicate for each field. */
type Pattern = {
  isRealTime: boolean;
  timeAllowed: (hour: number, minute: number) => boolean;
  dateAllowed: (year: number, month: number, day: number) => boolean;
};

/** Whether one field allows one value. */
function fieldAllows(field: string, value: number, highest: number, lowest: number, names: readonly string[]): boolean {
  const numberOf = (text: string) => {
    const index = names.indexOf(text.toUpperCase());
    return index >= 0 ? index : Number(text);
  };
  return field.split(',').some((entry) => {
    const [range, step] = entry.split('/') as [string, string | undefined];
    const [first, last] = range.split('-') as [string, string | undefined];
    const from = range === '*' ? lowest : numberOf(first);
    let to = from;
    if (range === '*' || (step !== undefined && last === undefined)) to = highest;
    if (last !== undefined) to = numberOf(last);
    return value >= from && value <= to && (value - from) % Number(step ?? 1) === 0;
  });
}

/** The weekday of a date, Sunday 0, after Zeller. */
export function weekdayOf(year: number, month: number, day: number): number {
  const shiftedMonth = month < 3 ? month + 12 : month;
  const shiftedYear = month < 3 ? year - 1 : year;
  const century = Math.floor(shiftedYear / 100);
  const inCentury = shiftedYear % 100;
  const fromSaturday =
    day +
    Math.floor((13 * (shiftedMonth + 1)) / 5) +
    inCentury +
    Math.floor(inCentury / 4) +
    Math.floor(century / 4) +
    5 * century;
  return (fromSaturday + 6) % 7;
}

function patternOf(expression: string): Pattern {
  const [minutes, hours, days, months, weekdays] = (SHORTHANDS[expression] ?? expression).trim().split(/[ \t]+/) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const table = (length: number, allows: (value: number) => boolean) =>
    Array.from({ length }, (_, value) => allows(value));
  const minuteAllowed = table(60, (value) => fieldAllows(minutes, value, 59, 0, []));
  const hourAllowed = table(24, (value) => fieldAllows(hours, value, 23, 0, []));
  const dayAllowed = table(32, (value) => fieldAllows(days, value, 31, 1, []));
  const monthAllowed = table(13, (value) => fieldAllows(months, value, 12, 1, MONTH_NAMES));
  const weekdayAllowed = table(7, (value) =>
    [value, value + 7].some((name) => name < 8 && fieldAllows(weekdays, name, 7, 0, WEEKDAY_NAMES)),
  );
  const daysRestricted = days[0] !== '*' && weekdays[0] !== '*';
  return {
    isRealTime: minutes[0] === '*' || hours[0] === '*',
    timeAllowed: (hour, minute) => hourAllowed[hour]! && minuteAllowed[minute]!,
    dateAllowed(year, month, day) {
      if (!monthAllowed[month]) return false;
      const byDay = dayAllowed[day]!;
      const byWeekday = weekdayAllowed[weekdayOf(year, month, day)]!;
      return daysRestricted ? byDay || byWeekday : byDay && byWeekday;
    },
  };
}

function matches(pattern: Pattern, reading: Reading): boolean {
  const [year, month, day, hour, minute] = partsOf(reading);
  return pattern.timeAllowed(hour, minute) && pattern.dateAllowed(year, month, day);
}

/** Answers questions about one expression in one zone. */
export type Oracle = {
  /** The first instant strictly after `after`; `undefined` when there is none within fifty years. */
  next(after: number): number | undefined;
  /** Every instant in `(after, until]`. */
  between(after: number, until: number): number[];
};

/** An oracle for `expression`, which must be valid, on the wall clock `wall`. */
export function oracleOf(expression: string, wall: WallDays): Oracle {
  const pattern = patternOf(expression);

  /** Every instant of a UTC day at which the expression is due. */
  function dueOn(dayNumber: number): number[] {
    if (!isCandidate(dayNumber)) return [];
    const due: number[] = [];
    for (const { instant, reading, isFirst, skipped } of wall.day(dayNumber)) {
      const isDue = pattern.isRealTime
        ? matches(pattern, reading)
        : (isFirst && matches(pattern, reading)) || skipped.some((jumped) => matches(pattern, jumped));
      if (isDue) due.push(instant);
    }
    return due;
  }

  /** Whether a date that some zone can have during a UTC day (the same one or a neighbour) is allowed. */
  function isCandidate(dayNumber: number): boolean {
    const date = new Date(dayNumber * DAY_MS);
    const year = date.getUTCFullYear();
    const month = date.getUTCMonth() + 1;
    const day = date.getUTCDate();
    if (pattern.dateAllowed(year, month, day)) return true;
    const [yearBefore, monthBefore] = month === 1 ? [year - 1, 12] : [year, month - 1];
    const [yearAfter, monthAfter] = month === 12 ? [year + 1, 1] : [year, month + 1];
    const dayBefore = day > 1;
    const dayAfter = day < daysIn(year, month);
    return (
      (dayBefore
        ? pattern.dateAllowed(year, month, day - 1)
        : pattern.dateAllowed(yearBefore, monthBefore, daysIn(yearBefore, monthBefore))) ||
      (dayAfter ? pattern.dateAllowed(year, month, day + 1) : pattern.dateAllowed(yearAfter, monthAfter, 1))
    );
  }

  return {
    next(after) {
      const today = Math.floor(after / DAY_MS);
      for (let dayNumber = today; dayNumber < today + HORIZON_DAYS; dayNumber++) {
        const found = dueOn(dayNumber).find((instant) => instant > after);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    between(after, until) {
      const due: number[] = [];
      for (let dayNumber = Math.floor(after / DAY_MS); dayNumber <= Math.floor(until / DAY_MS); dayNumber++) {
        due.push(...dueOn(dayNumber).filter((instant) => instant > after && instant <= until));
      }
      return due;
    },
  };
}
