/**
 * The wall clock of a time zone. Pure; instants are epoch milliseconds. A wall time is written as the milliseconds that
 * the same reading would be in UTC: wall time = instant + offset.
 */
import { nextChange, offsetAt } from './zone.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * The day that the wall clock shows, counted from 1 January 1970.
 *
 * @param begins the minute of the calendar day at which days begin; before it, it is still the day before
 */
export function dayAt(timezone: string, instant: number, begins = 0): number {
  return Math.floor((instant + offsetAt(timezone, instant) - begins * MINUTE_MS) / DAY_MS);
}

/**
 * The first instant after `instant` at which the wall clock shows a later day; where a change of the clock swallows the
 * time at which days begin, it is that change.
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

/**
 * When the day that `instant` lies in began.
 *
 * @param begins as for {@link dayAt}
 */
export function dayBeganAt(timezone: string, instant: number, begins = 0): number {
  // No day is as long as this.
  for (let at = instant - 1.5 * DAY_MS; ; ) {
    const next = nextDayAfter(timezone, at, begins);
    if (next > instant) return at;
    at = next;
  }
}

/** What the wall clock shows. */
export type WallReading = {
  /** `2026-06-15` */
  readonly date: string;
  /** 0 is Monday. */
  readonly weekday: number;
  /** Whole minutes since midnight as they are shown, 0 to 1439, whatever the clock skipped or repeated before. */
  readonly minuteOfDay: number;
};

/**
 * The wall clock of a zone at an instant.
 *
 * @throws RangeError for a zone that `Intl` does not know, and for an instant beyond the calendar
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
 * An instant on the wall clock of a zone, with its offset and in whole seconds: `2026-06-15T10:10:00+02:00`. Offsets
 * that have seconds, as some had before 1972, are written without them, and the time beside them so that it stays the
 * same instant.
 *
 * @throws RangeError as {@link wallReading}
 */
export function formatWithOffset(timezone: string, instant: number): string {
  const offset = Math.trunc(offsetAt(timezone, instant) / MINUTE_MS);
  const wall = new Date(instant + offset * MINUTE_MS).toISOString().replace(/\.\d{3}Z$/, '');
  const size = Math.abs(offset);
  return `${wall}${offset < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
