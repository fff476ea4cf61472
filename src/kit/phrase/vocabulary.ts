/** The vocabulary of phrases. */
import type { HalfDay } from './time-of-day.ts';

export const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const;
/** Names for groups of days of the week. */
export const DAY_GROUPS: Readonly<Record<string, readonly number[]>> = {
  weekday: [1, 2, 3, 4, 5],
  workday: [1, 2, 3, 4, 5],
  weekend: [6, 0],
};
/** Positions in a month; the last one is -1. */
export const ORDINALS: Readonly<Record<string, number>> = { first: 1, second: 2, third: 3, fourth: 4, last: -1 };
/** Times that differ each day, with a fixed time to use instead. */
export const SUN_WORDS: Readonly<Record<string, string>> = {
  ...{ sunset: '18:00', sundown: '18:00', dusk: '18:00', sunrise: '7:00', dawn: '7:00' },
};
export const MONTHS = [
  ...['january', 'february', 'march', 'april', 'may', 'june'],
  ...['july', 'august', 'september', 'october', 'november', 'december'],
] as const;
export const NUMBERS: Readonly<Record<string, number>> = {
  ...{ a: 1, an: 1, one: 1, two: 2, three: 3, four: 4, five: 5, six: 6, seven: 7, eight: 8, nine: 9, ten: 10 },
  ...{ eleven: 11, twelve: 12, fifteen: 15, twenty: 20, thirty: 30, forty: 40, fifty: 50, ninety: 90 },
};
export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';
/** Units of a frequency. A quarter begins in January, April, July or October. */
export type RepeatUnit = Unit | 'quarter';
export const UNITS: Readonly<Record<string, Unit>> = {
  ...{ s: 'second', sec: 'second', secs: 'second', second: 'second', seconds: 'second' },
  ...{ m: 'minute', min: 'minute', mins: 'minute', minute: 'minute', minutes: 'minute' },
  ...{ h: 'hour', hr: 'hour', hrs: 'hour', hour: 'hour', hours: 'hour' },
  ...{ d: 'day', day: 'day', days: 'day', w: 'week', week: 'week', weeks: 'week' },
  ...{ month: 'month', months: 'month', year: 'year', years: 'year' },
};
export const HALF_DAYS: Readonly<Record<string, HalfDay>> = {
  ...{ morning: 'morning', afternoon: 'afternoon', evening: 'evening', night: 'night' },
};
export const FREQUENCIES: Readonly<Record<string, RepeatUnit>> = {
  ...{
    hourly: 'hour',
    daily: 'day',
    weekly: 'week',
    monthly: 'month',
    quarterly: 'quarter',
    yearly: 'year',
    annually: 'year',
  },
};

const byPrefix = (names: readonly string[], least: number) => {
  const found = new Map<string, number>();
  names.forEach((name, index) => {
    for (let length = least; length <= name.length; length++) {
      // `mar` and `may`, `jun` and `jul`, `thu` and `tue` differ in three letters; `sept` and `thurs` are prefixes.
      found.set(name.slice(0, length), index);
    }
  });
  return found;
};
export const WEEKDAY_WORDS = byPrefix(WEEKDAYS, 3);
export const MONTH_WORDS = byPrefix(MONTHS, 3);

/** Words that are compared with a possible typing error. */
export const KNOWN_WORDS = [
  ...[...WEEKDAYS, ...MONTHS, ...Object.keys(NUMBERS), ...Object.keys(UNITS).filter((word) => word.length > 3)],
  ...[...Object.keys(HALF_DAYS), ...Object.keys(FREQUENCIES), 'weekday', 'weekdays', 'weekend', 'weekends'],
  ...['today', 'tonight', 'tomorrow', 'every', 'noon', 'midnight', 'next', 'coming', 'half', 'other', 'between'],
  ...['quarter', 'twice', 'first', 'last', 'weekly', 'until'],
];

/** Words with two meanings. */
export const TWICE_OR_EVERY_OTHER: Readonly<Record<string, 'week' | 'month'>> = {
  ...{ biweekly: 'week', bimonthly: 'month' },
};
/** Words of what other fields of an alarm say, with the remedy. */
export const OTHER_FIELDS: Readonly<Record<string, string>> = {
  'except excluding without but':
    'name the days that remain, as in "every monday to thursday at 9:00"; for holidays set holidays to a calendar',
  'until till for times': 'the end of a series is ends_at (--until) or max_fires (--times)',
};

/** Zone abbreviations that several zones share, or that change with the season. */
export const ABBREVIATIONS = new Set(
  'est edt cst cdt mst mdt pst pdt cet cest eet eest wet west bst ist jst kst msk aest aedt nzst nzdt sgt hkt et ct mt pt'.split(
    ' ',
  ),
);
