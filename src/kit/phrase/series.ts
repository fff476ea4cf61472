/** The meaning of a phrase that repeats: cron fields if they can express it, else a rule of RFC 5545. Pure. */
import { MOST_RULES } from '../recurrence/recurrence.ts';
import { type DayOfMonth, isDayOf, type Parts } from './parts.ts';
import { DEFAULT_HOURS, type PhraseContext, PhraseError, type PhraseHours, type Reading } from './reading.ts';
import {
  calendarDay,
  clockText,
  DAY_MS,
  dayOf,
  endOfDay,
  hourOf,
  MINUTE_MS,
  type Time,
  usualTime,
  wallOf,
} from './time-of-day.ts';
import { MONTHS, type RepeatUnit, WEEKDAYS } from './vocabulary.ts';

type DayTime = Pick<Time, 'hour' | 'minute'>;
/** Times of day that cron's fields can express: each of the minutes in each of the hours. */
type TimesOfDay = { readonly minutes: readonly number[]; readonly hours: readonly number[] };
/** The times of day of a series. A rule has one group; several rules fire at the times of each. */
type DailyTimes = { readonly groups: readonly TimesOfDay[]; readonly assumed?: string };

const sorted = (numbers: Iterable<number>) => [...new Set(numbers)].sort((one, other) => one - other);

/** As few groups as possible, the earliest first. */
function grouped(times: readonly DayTime[]): TimesOfDay[] {
  const hoursOf = Map.groupBy(times, ({ minute }) => minute);
  const minutes = [...hoursOf].map(([minute, at]) => ({ minute, hours: sorted(at.map(({ hour }) => hour)) }));
  const groups = [...Map.groupBy(minutes, ({ hours }) => hours.join()).values()].map((same) => ({
    ...{ minutes: sorted(same.map(({ minute }) => minute)), hours: same[0]!.hours },
  }));
  const first = ({ minutes: [minute], hours: [hour] }: TimesOfDay) => hour! * 60 + minute!;
  return groups.sort((one, other) => first(one) - first(other));
}

/** A group for each time. */
const eachTime = (groups: readonly TimesOfDay[]): TimesOfDay[] =>
  minutesOfDay(groups).map((at) => ({ minutes: [at % 60], hours: [Math.floor(at / 60)] }));

/** Minutes since midnight, the earliest first. */
const minutesOfDay = (groups: readonly TimesOfDay[]) =>
  sorted(groups.flatMap(({ minutes, hours }) => hours.flatMap((hour) => minutes.map((minute) => hour * 60 + minute))));

const timeText = (minutes: number) => `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}`;
const joined = (parts: readonly string[]) => parts.join(', ').replace(/, ([^,]*)$/, ' and $1');

/** Cron's fields of the times and days; `undefined` when only several rules can express the times. */
const cronOf = ({ groups }: DailyTimes, days: string): string | undefined =>
  groups.length > 1 ? undefined : `${groups[0]!.minutes.join()} ${groups[0]!.hours.join()} ${days}`;

/** Between the first and the last of several times a day. */
const TIMES_SPAN_HOURS = 8;

function spreadOver(text: string, often: number, first: Time): Time[] {
  const step = TIMES_SPAN_HOURS / (often - 1);
  if (!Number.isInteger(step) || first.hour + TIMES_SPAN_HOURS > 23)
    throw new PhraseError(`"${text}" does not name the times of day`, [`every day at 9:00 and 17:00`]);
  return Array.from({ length: often }, (_, at) => ({ ...first, hour: first.hour + at * step }));
}

function assumedTimes(text: string, { halfDay, perDay = 1 }: Parts, hours: PhraseHours): DailyTimes {
  const first = usualTime(halfDay, hours);
  const times = perDay === 1 ? [first] : spreadOver(text, perDay, first);
  const assumed = `at ${joined(times.map(clockText))}, because no time${times.length > 1 ? 's were' : ' was'} given`;
  return { groups: grouped(times), assumed };
}

