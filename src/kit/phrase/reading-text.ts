/** Formats readings for people. Pure. */
import { formatDuration } from '../clock/duration.ts';
import { calendarTime } from '../clock/local-time.ts';
import { recurrenceText } from '../recurrence/recurrence-text.ts';
import type { Reading, Repetition } from './reading.ts';
import { seriesText, usesWallClock } from './series-text.ts';

/** `every weekday at 09:00`, `every 2 weeks on Monday at 10:00`; the expression itself if no phrase describes it. */
export function repetitionText({ cron, rrule }: Repetition): string {
  if (rrule !== undefined) return recurrenceText(rrule) ?? rrule.replace(/\s+/g, ' ');
  return seriesText(cron) ?? cron;
}

/**
 * `every 2 weeks on Monday at 10:00 in Europe/Berlin`, `Tue 24 Nov 09:00 in Europe/Berlin (at 09:00, because no time was
 * given)`, `in 20 min`.
 */
export function readingText(reading: Reading, now: number): string {
  if (reading.kind === 'delay') return `in ${formatDuration(reading.seconds * 1000)}`;
  const { zone, assumed } = reading;
  const why = assumed === undefined ? '' : ` (${assumed})`;
  if (reading.kind === 'instant') return `${calendarTime(reading.at, { now, zone })} in ${zone}${why}`;
  const where = reading.cron !== undefined && !usesWallClock(reading.cron) ? '' : ` in ${zone}`;
  return `${repetitionText(reading)}${where}${why}`;
}
