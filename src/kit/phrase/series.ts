/** What a phrase means that repeats: `every weekday at 9`, as a cron expression. Pure. */

import type { Parts } from './parts.ts';
import { PhraseError, type Reading } from './reading.ts';
import { calendarDay, hourOf, noTime } from './time-of-day.ts';
import { MONTHS, type Unit } from './vocabulary.ts';

/** Minutes and hours of cron for times of the day. */
function dailyFields(text: string, { times, halfDay }: Parts): string {
  if (times.length === 0) throw noTime(text, halfDay);
  if (times.some(({ second }) => second !== 0)) throw new PhraseError(`"${text}": a series rings at whole minutes`);
  const minutes = new Set(times.map(({ minute }) => minute));
  if (minutes.size > 1)
    throw new PhraseError(`"${text}": times of one series must share their minute; set an alarm for each`);
  const hours = [...new Set(times.map((time) => hourOf(time, halfDay)))].sort((one, other) => one - other);
  return `${[...minutes][0]} ${hours.join(',')}`;
}

/** Days of the week as cron has them, neighbours as a range. */
function weekdayField(weekdays: ReadonlySet<number>): string {
  // Monday first, Sunday as 7 while ranges are looked for.
  const days = [...weekdays].map((day) => (day === 0 ? 7 : day)).sort((one, other) => one - other);
  if (days.length === 7) return '*';
  const isRun = days.length > 2 && days.at(-1)! - days[0]! === days.length - 1;
  if (isRun) return `${days[0]}-${days.at(-1)}`;
  return days
    .map((day) => day % 7)
    .sort((one, other) => one - other)
    .join(',');
}

const EVERY_UNIT: Readonly<Partial<Record<Unit, string>>> = { second: 's', minute: 'm', hour: 'h' };

export function seriesOf(text: string, parts: Parts, zone: string): Reading {
  const { monthDays, times, hours, day, minutePast, halfDay } = parts;
  const { amount, unit, word } = parts.repeat!;
  const series = (cron: string): Reading => ({ kind: 'series', cron, zone });
  const refuse = (problem: string, choices: readonly string[] = []): never => {
    throw new PhraseError(`"${text}" ${problem}`, choices);
  };
  // `friday every hour`: the day stood before it was known that it is one of a series.
  const isOneOfSeries = day?.kind === 'weekday' && day.week === undefined && EVERY_UNIT[unit] !== undefined;
  const weekdays = isOneOfSeries ? new Set([...parts.weekdays, day.weekday]) : parts.weekdays;
  if (parts.ahead !== undefined) return refuse('says how long and how often; say one of both');
  if (!Number.isInteger(amount) || amount < 1) return refuse(`must repeat after a whole number of ${unit}s`);
  if (times.some(({ as }) => as === 'midnight') && weekdays.size > 0 && weekdays.size < 7)
    return refuse('can mean the beginning of the day or its end', [`${text.replace(/midnight/i, '0:00')}`]);
  if (weekdays.size > 0 && monthDays.length > 0)
    return refuse('names days of the week and of the month; a series keeps to one of both');

  if (day?.kind === 'month end')
    return refuse(
      'repeats on the last day of a month, which a series cannot say (a month has 28 to 31 days); name a day that every month has, or set an alarm for one month, as in "last day of this month at 17:00"',
    );

  if (hours !== undefined) {
    if (unit !== 'hour' && !(weekdays.size > 0 && unit === 'week'))
      return refuse('names hours of the day; that goes with "every hour"');
    if (unit === 'week') return refuse('does not say how often within these hours', [`every hour ${text}`]);
  }
  if (EVERY_UNIT[unit] !== undefined) {
    if (times.length > 0 || monthDays.length > 0 || (day !== undefined && !isOneOfSeries))
      return refuse(
        `rings every ${amount === 1 ? unit : `${amount} ${unit}s`}; a time of the day does not go with that`,
      );
    if (halfDay !== undefined)
      return refuse('names a part of the day; name its hours, as in "every hour from 8:00 to 12:00"');
    const isHourly = unit === 'hour' && amount === 1;
    if (minutePast === undefined && hours === undefined && weekdays.size === 0)
      return series(word === 'hourly' ? '@hourly' : `@every ${amount}${EVERY_UNIT[unit]}`);
    if (!isHourly) return refuse('is no series that can be kept; hours and days of the week go with "every hour"');
    const span = hours === undefined ? '*' : `${hours.from}-${hours.to}`;
    return series(`${minutePast ?? 0} ${span} * * ${weekdays.size === 0 ? '*' : weekdayField(weekdays)}`);
  }
  if (day !== undefined && day.kind !== 'date') return refuse('names one day and says how often; say one of both');
  if (amount > 1) {
    const elapsed = unit === 'day' ? amount * 24 : unit === 'week' ? amount * 168 : undefined;
    const choices = elapsed === undefined ? [] : [`every ${elapsed} hours`];
    return refuse(`cannot be kept on the calendar: a series has every ${unit} or none`, choices);
  }
  if (unit === 'day') {
    if (weekdays.size > 0 || monthDays.length > 0 || day !== undefined)
      return refuse('is every day, and names some days; say one of both');
    return series(`${dailyFields(text, parts)} * * *`);
  }
  if (unit === 'week') {
    if (weekdays.size === 0) return refuse('does not say on which day', ['every monday at 9:00']);
    if (day !== undefined) return refuse('names days of the week and a date; say one of both');
    return series(`${dailyFields(text, parts)} * * ${weekdayField(weekdays)}`);
  }
  if (unit === 'month') {
    if (weekdays.size > 0) return refuse('names a day of the week; a series cannot say which one of a month');
    if (day !== undefined) return refuse('is every month, and names a date; say one of both');
    if (monthDays.length === 0) return refuse('does not say on which day', ['every month on the 1st at 9:00']);
    const fields = dailyFields(text, parts);
    const last = Math.max(...monthDays);
    const cron = `${fields} ${[...new Set(monthDays)].sort((one, other) => one - other).join(',')} * *`;
    if (last > 28)
      return refuse(`leaves out the months without a day ${last}`, [cron, `every month on the 28th at 9:00`]);
    return series(cron);
  }
  if (day === undefined) return refuse('does not say on which day', ['every year on december 24 at 18:00']);
  if (weekdays.size > 0 || monthDays.length > 0) return refuse('names a date and other days; set an alarm for each');
  if (day.year !== undefined) return refuse('names one year and says every year; say one of both');
  if (calendarDay(2024, day.month, day.day) === undefined)
    return refuse(`names a day that ${MONTHS[day.month - 1]} does not have`);
  const cron = `${dailyFields(text, parts)} ${day.day} ${day.month} *`;
  if (calendarDay(2023, day.month, day.day) === undefined) return refuse('rings in leap years alone', [cron]);
  return series(cron);
}