/** The end of the days on which a series fires. @param weekdays all days if empty */
function sameEndOfDay(text: string, weekdays: ReadonlySet<number>, hours: PhraseHours): Time {
  const days = weekdays.size === 0 ? [0, 1, 2, 3, 4, 5, 6] : [...weekdays];
  const [end, ...others] = days.map((weekday) => endOfDay(hours, weekday)) as [Time, ...Time[]];
  if (others.every((other) => clockText(other) === clockText(end))) return end;
  throw new PhraseError(
    `"${text}": these days end at different times; write a time, as in "every day at ${clockText(end)}"`,
  );
}

function dailyTimes(text: string, parts: Parts, hours: PhraseHours): DailyTimes {
  const { halfDay, perDay, weekdays } = parts;
  if (parts.times.length === 0) return assumedTimes(text, parts, hours);
  if (perDay !== undefined && perDay !== parts.times.length)
    throw new PhraseError(`"${text}" names ${parts.times.length} of ${perDay} times of day`);
  // One hour of the 24-hour clock means that all are: `9, 12 and 17`.
  const is24 = halfDay === undefined && parts.times.some(({ as, hour }) => as === 'bare' && hour > 12);
  const times = parts.times.map((time): Time => {
    if (time.as === 'end of day') return sameEndOfDay(text, weekdays, hours);
    return is24 && time.as === 'bare' ? { ...time, as: 'colon' } : time;
  });
  if (times.some(({ second }) => second !== 0)) throw new PhraseError(`"${text}": a series fires at whole minutes`);
  const groups = grouped(times.map((time) => ({ hour: hourOf(time, halfDay), minute: time.minute })));
  if (groups.length > MOST_RULES)
    throw new PhraseError(`"${text}" has times with more than ${MOST_RULES} different minutes; set several alarms`);
  const end = parts.times.find(({ as }) => as === 'end of day');
  return {
    groups,
    ...(end && { assumed: `at ${clockText(sameEndOfDay(text, weekdays, hours))}, the end of the day` }),
  };
}

/** Hours in cron's form: `*` and a step means those of the clock, also when it changes. */
function hourField(hours: readonly number[]): string {
  const step = hours.length > 1 ? hours[1]! : 24;
  const isStep = hours.every((hour, at) => hour === at * step) && hours.length === Math.ceil(24 / step);
  return isStep && hours.length > 1 ? `*/${step}` : hours.join();
}

/** Days of the week in cron's form, consecutive ones as a range. */
function weekdayField(weekdays: ReadonlySet<number>): string {
  // Monday first; Sunday is 7 during the search for ranges.
  const days = [...weekdays].map((day) => (day === 0 ? 7 : day)).sort((one, other) => one - other);
  if (days.length === 7) return '*';
  const isRun = days.length > 2 && days.at(-1)! - days[0]! === days.length - 1;
  if (isRun) return `${days[0]}-${days.at(-1)}`;
  return days
    .map((day) => day % 7)
    .sort((one, other) => one - other)
    .join(',');
}

const dayCode = (weekday: number) => WEEKDAYS[weekday]!.slice(0, 2).toUpperCase();
const MONDAY_TO_FRIDAY = 'MO,TU,WE,TH,FR';

/** The days on which a series fires, at its times. */
type Days = {
  readonly frequency: 'DAILY' | 'WEEKLY' | 'MONTHLY' | 'YEARLY';
  readonly interval: number;
  /** Parts of the rule that select the days. */
  readonly by: readonly string[];
  /** Cron's fields for the days; without them, or with an interval, only a rule can express them. */
  readonly cron?: string;
  /** Whether the days include one, given as a wall time. */
  includes(day: number): boolean;
};

function weekly(weekdays: ReadonlySet<number>, interval: number): Days {
  const mondayFirst = sorted([...weekdays].map((day) => (day + 6) % 7)).map((day) => dayCode((day + 1) % 7));
  return {
    ...{ frequency: 'WEEKLY', interval, by: [`BYDAY=${mondayFirst.join(',')}`], cron: `* * ${weekdayField(weekdays)}` },
    includes: (day) => weekdays.has(new Date(day).getUTCDay()),
  };
}

