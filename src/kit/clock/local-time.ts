/** Instants formatted for a person at this machine: in a time zone, and relative to now. */
import { formatDuration } from './duration.ts';
import { formatWithOffset } from './wall-clock.ts';
import { offsetAt } from './zone.ts';
import { correctionsOf } from './zone-corrections.ts';

/** The reader's time and zone. `zone` is an IANA name. */
export type LocalContext = { now: number; zone: string };

/** Each English locale has short names only for its own zones: CEST, EDT and AEST each need another locale. */
const NAMING_LOCALES = ['en-GB', 'en-US', 'en-AU'] as const;

/** `UTC-5`, `UTC+5:45` */
function offsetName(offsetMs: number): string {
  const minutes = Math.abs(offsetMs) / 60_000;
  const rest = minutes % 60 === 0 ? '' : `:${String(minutes % 60).padStart(2, '0')}`;
  return `UTC${offsetMs < 0 ? '-' : '+'}${Math.floor(minutes / 60)}${rest}`;
}

/** The short name of a zone at an instant: `CEST`, or `UTC+5:45` if English has no name for it. */
export function zoneName(epochMs: number, zone: string): string {
  // The name from a database that is too old may be that of another offset.
  const isCorrected = correctionsOf(zone, process.versions.tz).some(
    ({ from, until, keeps }) => typeof keeps === 'number' && from <= epochMs && epochMs < until,
  );
  if (isCorrected) return offsetName(offsetAt(zone, epochMs));
  const names = NAMING_LOCALES.map((locale) => {
    const parts = new Intl.DateTimeFormat(locale, { timeZone: zone, timeZoneName: 'short' }).formatToParts(epochMs);
    return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC';
  });
  return names.find((name) => !/^GMT[+-]/.test(name)) ?? names[0]!.replace('GMT', 'UTC');
}

function wallClock(epochMs: number, zone: string): { date: string; time: string } {
  const shown = formatWithOffset(zone, epochMs);
  return { date: shown.slice(0, 10), time: shown.slice(11, 19) };
}

/** `14:10:00` on the reader's current day, `2026-06-15 14:10:00` on any other. */
export function wallTime(epochMs: number, { now, zone }: LocalContext): string {
  const { date, time } = wallClock(epochMs, zone);
  return date === wallClock(now, zone).date ? time : `${date} ${time}`;
}

/** {@link wallTime} with the zone: `14:10:00 CEST`. */
export function localTime(epochMs: number, here: LocalContext): string {
  return `${wallTime(epochMs, here)} ${zoneName(epochMs, here.zone)}`;
}

/** Rounding of a distance: the smaller of its two displayed units. */
function resolutionOf(distanceMs: number): number {
  if (distanceMs < 10_000) return 1;
  if (distanceMs < 3_600_000) return 1000;
  return distanceMs < 86_400_000 ? 60_000 : 3_600_000;
}

const WEEKDAYS = 'Sun Mon Tue Wed Thu Fri Sat'.split(' ');
const MONTHS = 'January February March April May June July August September October November December'.split(' ');

/** `November` for 11. */
export const monthName = (month: number): string => MONTHS[month - 1]!;

/** `23 Nov` */
function dayAndMonth(date: string): string {
  const [, month, day] = date.split('-').map(Number);
  return `${day} ${monthName(month!).slice(0, 3)}`;
}

/** Weekday, day and time in a zone, with the year if it differs: `Mon 23 Nov 09:00`, `Fri 1 Jan 2027 12:00`. */
export function calendarTime(epochMs: number, { now, zone }: LocalContext): string {
  const { date, time } = wallClock(epochMs, zone);
  const weekday = WEEKDAYS[new Date(`${date}T00:00:00Z`).getUTCDay()]!;
  const named = `${weekday} ${dayAndMonth(date)}`;
  const year = date.slice(0, 4);
  const shown = time.endsWith(':00') ? time.slice(0, 5) : time;
  return year === wallClock(now, zone).date.slice(0, 4) ? `${named} ${shown}` : `${named} ${year} ${shown}`;
}

/** The rounded distance of an instant: `in 9 min 58 s`, `2 h ago`, `now`. */
export function fromNow(epochMs: number, now: number): string {
  const distance = Math.abs(epochMs - now);
  if (distance < 1000) return 'now';
  // Rounds to the nearest unit: two hours minus the milliseconds of the request are shown as two hours.
  const whole = Math.round(distance / 1000) * 1000;
  const resolution = resolutionOf(distance < 10_000 ? distance : whole);
  const text = formatDuration(Math.round(distance / resolution) * resolution);
  return epochMs > now ? `in ${text}` : `${text} ago`;
}

/** An instant for a narrow column: `14:10:00` today, `15 Jun 09:00` this year, `15 Jun 2027` in another. */
export function shortTime(epochMs: number, { now, zone }: LocalContext): string {
  const { date, time } = wallClock(epochMs, zone);
  const today = wallClock(now, zone).date;
  if (date === today) return time;
  const year = date.slice(0, 4);
  return `${dayAndMonth(date)} ${year === today.slice(0, 4) ? time.slice(0, 5) : year}`;
}
