/**
 * The wall clock of a time zone. Pure; instants are epoch milliseconds. A wall time is represented by the milliseconds
 * that its reading would be in UTC: wall time = instant + offset.
 */
import { nextChange, offsetAt } from './zone.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * The current day by the wall clock, counted from 1 January 1970.
 *
 * @param begins minute of the calendar day at which days begin; before it, the previous day continues
 */
export function dayAt(timezone: string, instant: number, begins = 0): number {
  return Math.floor((instant + offsetAt(timezone, instant) - begins * MINUTE_MS) / DAY_MS);
}

/**
 * The first instant after `instant` on a later day. If a clock change skips the time at which days begin, it is the
 * instant of the change.
 *
 * @param begins as for {@link dayAt}
 */
export function nextDayAfter(timezone: string, instant: number, begins = 0): number {
  const beginning = (dayAt(timezone, instant, begins) + 1) * DAY_MS + begins * MINUTE_MS;
  for (let at = instant; ; ) {
    const offset = offsetAt(timezone, at);
    if (at + offset >= beginning) return at;
    const end = beginning - offset;
    if (offsetAt(timezone, end) === offset) return end;
    at = nextChange(timezone, at, end);
  }
}

/** The beginning of the day that contains `instant`. @param begins as for {@link dayAt} */
export function dayBeganAt(timezone: string, instant: number, begins = 0): number {
  // Longer than any day.
  for (let at = instant - 1.5 * DAY_MS; ; ) {
    const next = nextDayAfter(timezone, at, begins);
    if (next > instant) return at;
    at = next;
  }
}

export type WallReading = {
  /** `2026-06-15` */
  readonly date: string;
  /** 0 is Monday. */
  readonly weekday: number;
  /** Whole minutes since midnight by the wall clock, 0 to 1439, ignoring skipped or repeated time. */
  readonly minuteOfDay: number;
};

/**
 * The wall clock of a zone at an instant.
 *
 * @throws RangeError for a zone that `Intl` does not know, or an instant outside the calendar
 */
export function wallReading(timezone: string, instant: number): WallReading {
  const wall = instant + offsetAt(timezone, instant);
  const day = Math.floor(wall / DAY_MS);
  return {
    date: dateText(wall),
    // 1 January 1970 was a Thursday.
    weekday: (((day + 3) % 7) + 7) % 7,
    minuteOfDay: Math.floor((wall - day * DAY_MS) / MINUTE_MS),
  };
}

const dateText = (wall: number) => new Date(wall).toISOString().split('T')[0]!;

const two = (number: number) => String(number).padStart(2, '0');

/**
 * An instant in a zone with its offset, in whole seconds: `2026-06-15T10:10:00+02:00`. Some offsets before 1972 have
 * seconds. They are truncated to minutes, and the time is adjusted, so the text names the same instant.
 *
 * @throws RangeError as {@link wallReading}
 */
export function formatWithOffset(timezone: string, instant: number): string {
  const offset = Math.trunc(offsetAt(timezone, instant) / MINUTE_MS);
  const wall = new Date(instant + offset * MINUTE_MS).toISOString().replace(/\.\d{3}Z$/, '');
  const size = Math.abs(offset);
  return `${wall}${offset < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