/** The parts of a rule for one position in a month. */
function positionParts({ nth, of }: DayOfMonth): string[] {
  if (of === 'day') return [`BYMONTHDAY=${nth}`];
  return of === 'weekday' ? [`BYDAY=${MONDAY_TO_FRIDAY}`, `BYSETPOS=${nth}`] : [`BYDAY=${nth}${dayCode(of)}`];
}

/** Whether a day, as a wall time, has a position in its month. */
function isAtPosition({ nth, of }: DayOfMonth, day: number): boolean {
  if (!isDayOf(of, day)) return false;
  const month = new Date(day).getUTCMonth();
  const step = nth < 0 ? DAY_MS : -DAY_MS;
  let position = 0;
  for (let at = day; new Date(at).getUTCMonth() === month; at += step) if (isDayOf(of, at)) position++;
  return position === Math.abs(nth);
}

const isIn = (months: readonly number[] | undefined, day: number) =>
  months === undefined || months.includes(new Date(day).getUTCMonth() + 1);

/** @param months 1 to 12; every month if undefined */
function monthlyDates(dates: readonly number[], interval: number, months?: readonly number[]): Days {
  return {
    ...{ frequency: 'MONTHLY', interval },
    by: [...(months && interval === 1 ? [`BYMONTH=${months.join(',')}`] : []), `BYMONTHDAY=${dates.join(',')}`],
    cron: `${dates.join(',')} ${months?.join(',') ?? '*'} *`,
    includes: (day) => dates.includes(new Date(day).getUTCDate()) && isIn(months, day),
  };
}

function monthlyPosition(position: DayOfMonth, interval: number, months?: readonly number[]): Days {
  return {
    ...{ frequency: 'MONTHLY', interval },
    by: [...(months && interval === 1 ? [`BYMONTH=${months.join(',')}`] : []), ...positionParts(position)],
    includes: (day) => isIn(months, day) && isAtPosition(position, day),
  };
}

function yearlyDate(month: number, date: number, interval: number): Days {
  return {
    ...{ frequency: 'YEARLY', interval, by: [`BYMONTH=${month}`, `BYMONTHDAY=${date}`], cron: `${date} ${month} *` },
    includes: (day) => new Date(day).getUTCMonth() + 1 === month && new Date(day).getUTCDate() === date,
  };
}

/** The latest first day of a series: a position in a month of each year. */
const SEARCHED_DAYS = 9 * 366;
/** Longer series would begin beyond the calendar of rules. */
const LONGEST_INTERVAL = 1_000;

/** The first wall time of a series after `now`; an interval counts from it. */
function firstOf({ includes }: Days, { groups }: DailyTimes, now: number): number {
  const times = minutesOfDay(groups);
  for (let at = 0; at < SEARCHED_DAYS; at++) {
    const day = dayOf(now) + at * DAY_MS;
    const time = includes(day) ? times.find((minutes) => day + minutes * MINUTE_MS > now) : undefined;
    if (time !== undefined) return day + time * MINUTE_MS;
  }
  throw new PhraseError('the series never begins');
}

/** `20261130T100000` */
const ruleTime = (wall: number) => new Date(wall).toISOString().replace(/[-:]|\.\d+Z$/g, '');

const EVERY_UNIT: Readonly<Partial<Record<RepeatUnit, string>>> = { second: 's', minute: 'm', hour: 'h' };

/** Each minute of the clock, which is the same in each zone. */
export const MINUTELY = '* * * * *';

const FIRST_MONTHS = [1, 4, 7, 10] as const;
const LAST_MONTHS = [3, 6, 9, 12] as const;

/** The first elements of the days of a quarter that are a day of its month. */
const monthsOfQuarter = (nth: number): readonly number[] => (nth < 0 ? LAST_MONTHS : FIRST_MONTHS);

