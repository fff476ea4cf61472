/** Formats a cron expression as the phrase that a person would type. Pure. */
import { formatDuration, parseDuration } from '../clock/duration.ts';
import { MONTHS, WEEKDAYS } from './vocabulary.ts';

/** Whether an expression depends on a zone's wall clock. `@every` counts from one fire to the next and has no zone. */
export const usesWallClock = (cron: string): boolean => !/^@every\s/.test(cron.trim());

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
const numbersOf = (field: string) => (/^\d+(?:,\d+)*$/.test(field) ? field.split(',').map(Number) : undefined);

/** The days of a series: `day`, `weekday`, `Monday and Friday`; `undefined` for other patterns. */
function daysOf(day: string, month: string, weekday: string): string | undefined {
  if (day === '*' && month === '*') {
    if (weekday === '*') return 'day';
    if (weekday === '1-5') return 'weekday';
    const days = numbersOf(weekday);
    return days?.every((each) => each <= 7) ? joined(days.map((each) => capital(WEEKDAYS[each % 7]!))) : undefined;
  }
  const dates = numbersOf(day);
  if (weekday !== '*' || dates === undefined) return undefined;
  if (month === '*') return `month on day ${joined(dates.map(String))}`;
  const [name, ...more] = numbersOf(month) ?? [];
  const isQuarterly = month === '1,4,7,10' && dates.length === 1;
  if (isQuarterly) return `quarter on day ${dates[0]}`;
  const isOneDate = more.length === 0 && dates.length === 1 && name !== undefined && name >= 1 && name <= 12;
  return isOneDate ? `year on ${capital(MONTHS[name - 1]!)} ${dates[0]}` : undefined;
}

/** A longer list of times is no help for a reader. */
const MOST_TIMES = 6;

function fieldText(fields: readonly string[]): string | undefined {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields;
  const days = daysOf(day, month, weekday);
  if (fields.length !== 5 || days === undefined) return undefined;
  const on = days === 'day' ? '' : ` on each ${days}`;
  const step = minute === '*' ? '1' : /^\*\/(\d+)$/.exec(minute)?.[1];
  const [, from, to, hourStep] = /^(\d+)-(\d+)(?:\/(\d+))?$/.exec(hour) ?? [];
  if (step !== undefined) {
    const every = step === '1' ? 'every minute' : `every ${step} minutes`;
    if (hour === '*') return `${every}${on}`;
    const [first, last] = from === undefined && /^\d+$/.test(hour) ? [hour, hour] : [from, to];
    if (first === undefined || hourStep !== undefined || 60 % Number(step) !== 0) return undefined;
    return `${every} from ${two(first)}:00 to ${two(last!)}:${two(60 - Number(step))}${on}`;
  }
  const minutes = numbersOf(minute);
  if (minutes === undefined) return undefined;
  if (minutes.length > 1) {
    const times = numbersOf(hour)?.flatMap((each) => minutes.map((past) => `${two(each)}:${two(past)}`));
    return times && times.length <= MOST_TIMES ? `every ${days} at ${joined(times)}` : undefined;
  }
  const hours = (number: string | undefined) => (number === undefined ? 'hour' : `${number} hours`);
  const everyStep = /^\*\/(\d+)$/.exec(hour)?.[1];
  if (hour === '*' || everyStep !== undefined) return `every ${hours(everyStep)} at :${two(minute)}${on}`;
  if (from !== undefined)
    return `every ${hours(hourStep)} from ${two(from)}:${two(minute)} to ${two(to!)}:${two(minute)}${on}`;
  const times = numbersOf(hour);
  return times && `every ${days} at ${joined(times.map((each) => `${two(each)}:${two(minute)}`))}`;
}

/**
 * `every weekday at 09:00`, `every 2 h`, `every month on day 1 at 09:00`.
 *
 * @returns `undefined` for an expression without such a phrase
 */
export function seriesText(cron: string): string | undefined {
  const text = cron.trim();
  if (!usesWallClock(text)) {
    const ms = parseDuration(text.replace(/^@every\s+/, ''));
    const duration = ms === undefined ? '' : formatDuration(ms);
    // The text has only the two largest units of the duration.
    return ms !== undefined && parseDuration(duration.replaceAll(' ', '')) === ms ? `every ${duration}` : undefined;
  }
  return fieldText((DESCRIPTORS[text.toLowerCase()] ?? text).split(/\s+/));
}

/** The short form for a narrow column: `weekdays 09:00`, `daily 09:00`, `Mondays 09:00`. */
export function shortSeriesText(cron: string): string | undefined {
  return seriesText(cron)
    ?.replace(/^every (weekday|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day) at /, '$1s ')
    .replace(/^every day at /, 'daily ')
    .replace(/^every month on day /, 'monthly, day ')
    .replace(/^every hour at /, 'hourly at ');
}
