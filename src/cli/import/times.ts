/** Writes sets of times, which cron expressions and calendar events of systemd have in common, as a series. Pure. */
import { instantOfWall } from '../../chronos/alarm/occurrence.ts';
import { zoneOf } from '../../kit/clock/zone.ts';
import { WEEKDAYS } from '../../kit/recurrence/recurrence.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { badJob, type JobTime } from './job.ts';

/** A weekday, Sunday 0; `nth` is its number within the month, from the end if negative. */
export type NthDay = { readonly day: number; readonly nth?: number };

/** The allowed values of each unit, sorted; an absent list allows all. */
export type TimeSets = {
  readonly seconds?: readonly number[] | undefined;
  readonly minutes?: readonly number[] | undefined;
  readonly hours?: readonly number[] | undefined;
  /** Negative days count from the end of the month. */
  readonly daysOfMonth?: readonly number[] | undefined;
  readonly months?: readonly number[] | undefined;
  readonly weekdays?: readonly NthDay[] | undefined;
};

type Day = Pick<TimeSets, 'daysOfMonth' | 'weekdays'>;

/** The name of a weekday in a rule; Sunday is 0. */
const weekdayName = (day: number) => WEEKDAYS[(day + 6) % 7]!;

/** One field of a cron expression. */
function field(values: readonly number[] | undefined): string {
  if (values === undefined) return '*';
  const [first = 0, second = first] = values;
  const step = second - first;
  const last = values.at(-1)!;
  const isEven = values.length > 2 && values.every((value, at) => value === first + at * step);
  if (!isEven) return values.join(',');
  return step === 1 ? `${first}-${last}` : `${first}-${last}/${step}`;
}

const part = (name: string, values: readonly (number | string)[] | undefined) =>
  values === undefined ? [] : [`${name}=${values.join(',')}`];

const upTo = (most: number) => Array.from({ length: most + 1 }, (_, value) => value);

/** One rule of RFC 5545. Its smallest free unit is its frequency, so that no time comes from its start. */
function ruleOf({ seconds, minutes, hours, months }: TimeSets, { daysOfMonth, weekdays }: Day): string {
  const isNth = weekdays?.some(({ nth }) => nth !== undefined) ?? false;
  const free = seconds === undefined ? 'SECONDLY' : minutes === undefined ? 'MINUTELY' : 'HOURLY';
  // Only a rule by months can count weekdays: it lists every time of a day.
  const frequency = isNth ? 'MONTHLY' : hours === undefined || free !== 'HOURLY' ? free : 'DAILY';
  const parts = [
    `FREQ=${frequency}`,
    ...part('BYMONTH', months),
    ...part('BYMONTHDAY', daysOfMonth),
    ...part(
      'BYDAY',
      weekdays?.map(({ day, nth }) => `${nth ?? ''}${weekdayName(day)}`),
    ),
    ...part('BYHOUR', hours ?? (isNth ? upTo(23) : undefined)),
    ...part('BYMINUTE', minutes ?? (isNth ? upTo(59) : undefined)),
    ...part('BYSECOND', seconds ?? (isNth ? upTo(59) : undefined)),
  ];
  return `RRULE:${parts.join(';')}`;
}

/** The sets as rules. @param eitherDay a date needs to match one of the two kinds of days, as in cron */
function rulesOf(sets: TimeSets, eitherDay = false): string[] {
  const { daysOfMonth, weekdays } = sets;
  if (!eitherDay || daysOfMonth === undefined || weekdays === undefined)
    return [ruleOf(sets, { daysOfMonth, weekdays })];
  return [ruleOf(sets, { daysOfMonth, weekdays: undefined }), ruleOf(sets, { daysOfMonth: undefined, weekdays })];
}

/** The sets as a cron expression, which people read more easily; `undefined` for sets that it cannot express. */
function cronOf({ seconds, minutes, hours, daysOfMonth, months, weekdays }: TimeSets): string | undefined {
  const isWhole = seconds?.length === 1 && seconds[0] === 0;
  // A cron expression with both kinds of days fires on either.
  if (!isWhole || (daysOfMonth !== undefined && weekdays !== undefined)) return undefined;
  if (daysOfMonth?.some((day) => day < 1) || weekdays?.some(({ nth }) => nth !== undefined)) return undefined;
  const days = weekdays?.map(({ day }) => day).sort((one, other) => one - other);
  return [minutes, hours, daysOfMonth, months, days].map(field).join(' ');
}

/** The sets as the time of an alarm. */
export function timeOf(sets: TimeSets, timezone: string, eitherDay = false): JobTime {
  const cron = eitherDay ? undefined : cronOf(sets);
  if (cron !== undefined) return { kind: 'cron', cron_expr: cron, timezone };
  return { kind: 'rrule', rrule: rulesOf(sets, eitherDay).join('\n'), timezone };
}

/** The only value of a list. */
const only = (values: readonly number[] | undefined) => (values?.length === 1 ? values[0] : undefined);

/** The instant of an event that has one; a day that the month lacks has none. */
function instantOf(year: number, sets: TimeSets, timezone: string): number | undefined {
  const [month, day] = [only(sets.months), only(sets.daysOfMonth)];
  const [hour, minute, second] = [only(sets.hours), only(sets.minutes), only(sets.seconds)];
  if (month === undefined || day === undefined || hour === undefined || minute === undefined || second === undefined)
    return undefined;
  const wall = Date.UTC(year, day < 0 ? month : month - 1, day < 0 ? day + 1 : day, hour, minute, second);
  if (new Date(wall).getUTCMonth() + 1 !== month) return undefined;
  const isNamed = sets.weekdays?.some(({ day: one }) => one === new Date(wall).getUTCDay()) ?? true;
  return isNamed ? instantOfWall(zoneOf(timezone), wall) : undefined;
}

/** The sets within years, which are in order: a series, or the instant of a complete date. @throws ReveilleError */
export function timeWithin(sets: TimeSets, years: readonly number[], timezone: string, eitherDay = false): JobTime {
  const [first = 0, last = first] = [years[0], years.at(-1)];
  const at = years.length === 1 && !eitherDay ? instantOf(first, sets, timezone) : undefined;
  if (at !== undefined) return { kind: 'once', fire_at: formatInstant(at) };
  if (last - first + 1 !== years.length) throw badJob('years with gaps between them cannot be kept');
  const rules = rulesOf(sets, eitherDay).map((rule) => `${rule};UNTIL=${last}1231T235959`);
  return { kind: 'rrule', timezone, rrule: [`DTSTART:${first}0101T000000`, ...rules].join('\n') };
}

/** A fixed distance from one fire to the next, which counts from an instant in whole seconds. */
export function everyFrom(startMs: number, everySeconds: number): JobTime {
  const start = `${new Date(startMs).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
  const [frequency, interval] =
    everySeconds % 3600 === 0
      ? (['HOURLY', everySeconds / 3600] as const)
      : everySeconds % 60 === 0
        ? (['MINUTELY', everySeconds / 60] as const)
        : (['SECONDLY', everySeconds] as const);
  return { kind: 'rrule', rrule: `DTSTART:${start}\nRRULE:FREQ=${frequency};INTERVAL=${interval}`, timezone: 'UTC' };
}
