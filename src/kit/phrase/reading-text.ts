/** Formats readings for people. What a text says is read to the same instants when it is typed. Pure. */
import { formatInstant } from '../../wire/rfc3339.ts';
import { calendarTime } from '../clock/local-time.ts';
import { formatWithOffset } from '../clock/wall-clock.ts';
import { readPhrase } from './phrase.ts';
import { PhraseError, type Reading, type Repetition } from './reading.ts';
import { exactDuration, seriesText, usesWallClock } from './series-text.ts';

/** A phrase that is read; `undefined` for one that is refused. */
function readOrRefused(phrase: string, context: { now: number; zone: string }): Reading | undefined {
  try {
    return readPhrase(phrase, context);
  } catch (thrown) {
    if (thrown instanceof PhraseError) return undefined;
    throw thrown;
  }
}

/**
 * `every weekday at 09:00`, `every 2 weeks on Monday at 10:00 from 2026-11-30`. Words that are not a phrase are followed
 * by the expression: `every day at 10:00, 5 times (RRULE:FREQ=DAILY;COUNT=5;…)`. Without words it is the expression.
 */
export function repetitionText(repetition: Repetition): string {
  const words = seriesText(repetition);
  const expression = (repetition.rrule ?? repetition.cron).trim().replace(/\s+/g, ' ');
  if (words === undefined) return expression;
  const reading = readOrRefused(words, { now: 0, zone: 'UTC' });
  return reading?.kind === 'series' && seriesText(reading) === words ? words : `${words} (${expression})`;
}

/** The short form for a narrow column: `weekdays 09:00`, `daily 09:00`, `Mondays 09:00`. */
export function shortRepetitionText(repetition: Repetition): string {
  const text = repetitionText(repetition);
  if (text !== seriesText(repetition)) return text;
  return text
    .replace(/^every (weekday|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day) at /, '$1s ')
    .replace(/^every day at /, 'daily ')
    .replace(/^every month on day /, 'monthly, day ')
    .replace(/^every hour at /, 'hourly at ');
}

/** `Tue 24 Nov 09:00 in Europe/Berlin`; with its offset if the clock shows that time twice. */
function instantText({ at, zone }: Extract<Reading, { kind: 'instant' }>, now: number): string {
  const text = `${calendarTime(at, { now, zone })} in ${zone}`;
  if (at <= now) return text;
  const reading = readOrRefused(text, { now, zone });
  return reading?.kind === 'instant' && reading.at === at
    ? text
    : `${at % 1000 === 0 ? formatWithOffset(zone, at) : formatInstant(at)} in ${zone}`;
}

/**
 * `every 2 weeks on Monday at 10:00 in Europe/Berlin`, `Tue 24 Nov 09:00 in Europe/Berlin (at 09:00, because no time was
 * given)`, `in 20 min`.
 */
export function readingText(reading: Reading, now: number): string {
  if (reading.kind === 'delay') return `in ${exactDuration(reading.seconds * 1000)}`;
  const { zone, assumed } = reading;
  const why = assumed === undefined ? '' : ` (${assumed})`;
  if (reading.kind === 'instant') return `${instantText(reading, now)}${why}`;
  const where = reading.cron !== undefined && !usesWallClock(reading.cron) ? '' : ` in ${zone}`;
  return `${repetitionText(reading)}${where}${why}`;
}
