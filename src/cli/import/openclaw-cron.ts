/**
 * Cron expressions of OpenClaw, which its library croner reads: five fields, or six with seconds first; besides what cron
 * has, `L` (last day), `#` (nth weekday of the month) and `?`. Pure.
 */
import { parseCron } from '../../chronos/alarm/cron.ts';
import type { JobTime } from './job.ts';
import { type NthDay, timeOf } from './times.ts';

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
    if (groups === undefined) throw new Error('mixes weekdays with and without a number');
    const { day = '', nth = 'L' } = groups;
    const named = NAMES.indexOf(day.toUpperCase());
    return { day: named < 0 ? Number(day) % 7 : named, nth: nth.toUpperCase() === 'L' ? -1 : Number(nth) };
  });
}

/**
 * The time of an expression.
 *
 * @throws ReveilleError for an expression that cron has not either, Error with a reason for one that an alarm cannot express
 */
export function openclawTime(expression: string, timezone: string): JobTime {
  const text = expression.trim();
  const fields = text.split(/\s+/);
  if (NICKNAME.test(text) || fields.length < 5 || fields.length > 6) {
    parseCron(text);
    return { kind: 'cron', cron_expr: text, timezone };
  }
  const [second, minute = '', hour = '', day = '', month = '', weekday = ''] =
    fields.length === 6 ? fields : ['0', ...fields];
  if (/W/i.test(day)) throw new Error(`has the nearest weekday to a day of the month (${day})`);
  const [dayText, weekdayText] = [day, weekday].map((field) => (field === '?' ? '*' : field)) as [string, string];
  const nth = nthDays(weekdayText);
  const days = dayText.split(',');
  const hasLast = days.some((entry) => entry.toUpperCase() === 'L');
  const numbered = days.filter((entry) => entry.toUpperCase() !== 'L').join(',');
  const plain = [minute, hour, hasLast ? numbered || '*' : dayText, month, nth ? '*' : weekdayText].join(' ');
  const read = parseCron(plain);
  const seconds = secondsOf(second ?? '0');
  if (!hasLast && !nth && seconds.length === 1 && seconds[0] === 0) return { kind: 'cron', cron_expr: plain, timezone };
  const daysOfMonth = [
    ...(dayText.startsWith('*') || (hasLast && numbered === '') ? [] : bits(read.daysOfMonth, 1)),
    ...(hasLast ? [-1] : []),
  ];
  const plainDays = weekdayText.startsWith('*') ? undefined : bits(read.daysOfWeek, 0).map((one) => ({ day: one }));
  const weekdays = nth ?? plainDays;
  const isFree = (field: string) => field === '*';
  return timeOf(
    {
      seconds: second === '*' ? undefined : seconds,
      minutes: isFree(minute) ? undefined : read.minutes,
      hours: isFree(hour) ? undefined : read.hours,
      daysOfMonth: daysOfMonth.length === 0 ? undefined : daysOfMonth,
      months: isFree(month) ? undefined : bits(read.months, 1),
      weekdays,
    },
    timezone,
    daysOfMonth.length > 0 && weekdays !== undefined,
  );
}
