/**
 * Wall times, calendar days and times of day in phrases. Pure. A wall time is represented by the milliseconds that its
 * reading would be in UTC.
 */
import { formatWithOffset } from '../clock/wall-clock.ts';
import { offsetAt } from '../clock/zone.ts';
import { PhraseError, type PhraseHours } from './reading.ts';

export const SECOND_MS = 1000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** How an hour was written: `9am`, `9:00`, `9`, `noon`, `midnight`, `end of day`. */
type TimeStyle = 'half' | 'colon' | 'bare' | 'noon' | 'midnight' | 'end of day';
/** A time of the day, with its spelling. */
export type Time = {
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly as: TimeStyle /** The typed hour, if nothing else was typed. */;
  readonly word?: string;
};
/** A part of the day, which selects one of two possible hours. */
export type HalfDay = 'morning' | 'afternoon' | 'evening' | 'night';

/** The beginning of a day as a wall time; `undefined` if its month does not have that day. */
export function calendarDay(year: number, month: number, day: number): number | undefined {
  const wall = Date.UTC(year, month - 1, day);
  const read = new Date(wall);
  return read.getUTCMonth() === month - 1 && read.getUTCDate() === day ? wall : undefined;
}

const two = (value: number) => String(value).padStart(2, '0');

/** A wall time as `2026-12-01 09:00`. */
export function formatWall(wall: number): string {
  const text = new Date(wall).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, text.slice(17, 19) === '00' ? 16 : 19)}`;
}

export const wallOf = (instant: number, zone: string) => instant + offsetAt(zone, instant);
export const dayOf = (wall: number) => Math.floor(wall / DAY_MS) * DAY_MS;

/** The instants at which a zone's clocks show a wall time: usually one, or none or two at a clock change. */
function instantsOf(wall: number, zone: string): number[] {
  const offsets = new Set([offsetAt(zone, wall - DAY_MS), offsetAt(zone, wall + DAY_MS)]);
  return [...offsets]
    .map((offset) => wall - offset)
    .filter((instant) => wallOf(instant, zone) === wall)
    .sort((one, other) => one - other);
}

export function instantOf(wall: number, zone: string): number {
  const found = instantsOf(wall, zone);
  if (found.length === 1) return found[0]!;
  const [date, time] = formatWall(wall).split(' ') as [string, string];
  if (found.length === 2)
    throw new PhraseError(
      `the clocks in ${zone} show ${time} twice on ${date}`,
      found.map((instant) => formatWithOffset(zone, instant)),
    );
  // The clocks skip it: offer the times before and after the gap.
  const before = offsetAt(zone, wall - DAY_MS);
  const after = offsetAt(zone, wall + DAY_MS);
  throw new PhraseError(
    `the clocks in ${zone} skip ${time} on ${date}`,
    [wall - after, wall - before].map((instant) => formatWall(wallOf(instant, zone))),
  );
}

/** The hour, 0 to 23. @throws PhraseError if it is ambiguous */
export function hourOf({ hour, minute, as, word }: Time, half: HalfDay | undefined): number {
  const write = (hours: number) => `${hours}:${two(minute)}`;
  if (half !== undefined && as !== 'half' && as !== 'noon' && as !== 'midnight' && hour <= 12) {
    const later = hour === 12 ? 12 : hour + 12;
    if (half === 'morning' && hour < 12) return hour;
    if (half === 'afternoon' && (hour === 12 || hour <= 6) && hour > 0) return later;
    if (half === 'evening' && hour >= 5 && hour < 12) return later;
    if (half === 'night' && hour >= 8 && hour < 12) return later;
    throw new PhraseError(
      `${hour} ${half === 'night' ? 'at' : 'in the'} ${half} can be two times; write the day and the hour, as in "december 24 at ${two(hour)}:${two(minute)}"`,
    );
  }
  if (half !== undefined && as !== 'midnight') {
    const spans = { morning: [0, 12], afternoon: [12, 19], evening: [16, 24], night: [18, 24] } as const;
    const [from, to] = spans[half];
    if (hour < from || hour >= to)
      throw new PhraseError(
        `${write(hour)} is not ${half === 'night' ? 'at' : 'in the'} ${half}; write the hour without "${half}"`,
      );
  }
  if (as === 'bare' && ((hour >= 1 && hour <= 8) || hour === 12)) {
    throw new PhraseError(
      `"at ${hour}" can be two times`,
      hour === 12 ? ['noon', 'midnight'] : [write(hour), write(hour + 12)],
      word === undefined
        ? {}
        : { replaces: new RegExp(`\\b${word}\\b(?! ?(?:st|nd|rd|th|[ap]\\.?m|hours?|minutes?))( o'clock)?`, 'i') },
    );
  }
  return hour;
}

export function timeOfDay(time: Time, half: HalfDay | undefined): number {
  return hourOf(time, half) * HOUR_MS + time.minute * MINUTE_MS + time.second * SECOND_MS;
}

/** A time of day from minutes since midnight. */
const atMinutes = (minutes: number): Time => ({
  ...{ hour: Math.floor(minutes / 60), minute: minutes % 60, second: 0, as: 'colon' },
});

/** `09:00` */
export const clockText = ({ hour, minute }: Pick<Time, 'hour' | 'minute'>): string => `${two(hour)}:${two(minute)}`;

/** The end of a day of the week, Sunday 0. */
export const endOfDay = (hours: PhraseHours, weekday: number): Time => atMinutes(hours.endOfDay[weekday]!);

const NOON = 12 * 60;
const MORNING = 9 * 60;
const AFTERNOON = 15 * 60;

/** The time of a day without one. */
export function usualTime(half: HalfDay | undefined, { usual, evening }: PhraseHours): Time {
  if (half === 'evening' || half === 'night') return atMinutes(evening);
  if (half === 'afternoon') return atMinutes(AFTERNOON);
  return atMinutes(half === 'morning' && usual >= NOON ? MORNING : usual);
}
