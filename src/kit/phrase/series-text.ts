/**
 * Formats a series in words that are true of each of its instants, in the grammar of phrases where it has words for it.
 * Pure.
 */
import { parseDuration } from '../clock/duration.ts';
import { recurrenceText, SHORTEST_MONTHS } from '../recurrence/recurrence-text.ts';
import type { Repetition } from './reading.ts';
import { MONTHS, WEEKDAYS } from './vocabulary.ts';

/** Whether an expression depends on a zone's wall clock. `@every` counts from one fire to the next and has no zone. */
export const usesWallClock = (cron: string): boolean => !/^@every\s/i.test(cron.trim());

const DESCRIPTORS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const capital = (word: string) => word[0]!.toUpperCase() + word.slice(1);
const two = (text: string | number) => String(text).padStart(2, '0');
const joined = (parts: readonly string[]) =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;

/** The values that a field of cron allows, sorted. */
type Field = {
  readonly values: readonly number[];
  readonly isAll: boolean;
  /** It begins with `*`: by cron's rules, the series then follows real time, or the other field of days. */
  readonly isStar: boolean;
  /** Written with a range or a step. */
  readonly isSpan: boolean;
};

const FIELDS = [
  { least: 0, most: 59, size: 60, names: [] },
  { least: 0, most: 23, size: 24, names: [] },
  { least: 1, most: 31, size: 31, names: [] },
  { least: 1, most: 12, size: 12, names: MONTHS },
  { least: 0, most: 7, size: 7, names: WEEKDAYS },
] as const;

/** @returns `undefined` for a field that is not valid */
function fieldOf(text: string, { least, most, size, names }: (typeof FIELDS)[number]): Field | undefined {
  const numberOf = (word: string) => {
    const name = names.findIndex((each) => each.slice(0, 3) === word.toLowerCase());
    return name >= 0 ? least + name : /^\d+$/.test(word) ? Number(word) : Number.NaN;
  };
  const values = new Set<number>();
  for (const entry of text.split(',')) {
    const [, from, to, every] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(entry) ?? [];
    if (from === undefined || (from === '*' && to !== undefined) || every === '0') return undefined;
    const first = from === '*' ? least : numberOf(from);
    const last = to !== undefined ? numberOf(to) : from === '*' || every !== undefined ? most : first;
    if (!(first >= least && first <= last && last <= most)) return undefined;
    for (let value = first; value <= last; value += Number(every ?? 1)) values.add(size === 7 ? value % 7 : value);
  }
  const sorted = [...values].sort((one, other) => one - other);
  return { values: sorted, isAll: sorted.length === size, isStar: text.startsWith('*'), isSpan: /[-/]/.test(text) };
}

/** The days of a series: `day`, `weekday`, `Monday and Friday`, and which months have them. */
type Days = { readonly each: string; readonly isOfWeek: boolean; readonly only?: string };

/** @returns `undefined` for other patterns */
function daysOf(day: Field, month: Field, weekday: Field): Days | undefined {
  const isEither = !day.isStar && !weekday.isStar;
  const isDaily = isEither ? day.isAll || weekday.isAll : day.isAll && weekday.isAll;
  if (month.isAll && isDaily) return { each: 'day', isOfWeek: true };
  if (isDaily || isEither) return undefined;
  if (month.isAll && day.isAll) {
    const names = [1, 2, 3, 4, 5, 6, 0].filter((each) => weekday.values.includes(each));
    const isMondayToFriday = names.join() === '1,2,3,4,5';
    return {
      each: isMondayToFriday ? 'weekday' : joined(names.map((each) => capital(WEEKDAYS[each]!))),
      isOfWeek: true,
    };
  }
  if (!weekday.isAll || day.values.length > MOST_TIMES) return undefined;
  const dates = joined(day.values.map(String));
  const shortest = Math.min(...month.values.map((each) => SHORTEST_MONTHS[each - 1]!));
  const skips = Math.max(...day.values) > shortest;
  const only = skips ? ` in months that have ${day.values.length === 1 ? 'it' : 'them'}` : '';
  if (month.isAll) return { each: `month on day ${dates}`, isOfWeek: false, only };
  if (day.values.length !== 1) return undefined;
  if (month.values.join() === '1,4,7,10') return { each: `quarter on day ${dates}`, isOfWeek: false, only };
  if (month.values.length !== 1) return undefined;
  const each = `year on ${capital(MONTHS[month.values[0]! - 1]!)} ${dates}`;
  return { each, isOfWeek: false, only: skips ? ' in leap years' : '' };
}

/** Longer lists of times, and of minutes of each hour, are no help for a reader. */
const MOST_TIMES = 6;
const MOST_MINUTES = 10;

