/** The meaning of a phrase that repeats, as a cron expression: `every weekday at 9`. Pure. */
import type { Parts } from './parts.ts';
import { PhraseError, type Reading } from './reading.ts';
import { calendarDay, hourOf, noTime } from './time-of-day.ts';
import { MONTHS, type Unit } from './vocabulary.ts';

/** Cron's minutes and hours for times of the day. */
function dailyFields(text: string, { times, halfDay }: Parts): string {
  if (times.length === 0) throw noTime(text, halfDay);
  if (times.some(({ second }) => second !== 0)) throw new PhraseError(`"${text}": a series fires at whole minutes`);
  const minutes = new Set(times.map(({ minute }) => minute));
  if (minutes.size > 1)
    throw new PhraseError(`"${text}": all times of a series must have the same minute; set an alarm for each`);
  const hours = [...new Set(times.map((time) => hourOf(time, halfDay)))].sort((one, other) => one - other);
  return `${[...minutes][0]} ${hours.join(',')}`;
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

const EVERY_UNIT: Readonly<Partial<Record<Unit, string>>> = { second: 's', minute: 'm', hour: 'h' };

export function seriesOf(text: string, parts: Parts, zone: string): Reading {
  const { monthDays, times, hours, day, minutePast, halfDay } = parts;
  const { amount, unit, word } = parts.repeat!;
  const series = (cron: string): Reading => ({ kind: 'series', cron, zone });
  const refuse = (problem: string, choices: readonly string[] = []): never => {
    throw new PhraseError(`"${text}" ${problem}`, choices);
  };
  // `friday every hour`: the day came before the word that makes it a series.
  const isOneOfSeries = day?.kind === 'weekday' && day.week === undefined && EVERY_UNIT[unit] !== undefined;
  const weekdays = isOneOfSeries ? new Set([...parts.weekdays, day.weekday]) : parts.weekdays;
  if (parts.ahead !== undefined) return refuse('has a duration and a frequency; use only one of them');
  if (!Number.isInteger(amount) || amount < 1) return refuse(`must repeat after a whole number of ${unit}s`);
  if (times.some(({ as }) => as === 'midnight') && weekdays.size > 0 && weekdays.size < 7)
    return refuse('can mean the beginning of the day or its end', [`${text.replace(/midnight/i, '0:00')}`]);
  if (weekdays.size > 0 && monthDays.length > 0)
    return refuse('has days of the week and of the month; a series has only one kind');

  if (day?.kind === 'month end')
    return refuse(
      'repeats on the last day of a month, which a series cannot express (a month has 28 to 31 days); use a day that every month has, or set an alarm for one month, as in "last day of this month at 17:00"',
    );

  if (hours !== undefined) {
    if (unit !== 'hour' && !(weekdays.size > 0 && unit === 'week'))
      return refuse('has hours of the day, which need "every hour"');
    if (unit === 'week') return refuse('does not have a frequency within these hours', [`every hour ${text}`]);
  }
  if (EVERY_UNIT[unit] !== undefined) {
    if (times.length > 0 || monthDays.length > 0 || (day !== undefined && !isOneOfSeries))
      return refuse(`fires every ${amount === 1 ? unit : `${amount} ${unit}s`}, so it cannot have a time of the day`);
    if (halfDay !== undefined)
      return refuse('has a part of the day; write its hours, as in "every hour from 8:00 to 12:00"');
    const isHourly = unit === 'hour' && amount === 1;
    if (minutePast === undefined && hours === undefined && weekdays.size === 0)
      return series(word === 'hourly' ? '@hourly' : `@every ${amount}${EVERY_UNIT[unit]}`);
    if (!isHourly) return refuse('is not a possible series; hours and days of the week need "every hour"');
    const span = hours === undefined ? '*' : `${hours.from}-${hours.to}`;
    return series(`${minutePast ?? 0} ${span} * * ${weekdays.size === 0 ? '*' : weekdayField(weekdays)}`);
  }
  if (day !== undefined && day.kind !== 'date') return refuse('has one day and a frequency; use only one of them');
  if (amount > 1) {
    const elapsed = unit === 'day' ? amount * 24 : unit === 'week' ? amount * 168 : undefined;
    const choices = elapsed === undefined ? [] : [`every ${elapsed} hours`];
    return refuse(`is not possible on the calendar: a series includes every ${unit}`, choices);
  }
  if (unit === 'day') {
    if (weekdays.size > 0 || monthDays.length > 0 || day !== undefined)
      return refuse('repeats every day and names some days; use only one of them');
    return series(`${dailyFields(text, parts)} * * *`);
  }
  if (unit === 'week') {
    if (weekdays.size === 0) return refuse('does not name a day', ['every monday at 9:00']);
    if (day !== undefined) return refuse('has days of the week and a date; use only one of them');
    return series(`${dailyFields(text, parts)} * * ${weekdayField(weekdays)}`);
  }
  if (unit === 'month') {
    if (weekdays.size > 0) return refuse('has a day of the week; a series cannot select one of a month');
    if (day !== undefined) return refuse('repeats every month and has a date; use only one of them');
    if (monthDays.length === 0) return refuse('does not name a day', ['every month on the 1st at 9:00']);
    const fields = dailyFields(text, parts);
    const last = Math.max(...monthDays);
    const cron = `${fields} ${[...new Set(monthDays)].sort((one, other) => one - other).join(',')} * *`;
    if (last > 28) return refuse(`skips the months without a day ${last}`, [cron, `every month on the 28th at 9:00`]);
    return series(cron);
  }
  if (day === undefined) return refuse('does not name a day', ['every year on december 24 at 18:00']);
  if (weekdays.size > 0 || monthDays.length > 0) return refuse('has a date and other days; set an alarm for each');
  if (day.year !== undefined) return refuse('has one year and repeats every year; use only one of them');
  if (calendarDay(2024, day.month, day.day) === undefined)
    return refuse(`names a day that ${MONTHS[day.month - 1]} does not have`);
  const cron = `${dailyFields(text, parts)} ${day.day} ${day.month} *`;
  if (calendarDay(2023, day.month, day.day) === undefined) return refuse('fires only in leap years', [cron]);
  return series(cron);
}
