/** Calendar events and time spans of systemd.time(7), read as the time of an alarm. Pure. */
import { isZone } from '../../kit/clock/zone.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { badJob, type JobTime } from './job.ts';
import { type TimeSets, timeOf, timeWithin } from './times.ts';

const SHORTHANDS: Readonly<Record<string, string>> = {
  minutely: '*-*-* *:*:00',
  hourly: '*-*-* *:00:00',
  daily: '*-*-* 00:00:00',
  weekly: 'Mon *-*-* 00:00:00',
  monthly: '*-*-01 00:00:00',
  quarterly: '*-01,04,07,10-01 00:00:00',
  semiannually: '*-01,07-01 00:00:00',
  'semi-annually': '*-01,07-01 00:00:00',
  'bi-annually': '*-01,07-01 00:00:00',
  biannually: '*-01,07-01 00:00:00',
  yearly: '*-01-01 00:00:00',
  annually: '*-01-01 00:00:00',
  anually: '*-01-01 00:00:00',
};

const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const LONG_WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

const inOrder = (values: Iterable<number>) => [...new Set(values)].sort((one, other) => one - other);

/** Monday is first, as in systemd. */
const rank = (day: number) => (day + 6) % 7;

function weekday(name: string): number {
  const text = name.toLowerCase();
  const day = Math.max(WEEKDAYS.indexOf(text), LONG_WEEKDAYS.indexOf(text));
  if (day < 0) throw badJob(`${JSON.stringify(name)} is not a weekday such as Mon`);
  return day;
}

/** As in systemd, a comma may follow the last one. */
function weekdaysIn(text: string): number[] {
  const days = text
    .replace(/,$/, '')
    .split(',')
    .flatMap((entry) => {
      const [from = '', to, ...more] = entry.split(/\.\.|-/);
      if (more.length > 0) throw badJob(`${JSON.stringify(entry)} is not a range of weekdays`);
      const [first, last] = [rank(weekday(from)), rank(weekday(to ?? from))];
      if (first > last) throw badJob(`${JSON.stringify(entry)} runs backwards; weeks begin with Mon`);
      return Array.from({ length: last - first + 1 }, (_, at) => (first + at + 1) % 7);
    });
  return inOrder(days);
}

type Unit = { readonly name: string; readonly least: number; readonly most: number };
const UNITS = {
  year: { name: 'year', least: 1970, most: 2199 },
  month: { name: 'month', least: 1, most: 12 },
  day: { name: 'day', least: 1, most: 31 },
  hour: { name: 'hour', least: 0, most: 23 },
  minute: { name: 'minute', least: 0, most: 59 },
  second: { name: 'second', least: 0, most: 59 },
} as const satisfies Record<string, Unit>;

function numberIn(text: string, { name, least, most }: Unit): number {
  if (/^\d+\.\d+$/.test(text)) throw badJob(`parts of a second (${text}) cannot be kept`);
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  // Two digits of a year are those of 1970 to 2069.
  const full = name === 'year' && value < 100 ? value + (value < 70 ? 2000 : 1900) : value;
  if (!(full >= least && full <= most)) throw badJob(`${name} ${JSON.stringify(text)} is outside ${least}-${most}`);
  return full;
}

/**
 * The values of one component; `undefined` for all.
 *
 * @param fromEnd the values count from the end of the month, and steps go towards it
 */
function valuesIn(text: string, unit: Unit, fromEnd = false): number[] | undefined {
  if (text === '*') return undefined;
  const values = text.split(',').flatMap((entry) => {
    const [range = '', stepText, ...more] = entry.split('/');
    const [from = '', to, ...bounds] = range.split('..');
    if (more.length > 0 || bounds.length > 0)
      throw badJob(`${unit.name} ${JSON.stringify(entry)} is not a value, a range a..b or a step a/n`);
    const first = from === '*' ? unit.least : numberIn(from, unit);
    const openEnd = fromEnd ? 1 : unit.most;
    const last = to === undefined ? (stepText === undefined ? first : openEnd) : numberIn(to, unit);
    const step = stepText === undefined ? 1 : Number(stepText);
    if (stepText !== undefined && (!/^\d{1,4}$/.test(stepText) || step < 1))
      throw badJob(`the step of ${unit.name} ${JSON.stringify(entry)} must be a whole number from 1`);
    const [low, high] = to === undefined && fromEnd ? [last, first] : [first, last];
    if (low > high) throw badJob(`${unit.name} ${JSON.stringify(entry)} runs backwards`);
    const all = Array.from({ length: high - low + 1 }, (_, at) => low + at);
    return all.filter((value) => Math.abs(value - first) % step === 0);
  });
  return inOrder(fromEnd ? values.map((value) => -value) : values);
}

