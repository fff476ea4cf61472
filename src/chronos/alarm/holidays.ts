/** Calendars of exclusion: the days on which a series does not fire. Pure; the files are read elsewhere. */
import { dayAt } from '../../kit/clock/wall-clock.ts';
import { isZone, zoneOf } from '../../kit/clock/zone.ts';
import type { CalendarEvent } from '../../kit/recurrence/calendar-file.ts';
import type { Moment } from '../../kit/recurrence/recurrence.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { instantOfWall, type Schedule } from './occurrence.ts';
import { recurrenceSchedule } from './rrule.ts';
import { withoutDays } from './without-days.ts';

const DAY_MS = 86_400_000;
/** An event that recurs without end is expanded until here. */
const EXPANDED_UNTIL = Date.UTC(2100, 0, 1);
const MOST_DAYS = 50_000;
/** Occurrences of all events: a rule by seconds would have billions. */
const MOST_OCCURRENCES = 200_000;

/** The installed calendars. Each daemon has its own. */
export type Calendars = {
  /**
   * The days of a calendar in a zone, sorted, each as its number since 1 January 1970; `undefined` when no usable
   * calendar has the name. The same list is returned until the calendar changes.
   */
  daysOf(name: string, timezone: string): readonly number[] | undefined;
  /** The names of the installed calendars. */
  names(): readonly string[];
};

/** Where none is installed. Series fire on all days then. */
export const NO_CALENDARS: Calendars = { daysOf: () => undefined, names: () => [] };

/** Series without their holidays, by the days of a calendar and by series. */
const excepted = new WeakMap<readonly number[], WeakMap<Schedule, Schedule>>();

/** `2026-12-25` of a day's number. */
export const dateOfDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);

/** A series without the days of a calendar; the series itself when the calendar is missing. */
export function withoutHolidays(
  series: Schedule,
  { calendar, timezone, calendars }: { calendar: string; timezone: string; calendars: Pick<Calendars, 'daysOf'> },
): Schedule {
  const days = calendars.daysOf(calendar, timezone);
  if (days === undefined) return series;
  const ofDays = excepted.get(days) ?? new WeakMap<Schedule, Schedule>();
  excepted.set(days, ofDays);
  const known = ofDays.get(series);
  if (known) return known;
  const { next, latest } = withoutDays(series, timezone, days);
  const schedule: Schedule = {
    next,
    latest,
    get shortestIntervalMs() {
      return series.shortestIntervalMs;
    },
  };
  ofDays.set(series, schedule);
  return schedule;
}

/** Whether a calendar is missing or cannot be read. */
export const isMissingCalendar = (calendar: string, calendars: Calendars): boolean =>
  calendars.daysOf(calendar, 'UTC') === undefined;

/** @throws ReveilleError `invalid_request` that lists the installed calendars, when none has the name */
export function requireCalendar(calendar: string, calendars: Calendars): void {
  const names = calendars.names();
  // Others are not looked up: a lookup remembers the names that it was asked for.
  if (names.includes(calendar)) {
    if (!isMissingCalendar(calendar, calendars)) return;
    throw new ReveilleError(
      'invalid_request',
      `holidays must name a usable calendar (got "${calendar}", whose file cannot be read); "reveille calendar list" says why`,
    );
  }
  const remedy =
    names.length > 0
      ? `installed are ${names.join(', ')}`
      : 'none is installed; add one with "reveille calendar add <name> <file>"';
  throw new ReveilleError('invalid_request', `holidays must name an installed calendar (got "${calendar}"); ${remedy}`);
}

/**
 * The days that events cover in a zone: all-day events their dates, others the days that they touch.
 *
 * @throws ReveilleError `invalid_request` for too many days
 */
export function daysOfEvents(events: readonly CalendarEvent[], timezone: string): readonly number[] {
  const days = new Set<number>();
  let occurrences = 0;
  const cover = (first: number, last: number) => {
    for (let day = first; day <= last; day++) {
      days.add(day);
      if (days.size > MOST_DAYS)
        throw new ReveilleError(
          'invalid_request',
          `the events cover more than ${MOST_DAYS} days; shorten them or end their rules`,
        );
    }
  };
  for (const event of events) {
    const { start, durationMs } = event;
    // Dates are the same in each zone. A zone that is not in the IANA database is read as the one of the series.
    const named = start.zone !== undefined && isZone(start.zone) ? start.zone : timezone;
    const zone = start.isDate ? 'UTC' : named;
    const instantOf = ({ reading, zone: written }: Moment) =>
      instantOfWall(zoneOf(!start.isDate && written !== undefined && isZone(written) ? written : zone), reading);
    const lengthMs = event.end && !start.isDate ? Math.max(0, instantOf(event.end) - instantOf(start)) : durationMs;
    const coverFrom = (instant: number) => {
      // A rule by hours has occurrences within the day.
      const day = start.isDate ? Math.floor(instant / DAY_MS) : dayAt(timezone, instant);
      cover(
        day,
        start.isDate ? day + lengthMs / DAY_MS - 1 : dayAt(timezone, Math.max(instant, instant + lengthMs - 1)),
      );
    };
    const begin = instantOf(start);
    const unzoned = (moment: Moment) => ({ ...moment, zone: moment.zone === 'UTC' ? 'UTC' : undefined });
    const excluded = event.excluded.map(unzoned);
    if (!excluded.some((moment) => instantOf({ ...moment, zone: moment.zone ?? start.zone }) === begin))
      coverFrom(begin);
    if (event.rules.length === 0 && event.added.length === 0) continue;
    const recurrence = { rules: event.rules, start: unzoned(start), added: event.added.map(unzoned), excluded };
    if (begin >= EXPANDED_UNTIL) continue;
    const series = recurrenceSchedule(recurrence, zone, { text: 'RRULE of an event', anchorMs: begin });
    // Refuses a rule whose occurrences are too much work to find.
    void series.shortestIntervalMs;
    for (let at = series.next(begin - 1); at !== undefined && at < EXPANDED_UNTIL; at = series.next(at)) {
      if (++occurrences > MOST_OCCURRENCES)
        throw new ReveilleError(
          'invalid_request',
          `the events recur more than ${MOST_OCCURRENCES} times until 2100; end their rules with UNTIL or COUNT`,
        );
      coverFrom(at);
    }
  }
  return [...days].sort((one, other) => one - other);
}
