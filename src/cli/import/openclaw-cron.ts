/**
 * Cron expressions of OpenClaw, which its library croner reads: five fields, six with seconds first, or seven with years
 * last. Besides what cron has, they have `L` (last day), `#` (nth weekday of the month), `+` (both days must match) and
 * `?`. Pure.
 */
import { parseCron } from '../../chronos/alarm/cron.ts';
import { badJob, type JobTime } from './job.ts';
import { type NthDay, timeOf, timeWithin } from './times.ts';

const NICKNAME = /^@/;
const NTH = /^(?<day>[0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(?:#(?<nth>[1-5]|L)|L)$/i;
const NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const bits = (mask: number, lowest: number) =>
  Array.from({ length: 32 }, (_, bit) => bit)
    .filter((bit) => (mask & (1 << bit)) !== 0)
    .map((bit) => bit + lowest);

/** What a step or a range of seconds allows, by the rules of minutes. */
const secondsOf = (text: string): readonly number[] => parseCron(`${text} * * * *`).minutes;

/** The nth weekdays in a field; `undefined` for a field without any. */
function nthDays(field: string): NthDay[] | undefined {
  const entries = field.split(',').map((entry) => NTH.exec(entry)?.groups);
  if (entries.every((groups) => groups === undefined)) return undefined;
  return entries.map((groups) => {
    if (groups === undefined)
      throw badJob(`it mixes weekdays with and without a number (${field}), which an alarm cannot express`);
    const { day = '', nth = 'L' } = groups;
    const named = NAMES.indexOf(day.toUpperCase());
    return { day: named < 0 ? Number(day) % 7 : named, nth: nth.toUpperCase() === 'L' ? -1 : Number(nth) };
  });
}

/** The years of a seventh field, in order; `undefined` for all. */
function yearsOf(field: string): number[] | undefined {
  if (field === '*' || field === '?') return undefined;
  const years = field.split(',').flatMap((entry) => {
    const [, first = '', last = first] = /^(\d{4})(?:-(\d{4}))?$/.exec(entry) ?? [];
    if (first === '' || last < first) throw badJob(`year ${JSON.stringify(entry)} is not such as 2027 or 2027-2029`);
    return Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => Number(first) + at);
  });
  return [...new Set(years)].sort((one, other) => one - other);
}

/**
 * The time of an expression.
 *
 * @throws ReveilleError for an expression that croner refuses, or that an alarm cannot express
 */
export function openclawTime(expression: string, timezone: string): JobTime {
  const text = expression.trim();
  const fields = text.split(/\s+/);
  if (NICKNAME.test(text) || fields.length < 5 || fields.length > 7) {
    parseCron(text);
    return { kind: 'cron', cron_expr: text, timezone };
  }
  const [second = '0', minute = '', hour = '', day = '', month = '', weekday = '', year = '*'] =
    fields.length === 5 ? ['0', ...fields] : fields;
  if (/W/i.test(day))
    throw badJob(`it has the nearest weekday to a day of the month (${day}), which an alarm cannot express`);
  const isBoth = weekday.startsWith('+');
  const [dayText, weekdayText] = [day, isBoth ? weekday.slice(1) : weekday].map((field, at) => {
    const plain = field === '?' ? '*' : field;
    // Only a lone star is free in croner; cron also takes one with a step for it.
    return plain.replaceAll('*/', at === 0 ? '1-31/' : '0-6/');
  }) as [string, string];
  const nth = nthDays(weekdayText);
  const days = dayText.split(',');
  const hasLast = days.some((entry) => entry.toUpperCase() === 'L');
  const numbered = days.filter((entry) => entry.toUpperCase() !== 'L').join(',');
  const plain = [minute, hour, hasLast ? numbered || '*' : dayText, month, nth ? '*' : weekdayText].join(' ');
  const read = parseCron(plain);
  const seconds = secondsOf(second);
  const years = yearsOf(year);
  const isPlain = !hasLast && !nth && !isBoth && years === undefined;
  if (isPlain && seconds.length === 1 && seconds[0] === 0) return { kind: 'cron', cron_expr: plain, timezone };
  const daysOfMonth = [
    ...(dayText === '*' || (hasLast && numbered === '') ? [] : bits(read.daysOfMonth, 1)),
    ...(hasLast ? [-1] : []),
  ];
  const plainDays = weekdayText === '*' ? undefined : bits(read.daysOfWeek, 0).map((one) => ({ day: one }));
  const weekdays = nth ?? plainDays;
  const isFree = (field: string) => field === '*';
  const sets = {
    seconds: second === '*' ? undefined : seconds,
    minutes: isFree(minute) ? undefined : read.minutes,
    hours: isFree(hour) ? undefined : read.hours,
    daysOfMonth: daysOfMonth.length === 0 ? undefined : daysOfMonth,
    months: isFree(month) ? undefined : bits(read.months, 1),
    weekdays,
  };
  const isEither = daysOfMonth.length > 0 && weekdays !== undefined && !isBoth;
  return years === undefined ? timeOf(sets, timezone, isEither) : timeWithin(sets, years, timezone, isEither);
}