type Date = { years?: number[] | undefined } & Pick<TimeSets, 'months' | 'daysOfMonth'>;

function dateIn(text: string): Date {
  const fromEnd = text.includes('~');
  const parts = text.replace('~', '-').split('-');
  if (parts.length < 2 || parts.length > 3)
    throw badJob(`${JSON.stringify(text)} is not a date such as 2026-12-01, *-*-01 or *-*~1`);
  const [year = '*', month = '*', day = '*'] = parts.length === 3 ? parts : ['*', ...parts];
  return {
    years: valuesIn(year, UNITS.year),
    months: valuesIn(month, UNITS.month),
    daysOfMonth: valuesIn(day, UNITS.day, fromEnd),
  };
}

function clockIn(text: string): Pick<TimeSets, 'hours' | 'minutes' | 'seconds'> {
  const [hour = '', minute = '', second = '0', ...more] = text.split(':');
  if (more.length > 0 || minute === '')
    throw badJob(`${JSON.stringify(text)} is not a time of day such as 09:30 or 09:30:00`);
  return {
    hours: valuesIn(hour, UNITS.hour),
    minutes: valuesIn(minute, UNITS.minute),
    seconds: valuesIn(second, UNITS.second),
  };
}

/**
 * The time of an `OnCalendar=` setting.
 *
 * @param ownZone for an event that names no zone
 * @throws ReveilleError
 */
export function calendarTime(event: string, ownZone: string): JobTime {
  const words = event.trim().split(/\s+/);
  const last = words.at(-1) ?? '';
  const hasZone = words.length > 1 && /^[A-Za-z]/.test(last) && !isWeekdays(last);
  if (hasZone && !isZone(last)) throw badJob(`${JSON.stringify(last)} is not an IANA zone`);
  const timezone = hasZone ? last : ownZone;
  const [, seconds] = /^@(\d{1,11})$/.exec(words[0] ?? '') ?? [];
  if (seconds !== undefined && words.length === (hasZone ? 2 : 1))
    return { kind: 'once', fire_at: formatInstant(Number(seconds) * 1000) };
  const [short = ''] = words;
  const spelled = SHORTHANDS[short.toLowerCase()];
  const parts = (spelled === undefined ? words : spelled.split(' ')).slice(0, hasZone && !spelled ? -1 : undefined);
  if (spelled !== undefined && words.length > (hasZone ? 2 : 1))
    throw badJob(`${short} stands alone, or before a zone`);
  const weekdays = isWeekdays(parts[0] ?? '') ? weekdaysIn(parts.shift()!) : undefined;
  const clock = parts.at(-1)?.includes(':') ? clockIn(parts.pop()!) : { hours: [0], minutes: [0], seconds: [0] };
  const { years, ...date } = parts.length > 0 ? dateIn(parts.shift()!) : ({} as Date);
  if (parts.length > 0) throw badJob(`${JSON.stringify(parts[0])} is out of place`);
  const days = weekdays === undefined || weekdays.length === 7 ? undefined : weekdays.map((day) => ({ day }));
  const sets: TimeSets = { ...clock, ...date, weekdays: days };
  return years === undefined ? timeOf(sets, timezone) : timeWithin(sets, years, timezone);
}

const isWeekdays = (word: string) => /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*(?:[,.-]|$)/i.test(word);

const SPAN_UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(?:usec|us|µs|μs)$/, 0.000_001],
  [/^(?:msec|ms)$/, 0.001],
  [/^(?:seconds|second|sec|s|)$/, 1],
  [/^(?:minutes|minute|min|m)$/, 60],
  [/^(?:hours|hour|hr|h)$/, 3600],
  [/^(?:days|day|d)$/, 86_400],
  [/^(?:weeks|week|w)$/, 604_800],
  [/^(?:months|month|M)$/, 30.44 * 86_400],
  [/^(?:years|year|y)$/, 365.25 * 86_400],
];

/** A time span in seconds: `5min`, `1h 30min`, `90`. @throws ReveilleError */
export function spanSeconds(text: string): number {
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*([a-zA-Zµμ]*)\s*/g)];
  const isWhole = parts.length > 0 && parts.map(([part]) => part).join('') === text.trim();
  const seconds = parts.map(([, amount, name = '']) => {
    const unit = SPAN_UNITS.find(([pattern]) => pattern.test(name))?.[1];
    return unit === undefined ? Number.NaN : Number(amount) * unit;
  });
  const total = seconds.reduce((sum, one) => sum + one, 0);
  if (isWhole && Number.isFinite(total)) return total;
  throw badJob(`${JSON.stringify(text)} is not a time span such as 15min or 1h 30min`);
}