export function seriesOf(text: string, parts: Parts, context: PhraseContext): Reading {
  const { zone, now, hours: userHours = DEFAULT_HOURS } = context;
  const { monthDays, daysOfMonth, times, hours, day, minutesPast, hourList, lastMinute, halfDay, start, only } = parts;
  const { amount, unit, word } = parts.repeat!;
  const reading = (cron: string, assumed?: string): Reading => ({
    ...{ kind: 'series', cron, zone },
    ...(assumed !== undefined && { assumed }),
  });
  const refuse = (problem: string, choices: readonly string[] = []): never => {
    throw new PhraseError(`"${text}" ${problem}`, choices);
  };
  const beginOf = (days: Days, daily: DailyTimes): string[] => {
    if (start !== undefined) {
      const time = start.time ?? minutesOfDay(daily.groups)[0]! * MINUTE_MS;
      return [`DTSTART:${ruleTime(start.day + time)}`];
    }
    return days.interval === 1 ? [] : [`DTSTART:${ruleTime(firstOf(days, daily, wallOf(now, zone)))}`];
  };
  const series = (days: Days, assumedDay?: string): Reading => {
    const daily = dailyTimes(text, parts, userHours);
    const assumed =
      assumedDay === undefined || daily.assumed === undefined
        ? (assumedDay ?? daily.assumed)
        : `${assumedDay.replace(/, because.*/, '')} ${daily.assumed.replace('no time', 'no day or time')}`;
    const cron = days.interval === 1 && days.cron !== undefined ? cronOf(daily, days.cron) : undefined;
    if (cron !== undefined && start === undefined) return reading(cron, assumed);
    if (days.interval > LONGEST_INTERVAL) return refuse(`must repeat after at most ${LONGEST_INTERVAL} ${unit}s`);
    const begin = beginOf(days, daily);
    const onDays = [
      ...[`FREQ=${days.frequency}`, ...(days.interval === 1 ? [] : [`INTERVAL=${days.interval}`]), ...days.by],
    ];
    // BYSETPOS counts each time of a day, so it needs a rule for each.
    const groups = days.by.some((part) => part.startsWith('BYSETPOS=')) ? eachTime(daily.groups) : daily.groups;
    if (groups.length > MOST_RULES) return refuse(`has more than ${MOST_RULES} times of day; set several alarms`);
    const rules = groups.map(({ minutes, hours }) =>
      [...onDays, `BYHOUR=${hours.join()}`, `BYMINUTE=${minutes.join()}`, 'BYSECOND=0'].join(';'),
    );
    const rrule = [...begin, ...rules.map((rule) => `RRULE:${rule}`)].join('\n');
    return { ...{ kind: 'series', rrule, zone }, ...(assumed !== undefined && { assumed }) };
  };

  // `friday every hour`: the day came before the word that makes it a series.
  const isOneOfSeries = day?.kind === 'weekday' && day.week === undefined && EVERY_UNIT[unit] !== undefined;
  const weekdays = isOneOfSeries ? new Set([...parts.weekdays, day.weekday]) : parts.weekdays;
  if (parts.ahead !== undefined) return refuse('has a duration and a frequency; use only one of them');
  if (!Number.isInteger(amount) || amount < 1) return refuse(`must repeat after a whole number of ${unit}s`);
  if (times.some(({ as }) => as === 'midnight') && weekdays.size > 0 && weekdays.size < 7)
    return refuse('can mean the beginning of the day or its end', [`${text.replace(/midnight/i, '0:00')}`]);
  if (weekdays.size > 0 && monthDays.length + daysOfMonth.length > 0)
    return refuse('has days of the week and of the month; a series has only one kind');
  if (monthDays.length > 0 && daysOfMonth.length > 0) return refuse('has two kinds of days; set an alarm for each');
  if (daysOfMonth.length > 1) return refuse('has several days of the month; set an alarm for each');

  if (hours !== undefined) {
    if (EVERY_UNIT[unit] === undefined && !(weekdays.size > 0 && unit === 'week'))
      return refuse('has hours of the day, which need "every hour"');
    if (unit === 'week') return refuse('does not have a frequency within these hours', [`every hour ${text}`]);
  }
  if (EVERY_UNIT[unit] !== undefined) {
    if (times.length > 0 || monthDays.length + daysOfMonth.length > 0 || (day !== undefined && !isOneOfSeries))
      return refuse(`fires every ${amount === 1 ? unit : `${amount} ${unit}s`}, so it cannot have a time of the day`);
    if (halfDay !== undefined)
      return refuse('has a part of the day; write its hours, as in "every hour from 8:00 to 12:00"');
    if (start !== undefined || only !== undefined) return refuse('has days or a start, which need "every day"');
    if (minutesPast.length === 0 && hours === undefined && weekdays.size === 0) {
      // Without a number, the clock's hours and minutes; with one, a distance from the moment of setting.
      if (word === 'hourly' || word === 'each hour') return reading('@hourly');
      return reading(word === 'each minute' ? MINUTELY : `@every ${amount}${EVERY_UNIT[unit]}`);
    }
    const on = weekdays.size === 0 ? '*' : weekdayField(weekdays);
    if (unit === 'hour') {
      const past = minutesPast.length === 0 ? '0' : minutesPast.join();
      if (hourList.length > 0) {
        if (hours !== undefined || amount > 1) return refuse('names its hours twice; write them once');
        return reading(`${past} ${hourField(hourList)} * * ${on}`);
      }
      if (hours === undefined && 24 % amount !== 0)
        return refuse(`must divide a day into equal parts: use 1, 2, 3, 4, 6, 8 or 12 hours`);
      const span = hours === undefined ? '*' : `${hours.from}-${hours.to}`;
      return reading(`${past} ${amount === 1 ? span : `${span}/${amount}`} * * ${on}`);
    }
    if (unit === 'second' || minutesPast.length > 1 || (minutesPast.length > 0 && hours !== undefined))
      return refuse('is not a possible series; hours and days of the week need "every hour" or "every 15 minutes"');
    if (60 % amount !== 0)
      return refuse(`must divide an hour into equal parts: use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes`);
    const [past = 0] = minutesPast;
    if (past >= amount) return refuse(`begins after the first ${amount} minutes of the hour`);
    const minutes = past > 0 ? `${past}-59/${amount}` : amount === 1 ? '*' : `*/${amount}`;
    if (hours === undefined) return reading(`${minutes} * * * ${on}`);
    // `from 9:00 to 17:45` includes the last one; `from 9 to 17` ends before 17:00.
    const last = { hour: lastMinute === undefined ? hours.to - 1 : hours.to, minute: 60 - amount };
    if (lastMinute !== undefined && lastMinute !== last.minute)
      return refuse('does not end with the last one of an hour', [
        `every ${amount === 1 ? unit : `${amount} ${unit}s`} from ${hours.from}:00 to ${clockText(last)}`,
      ]);
    const span = hours.from === last.hour ? `${last.hour}` : `${hours.from}-${last.hour}`;
    const assumedEnd = lastMinute === undefined ? `the last of a day at ${clockText(last)}` : undefined;
    return reading(`${minutes} ${span} * * ${on}`, assumedEnd);
  }
  if (only !== undefined && unit !== 'year' && (only === 'leap years' || (unit !== 'month' && unit !== 'quarter')))
    return refuse(
      `has ${only === 'months' ? 'days of months' : 'leap years'} and repeats every ${unit}; omit one of them`,
    );
  if (minutesPast.length + hourList.length > 0) return refuse('has minutes of the hour, which need "every hour"');
  const refuseWeekday = (weekday: number) =>
    refuse('has a day of the week and not which one of the month', [
      `first ${WEEKDAYS[weekday]} of every ${unit} at 9:00`,
      `last ${WEEKDAYS[weekday]} of every ${unit} at 9:00`,
    ]);
  if (day?.kind === 'weekday' && (unit === 'month' || unit === 'quarter')) return refuseWeekday(day.weekday);
  if (
    day !== undefined &&
    day.kind !== 'date' &&
    !(unit === 'year' && day.kind === 'in month' && day.month !== undefined)
  )
    return refuse('has one day and a frequency; use only one of them');
  if (weekdays.size > 0 && (unit === 'month' || unit === 'quarter')) return refuseWeekday([...weekdays][0]!);
  if (unit === 'day') {
    if (weekdays.size > 0 || monthDays.length + daysOfMonth.length > 0 || day !== undefined)
      return refuse('repeats every day and names some days; use only one of them');
    return series({ frequency: 'DAILY', interval: amount, by: [], cron: '* * *', includes: () => true });
  }
  if (unit === 'week') {
    if (weekdays.size === 0)
      return amount === 1
        ? refuse('does not name a day', ['every monday at 9:00'])
        : refuse('does not name a day', [`every ${amount} weeks on monday at 9:00`, `every ${amount * 168} hours`]);
    if (day !== undefined) return refuse('has days of the week and a date; use only one of them');
    return series(weekly(weekdays, amount));
  }
  if (unit === 'month' || unit === 'quarter') {
    const isQuarter = unit === 'quarter';
    const interval = isQuarter && amount > 1 ? amount * 3 : amount;
    if (day !== undefined) return refuse(`repeats every ${unit} and has a date; use only one of them`);
    const [position] = daysOfMonth;
    if (position !== undefined)
      return series(monthlyPosition(position, interval, isQuarter ? monthsOfQuarter(position.nth) : undefined));
    if (monthDays.length === 0 && !isQuarter)
      return refuse('does not name a day', [
        amount === 1 ? 'every month on the 1st at 9:00' : `every ${amount} months on the 1st at 9:00`,
      ]);
    const dates = monthDays.length === 0 ? [1] : sorted(monthDays);
    const months = isQuarter ? FIRST_MONTHS : undefined;
    const days = monthlyDates(dates, interval, months);
    const last = Math.max(...dates);
    // January, April, July and October have 30 days or more.
    if (only !== 'months' && last > (isQuarter ? 30 : 28)) {
      const daily = dailyTimes(text, parts, userHours);
      const at = joined(minutesOfDay(daily.groups).map(timeText));
      return refuse(`skips the months without a day ${last}`, [
        `${text} in months that have ${dates.length === 1 ? 'it' : 'them'}`,
        `every ${interval === 1 ? unit : `${interval} months`} on the 28th at ${at}`,
        ...(interval === 1 ? [`last day of every ${unit} at ${at}`] : []),
      ]);
    }
    return series(days, monthDays.length === 0 ? 'on the 1st, because no day was given' : undefined);
  }
  if (weekdays.size > 0 || monthDays.length + daysOfMonth.length > 0)
    return refuse('has a date and other days; set an alarm for each');
  if (day === undefined) {
    const years = amount === 1 ? 'year' : `${amount} years`;
    return refuse('does not name a day', [`every ${years} on december 24 at 18:00`]);
  }
  if (day.kind === 'in month') {
    const { by, includes } = monthlyPosition(day.day, 1, [day.month!]);
    return series({ frequency: 'YEARLY', interval: amount, by, includes });
  }
  if (day.kind !== 'date') return refuse('has one day and a frequency; use only one of them');
  if (day.year !== undefined) return refuse('has one year and repeats every year; use only one of them');
  if (calendarDay(2024, day.month, day.day) === undefined)
    return refuse(`names a day that ${MONTHS[day.month - 1]} does not have`);
  const days = yearlyDate(day.month, day.day, amount);
  const isLeapDay = calendarDay(2023, day.month, day.day) === undefined;
  if (isLeapDay && only !== 'leap years') return refuse('fires only in leap years', [`${text} in leap years`]);
  if (!isLeapDay && only === 'leap years') return refuse('is a day of every year; omit "in leap years"');
  return series(days);
}
