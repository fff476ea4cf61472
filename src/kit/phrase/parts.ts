/** The parts of a phrase, before they are combined. */
import { PhraseError } from './reading.ts';
import { calendarDay, type HalfDay, type Time } from './time-of-day.ts';
import { MONTHS, type RepeatUnit, type Unit } from './vocabulary.ts';

export type Day =
  | { readonly kind: 'offset'; readonly days: number; readonly word: string }
  | {
      readonly kind: 'weekday';
      readonly weekday: number;
      readonly week?: 'this' | 'next' | 'coming' | 'next week';
      /** `next week` is its Monday. */
      readonly isAssumed?: true;
    }
  /** `weekday` is the day of the week beside the date. */
  | {
      readonly kind: 'date';
      readonly year?: number;
      readonly month: number;
      readonly day: number;
      readonly weekday?: number;
    }
  /** The last day, or the second Friday, of a month: by its number (1 to 12), or so many months after the current one. */
  | { readonly kind: 'in month'; readonly day: DayOfMonth; readonly month?: number; readonly monthsAhead: number }
  /** The first day of the next month, or of the next year. */
  | { readonly kind: 'next'; readonly unit: 'month' | 'year' }
  /** The last day, or the last Monday to Friday, of the current or the next period, or of a month by its number. */
  | { readonly kind: 'end'; readonly of: Period; readonly ahead: number; readonly month?: number }
  /** The next Monday to Friday. */
  | { readonly kind: 'next weekday' };

export type Period = 'week' | 'month' | 'quarter' | 'year';

/** A position within a month, from its end if negative: of all days, of Mondays to Fridays, or of one weekday. */
export type DayOfMonth = { readonly nth: number; readonly of: 'day' | 'weekday' | number };

/** Whether a day, as a wall time, is one of those. */
export function isDayOf(of: DayOfMonth['of'], wall: number): boolean {
  const weekday = new Date(wall).getUTCDay();
  if (of === 'weekday') return weekday >= 1 && weekday <= 5;
  return of === 'day' || of === weekday;
}

/**
 * The day of a date in digits: `2026-12-24`, `24.12.`, `12/24/2026`; `undefined` for any other word.
 *
 * @throws PhraseError if it can be read in several ways
 */
export function dayInDigits(text: string): Day | undefined {
  const iso = /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})$/.exec(text);
  if (iso) return { kind: 'date', year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3]) };
  const [, one, mark, other = '', year] = /^(\d{1,2})([/.-])(\d{1,2})(?:\2(\d{4}))?\.?$/.exec(text) ?? [];
  if (one === undefined) return undefined;
  const [first, second] = [Number(one), Number(other)];
  const isDay = (month: number, date: number) => calendarDay(2024, month, date) !== undefined;
  const replaces = new RegExp(RegExp.escape(text));
  // `9.30` may be a time or a day; `24.12` and `24.12.` are days.
  const isTime = first < 24 && second < 60 && other.length === 2 && !text.endsWith('.');
  if (mark === '.' && year === undefined && isTime) {
    const days = isDay(second, first) ? [`${MONTHS[second - 1]} ${first}`] : [];
    throw new PhraseError(`"${text}" can be a time or a day`, [`${first}:${other}`, ...days], { replaces });
  }
  const write = (month: number, day: number) => `${MONTHS[month - 1]} ${day}${year === undefined ? '' : ` ${year}`}`;
  if (mark === '-') {
    const orders =
      first === second
        ? [[first, second]]
        : [
            [first, second],
            [second, first],
          ];
    const days = orders.filter(([month, day]) => isDay(month!, day!)).map(([month, day]) => write(month!, day!));
    throw new PhraseError(`"${text}" can be read in several ways`, days, { replaces });
  }
  if (first <= 12 && second <= 12 && first !== second)
    throw new PhraseError(`"${text}" can be two days`, [write(first, second), write(second, first)], { replaces });
  const [month, day] = first > 12 ? [second, first] : [first, second];
  return { kind: 'date', month, day, ...(year === undefined ? {} : { year: Number(year) }) };
}

/** The parts found in a phrase. */
export class Parts {
  day: Day | undefined;
  readonly times: Time[] = [];
  halfDay: HalfDay | undefined;
  /** `in 2 hours and 5 minutes`. */
  ahead: { readonly amount: number; readonly unit: Unit }[] | undefined;
  repeat: { readonly amount: number; readonly unit: RepeatUnit; readonly word: string } | undefined;
  /** Of `three times a day`. */
  perDay: number | undefined;
  readonly weekdays = new Set<number>();
  readonly monthDays: number[] = [];
  /** Of `the last friday of every month`. */
  readonly daysOfMonth: DayOfMonth[] = [];
  /** Whole hours, both included. */
  hours: { readonly from: number; readonly to: number } | undefined;
  /** Of `every hour at :15 and :45`, sorted. */
  minutesPast: readonly number[] = [];
  /** Of `at :00 of the hours 0, 5, 10, 15 and 20`, sorted. */
  hourList: readonly number[] = [];
  /** The last minute of `from 9:00 to 17:45`, if the hours end at another minute than they begin. */
  lastMinute: number | undefined;
  /** Of `from 2026-11-30`: where a series begins, as a wall time. */
  start: { readonly day: number; readonly time: number | undefined } | undefined;
  /** Only in months or years that have the day: `in months that have it`, `in leap years`. */
  only: 'months' | 'leap years' | undefined;
}
