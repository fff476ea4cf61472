/**
 * The days that a recurrence rule allows, month by month, on a calendar without zones. A day is its number since 1
 * January 1970, a month is `year · 12 + month` with January 0, and the days of a month are a bit mask: day d is bit
 * d − 1.
 */
import type { Rule, Weekday } from '../../kit/recurrence/recurrence.ts';
import { HORIZON_YEARS } from './calendar.ts';

const DAYS_BEFORE = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334] as const;
const LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;
const HORIZON_MONTHS = HORIZON_YEARS * 12;
const DAY_MS = 86_400_000;

const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);

/** The first day of a month. */
function firstDayOf(month: number): number {
  const year = Math.floor(month / 12);
  const inYear = month - year * 12;
  // Leap days up to the end of February belong to the year before.
  const leaps = inYear < 2 ? year - 1 : year;
  const leapDays = Math.floor(leaps / 4) - Math.floor(leaps / 100) + Math.floor(leaps / 400) - 477;
  return (year - 1970) * 365 + leapDays + DAYS_BEFORE[inYear]!;
}

function lengthOf(month: number): number {
  const year = Math.floor(month / 12);
  const inYear = month - year * 12;
  return inYear === 1 && isLeap(year) ? 29 : LENGTHS[inYear]!;
}

export function monthOf(day: number): number {
  const date = new Date(day * DAY_MS);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** The weekday of a day, Monday 0. The first of January 1970 was a Thursday. */
export const weekdayOf = (day: number): number => (((day + 3) % 7) + 7) % 7;

/** The number of weeks since 1970, with weeks that begin on `weekStart`. */
const weekOf = (day: number, weekStart: number) => Math.floor((day + 3 - weekStart) / 7);

const full = (length: number) => 2 ** length - 1;

function countBits(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** The first number of at least `from` that is `offset` plus a multiple of `step`. */
export const alignedFrom = (from: number, offset: number, step: number): number =>
  offset + Math.ceil((from - offset) / step) * step;

/** The days of a rule. */
export type RuleDays = {
  /** The first allowed day of at least `day`; `undefined` when there is none within 48 years. */
  next(day: number): number | undefined;
  /** The number of allowed days in `[from, to)`. */
  count(from: number, to: number): number;
  /**
   * The days of the nth period after the one of the first day, by the rule's interval. For periods of a week or more.
   */
  inPeriod(index: number): number[];
  /** The first day of that period. */
  startOf(index: number): number;
  /** The period that contains a day; between two periods, the later one. */
  periodAt(day: number): number;
  /** Every day is allowed. */
  readonly isEvery: boolean;
  /** Months that the last call of `next` has looked at: its work. */
  readonly looked: number;
};

/** The mask of a list of days of a month, which counts from the end for negative values. */
function maskOfMonthDays(days: readonly number[], length: number): number {
  let mask = 0;
  for (const day of days) {
    const index = day > 0 ? day - 1 : length + day;
    if (index >= 0 && index < length) mask |= 1 << index;
  }
  return mask;
}

/** Calls `mark` with the offset of each of `length` days from `first` on that is one of the weekdays. */
function markWeekdays(
  weekdays: readonly Weekday[],
  first: number,
  length: number,
  mark: (offset: number) => void,
): void {
  for (const { weekday, nth } of weekdays) {
    const earliest = (weekday - weekdayOf(first) + 7) % 7;
    if (nth === 0) for (let offset = earliest; offset < length; offset += 7) mark(offset);
    const latest = earliest + Math.floor((length - 1 - earliest) / 7) * 7;
    const offset = nth > 0 ? earliest + (nth - 1) * 7 : latest + (nth + 1) * 7;
    if (nth !== 0 && offset >= 0 && offset < length) mark(offset);
  }
}

/** The first day of week 1: the first week with at least four days in the year. */
function firstWeekOf(year: number, weekStart: number): number {
  const fourth = firstDayOf(year * 12) + 3;
  return fourth - ((weekdayOf(fourth) - weekStart + 7) % 7);
}

/**
 * Compiles the parts of a rule that concern days. Parts that the rule needs and omits come from its first day: the
 * weekday of a weekly rule, the day of a monthly one.
 */
export function ruleDays(rule: Rule, firstDay: number): RuleDays {
  const { frequency, interval, weekStart } = rule;
  const firstMonth = monthOf(firstDay);
  const firstYear = Math.floor(firstMonth / 12);
  const hasDays = rule.byDay !== undefined || rule.byMonthDay !== undefined || rule.byYearDay !== undefined;
  const sameWeekday = [{ weekday: weekdayOf(firstDay), nth: 0 }];
  const sameDate = [firstDay - firstDayOf(firstMonth) + 1];
  const isByDate = !hasDays && (frequency === 'MONTHLY' || (frequency === 'YEARLY' && rule.byWeekNo === undefined));
  const isByWeekday = !hasDays && (frequency === 'WEEKLY' || (frequency === 'YEARLY' && rule.byWeekNo !== undefined));
  const monthDays = isByDate ? sameDate : rule.byMonthDay;
  const weekdays = isByWeekday ? sameWeekday : rule.byDay;
  const months = rule.byMonth ?? (isByDate && frequency === 'YEARLY' ? [(firstMonth % 12) + 1] : undefined);
  const monthMask = months?.reduce((mask, month) => mask | (1 << (month - 1)), 0) ?? full(12);
  // In a year without BYMONTH, 2MO is the second Monday of the year.
  const isNthOfYear = frequency === 'YEARLY' && rule.byMonth === undefined && weekdays?.some(({ nth }) => nth !== 0);
  const isYearly = isNthOfYear || rule.byYearDay !== undefined || rule.byWeekNo !== undefined;
  const monthDayMasks = monthDays && [28, 29, 30, 31].map((length) => maskOfMonthDays(monthDays, length));
  /** By the weekday of the first of the month and its length. */
  const weekdayMasks: (number | undefined)[] = [];
  const yearMasks = new Map<number, Int32Array>();

  function weekdayMask(first: number, length: number): number {
    const key = weekdayOf(first) * 4 + length - 28;
    let mask = weekdayMasks[key];
    if (mask === undefined) {
      let marked = 0;
      markWeekdays(weekdays!, first, length, (offset) => {
        marked |= 1 << offset;
      });
      mask = marked;
      weekdayMasks[key] = mask;
    }
    return mask;
  }

  /** The days of a year that the parts for a whole year allow, a mask for each month. */
  function yearMask(year: number): Int32Array {
    const known = yearMasks.get(year);
    if (known) return known;
    const first = firstDayOf(year * 12);
    const length = isLeap(year) ? 366 : 365;
    const allowed = new Uint8Array(length).fill(1);
    const keep = (marked: Uint8Array) => {
      for (let offset = 0; offset < length; offset++) allowed[offset]! &= marked[offset]!;
    };
    if (rule.byYearDay) {
      const marked = new Uint8Array(length);
      for (const day of rule.byYearDay) marked[day > 0 ? day - 1 : length + day] = 1;
      keep(marked);
    }
    if (isNthOfYear) {
      const marked = new Uint8Array(length);
      markWeekdays(weekdays!, first, length, (offset) => {
        marked[offset] = 1;
      });
      keep(marked);
    }
    if (rule.byWeekNo) {
      const marked = new Uint8Array(length);
      // The first and last days of a year may be in a week of a neighbouring one.
      for (const weekYear of [year - 1, year, year + 1]) {
        const firstWeek = firstWeekOf(weekYear, weekStart);
        const weeks = (firstWeekOf(weekYear + 1, weekStart) - firstWeek) / 7;
        for (const number of rule.byWeekNo) {
          const index = number > 0 ? number - 1 : weeks + number;
          if (index < 0 || index >= weeks) continue;
          const begin = firstWeek + index * 7 - first;
          for (let offset = Math.max(0, begin); offset < Math.min(length, begin + 7); offset++) marked[offset] = 1;
        }
      }
      keep(marked);
    }
    const masks = new Int32Array(12);
    for (let month = 0; month < 12; month++) {
      const begin = firstDayOf(year * 12 + month) - first;
      for (let day = lengthOf(year * 12 + month) - 1; day >= 0; day--) masks[month]! |= allowed[begin + day]! << day;
    }
    if (yearMasks.size >= HORIZON_YEARS) yearMasks.delete(yearMasks.keys().next().value!);
    yearMasks.set(year, masks);
    return masks;
  }

  /** The days of a month, whatever the interval. */
  function allowedIn(month: number): number {
    const year = Math.floor(month / 12);
    if ((monthMask & (1 << (month - year * 12))) === 0) return 0;
    const length = lengthOf(month);
    let mask = monthDayMasks ? monthDayMasks[length - 28]! : full(length);
    if (mask !== 0 && weekdays && !isNthOfYear) mask &= weekdayMask(firstDayOf(month), length);
    if (mask !== 0 && isYearly) mask &= yearMask(year)[month - year * 12]!;
    return mask;
  }

  /** The days of a month in the periods that the interval selects. */
  function daysIn(month: number): number {
    if (interval === 1) return allowedIn(month);
    if (frequency === 'YEARLY') return (Math.floor(month / 12) - firstYear) % interval === 0 ? allowedIn(month) : 0;
    if (frequency === 'MONTHLY') return (month - firstMonth) % interval === 0 ? allowedIn(month) : 0;
    const mask = allowedIn(month);
    if (mask === 0 || (frequency !== 'WEEKLY' && frequency !== 'DAILY')) return mask;
    const first = firstDayOf(month);
    const end = first + lengthOf(month);
    let selected = 0;
    if (frequency === 'DAILY') {
      for (let day = alignedFrom(first, firstDay, interval); day < end; day += interval) selected |= 1 << (day - first);
      return mask & selected;
    }
    const week = alignedFrom(weekOf(first, weekStart), weekOf(firstDay, weekStart), interval);
    for (let begin = week * 7 - 3 + weekStart; begin < end; begin += interval * 7) {
      for (let day = Math.max(first, begin); day < Math.min(end, begin + 7); day++) selected |= 1 << (day - first);
    }
    return mask & selected;
  }

  /** The month to look at after one: months that the interval skips are not visited. */
  function monthAfter(month: number): number {
    if (frequency === 'MONTHLY') return alignedFrom(month + 1, firstMonth, interval);
    if (frequency !== 'YEARLY' || interval === 1) return month + 1;
    return Math.max(month + 1, alignedFrom(Math.floor((month + 1) / 12), firstYear, interval) * 12);
  }

  /** The month of the latest question and its days: most questions are about one month. */
  let recent = { month: Number.NaN, first: 0, end: 0, mask: 0 };
  function look(day: number) {
    if (day >= recent.first && day < recent.end) return recent;
    const month = monthOf(day);
    const first = firstDayOf(month);
    recent = { month, first, end: first + lengthOf(month), mask: daysIn(month) };
    return recent;
  }

  function startOf(index: number): number {
    if (frequency === 'MONTHLY') return firstDayOf(firstMonth + index * interval);
    if (frequency === 'YEARLY') return firstDayOf((firstYear + index * interval) * 12);
    return (weekOf(firstDay, weekStart) + index * interval) * 7 - 3 + weekStart;
  }

  let looked = 0;
  const inMonth = (month: number, into: number[]) => {
    const first = firstDayOf(month);
    for (let mask = allowedIn(month); mask !== 0; mask &= mask - 1) into.push(first + 31 - Math.clz32(mask & -mask));
  };
  return {
    next(day) {
      looked = 0;
      const { month, first, mask } = look(day);
      let days = mask & (-1 << (day - first));
      for (let at = month; ; days = daysIn(at)) {
        if (days !== 0) return firstDayOf(at) + 31 - Math.clz32(days & -days);
        at = monthAfter(at);
        looked++;
        if (at > month + HORIZON_MONTHS) return undefined;
      }
    },
    count(from, to) {
      if (from >= to) return 0;
      const begin = look(from);
      const before = countBits(begin.mask & ~(-1 << (from - begin.first)));
      const { month: last, first, mask } = look(to);
      let count = countBits(mask & ~(-1 << (to - first))) - before;
      for (let month = begin.month; month < last; month = monthAfter(month)) count += countBits(daysIn(month));
      return count;
    },
    inPeriod(index) {
      const days: number[] = [];
      const step = index * interval;
      if (frequency === 'MONTHLY') inMonth(firstMonth + step, days);
      else if (frequency === 'YEARLY') {
        for (let month = 0; month < 12; month++) inMonth((firstYear + step) * 12 + month, days);
      } else {
        const begin = startOf(index);
        for (let day = begin; day < begin + 7; day++) {
          const month = monthOf(day);
          if ((allowedIn(month) & (1 << (day - firstDayOf(month)))) !== 0) days.push(day);
        }
      }
      return days;
    },
    startOf,
    periodAt(day) {
      const period =
        frequency === 'MONTHLY'
          ? monthOf(day) - firstMonth
          : frequency === 'YEARLY'
            ? Math.floor(monthOf(day) / 12) - firstYear
            : weekOf(day, weekStart) - weekOf(firstDay, weekStart);
      return Math.max(0, Math.ceil(period / interval));
    },
    isEvery: monthMask === full(12) && !monthDays && !weekdays && !isYearly,
    get looked() {
      return looked;
    },
  };
}