/** The distance of numbers that have only one; `undefined` for others. */
function stepOf(numbers: readonly number[]): number | undefined {
  const step = numbers[1]! - numbers[0]!;
  return numbers.every((number, at) => at === 0 || number - numbers[at - 1]! === step) ? step : undefined;
}

const everyText = (step: number, unit: string) => (step === 1 ? `every ${unit}` : `every ${step} ${unit}s`);

function fieldText(fields: readonly string[]): string | undefined {
  const [minute, hour, day, month, weekday] = FIELDS.map((field, at) => fieldOf(fields[at] ?? '', field));
  if (fields.length !== FIELDS.length || !minute || !hour || !day || !month || !weekday) return undefined;
  const days = daysOf(day, month, weekday);
  if (days === undefined) return undefined;
  const { each, isOfWeek, only = '' } = days;
  // Words about hours and minutes have days of the week only.
  const on = each === 'day' ? '' : isOfWeek ? ` on each ${each}` : undefined;
  const [minutes, hours] = [minute.values, hour.values];
  const [first, last] = [hours[0]!, hours.at(-1)!];
  const past = (at: number) => `:${two(at)}`;
  const isRealTime = minute.isStar || hour.isStar;
  const minuteStep = minute.isAll ? 1 : stepOf(minutes);
  const hourStep = stepOf(hours);
  /** The minutes repeat over the end of the hour, too. */
  const isEven = minuteStep !== undefined && minutes.length === 60 / minuteStep;
  if (isRealTime && hour.isAll) {
    if (on === undefined) return undefined;
    if (minute.isAll) return `every minute${on}`;
    if (isEven && minutes.length > 1) return `${everyText(minuteStep, 'minute')} from ${past(minutes[0]!)}${on}`;
    return minutes.length > MOST_MINUTES ? undefined : `every hour at ${joined(minutes.map(past))}${on}`;
  }
  if (isRealTime) {
    if (on === undefined) return undefined;
    const isHourRange = hours.length === 1 || hourStep === 1;
    if (minute.isStar && !hour.isStar && isHourRange && isEven && minutes[0] === 0 && minutes.length > 1)
      return `${everyText(minuteStep, 'minute')} from ${two(first)}:00 to ${two(last)}:${two(minutes.at(-1)!)}${on}`;
    if (minute.isStar || first !== 0 || hours.length < 2 || hourStep === undefined || last + hourStep < 24)
      return undefined;
    if (minutes.length > MOST_MINUTES) return undefined;
    const at = `at ${joined(minutes.map(past))}`;
    if (24 % hourStep === 0) return `${everyText(hourStep, 'hour')} ${at}${on}`;
    return `${at} of the hours ${joined(hours.map(String))}${on}`;
  }
  const times = hours.flatMap((of) => minutes.map((at) => `${two(of)}:${two(at)}`));
  const isSpan = minutes.length === 1 && hours.length > 1 && hourStep !== undefined && on !== undefined;
  if (times.length <= MOST_TIMES && !(isSpan && hour.isSpan)) return `every ${each} at ${joined(times)}${only}`;
  return isSpan ? `${everyText(hourStep, 'hour')} from ${times[0]} to ${times.at(-1)}${on}` : undefined;
}

/** `2 h`, `1 h 30 min`, `100 h`: whole, and in units that are as long on each day. */
export function exactDuration(ms: number): string {
  const [seconds, minutes, hours] = [
    Math.floor(ms / 1000) % 60,
    Math.floor(ms / 60_000) % 60,
    Math.floor(ms / 3_600_000),
  ];
  const parts = [hours > 0 && `${hours} h`, minutes > 0 && `${minutes} min`, seconds > 0 && `${seconds} s`];
  return parts.filter((part) => part !== false).join(' ');
}

/** `every weekday at 09:00`, `every 1 h 30 min`; `undefined` for an expression without such words. */
function cronText(cron: string): string | undefined {
  const text = cron.trim();
  if (usesWallClock(text)) return fieldText((DESCRIPTORS[text.toLowerCase()] ?? text).split(/\s+/));
  const ms = parseDuration(text.replace(/^@every\s+/i, ''));
  return ms === undefined || ms % 1000 !== 0 || ms === 0 ? undefined : `every ${exactDuration(ms)}`;
}

/**
 * `every weekday at 09:00`, `every 2 weeks on Monday at 10:00 from 2026-11-30`.
 *
 * @returns `undefined` for a series without such words
 */
export const seriesText = ({ cron, rrule }: Repetition): string | undefined =>
  rrule === undefined ? cronText(cron) : recurrenceText(rrule);
