/** Calendars of exclusion: the days on which a series does not fire. Pure; the files are read elsewhere. */
import { dayAt } from '../../kit/clock/wall-clock.ts';
import { type Zone, zoneOf } from '../../kit/clock/zone.ts';
import type { CalendarEvent, OmittedEvent } from '../../kit/recurrence/calendar-file.ts';
import type { Moment, Recurrence, Rule } from '../../kit/recurrence/recurrence.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { zoneOfObservances } from './calendar-zone.ts';
import { instantOfWall, type Schedule } from './occurrence.ts';
import { recurrenceSchedule } from './rrule.ts';
import { withoutDays } from './without-days.ts';

const DAY_MS = 86_400_000;
/** An event that recurs without end is expanded until here. */
const EXPANDED_UNTIL = Date.UTC(2100, 0, 1);
const MOST_DAYS = 50_000;
/** Occurrences of an event: a rule by seconds would have billions. */
const MOST_OCCURRENCES = 200_000;
/** Occurrences of all events, with the omitted ones. */
const MOST_WORK = 5 * MOST_OCCURRENCES;

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

/** The last day of a calendar, such as `2026-12-26`, when it has passed: the calendar excludes nothing any more. */
export function endOfCalendar(
  calendar: string,
  { timezone, calendars, now }: { timezone: string; calendars: Pick<Calendars, 'daysOf'>; now: number },
): string | undefined {
  const last = calendars.daysOf(calendar, timezone)?.at(-1);
  return last !== undefined && last < dayAt(timezone, now) ? dateOfDay(last) : undefined;
}

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
 * @param omit called with each event that recurs too often or for too long; it covers no day
 * @throws ReveilleError `invalid_request` when all events together are too much work
 */
export function daysOfEvents(
  events: readonly CalendarEvent[],
  timezone: string,
  omit: (event: OmittedEvent) => void = () => {},
): readonly number[] {
  const days = new Set<number>();
  let work = 0;
  for (const event of events) {
    try {
      for (const day of daysOfEvent(event, timezone, () => work++)) days.add(day);
    } catch (error) {
      if (!(error instanceof ReveilleError)) throw error;
      omit({ place: event.place, summary: event.summary, problem: error.message });
    }
    if (days.size > MOST_DAYS || work > MOST_WORK)
      throw new ReveilleError(
        'invalid_request',
        `the events cover more than ${MOST_DAYS} days or recur more than ${MOST_WORK} times; shorten them or end their rules`,
      );
  }
  return [...days].sort((one, other) => one - other);
}

/** @param count is called for each occurrence */
function daysOfEvent(event: CalendarEvent, timezone: string, count: () => void): Set<number> {
  const { start, rules, added, excluded, exceptions, zones } = event;
  const zoneNamed = (name: string | undefined): Zone => {
    const described = name === undefined ? undefined : zones.get(name);
    return typeof described === 'object' ? zoneOfObservances(described) : zoneOf(name ?? timezone);
  };
  const zone = start.isDate ? zoneOf('UTC') : zoneNamed(start.zone);
  const instantOf = (moment: Moment) =>
    instantOfWall(
      moment.zone === undefined || moment.zone === start.zone ? zone : zoneNamed(moment.zone),
      moment.reading,
    );
  /** A moment on the wall clock of the event, on which it recurs. */
  const wallOf = (moment: Moment): Moment => {
    const { reading, isDate, zone: named } = moment;
    if (isDate || named === undefined || named === start.zone) return { reading, isDate, zone: undefined };
    const instant = instantOf(moment);
    return { reading: instant + zone.spanAt(instant).offset, isDate, zone: undefined };
  };

  const days = new Set<number>();
  const cover = (first: number, last: number) => {
    for (let day = first; day <= last; day++) {
      days.add(day);
      if (days.size > MOST_DAYS)
        throw new ReveilleError('invalid_request', `it covers more than ${MOST_DAYS} days; end its rule with UNTIL`);
    }
  };
  const lengthOf = ({ start: begin, end, durationMs }: Pick<CalendarEvent, 'start' | 'end' | 'durationMs'>) =>
    end === undefined || begin.isDate ? durationMs : Math.max(0, instantOf(end) - instantOf(begin));
  const ownLength = lengthOf(event);
  const periods = new Map(
    added.flatMap((one) => (one.lengthMs === undefined ? [] : [[wallOf(one).reading, one.lengthMs]])),
  );
  const changes = event.changes
    .map(({ from, by }) => ({ from: wallOf(from).reading, by, length: by === undefined ? 0 : lengthOf(by) }))
    .sort((one, other) => one.from - other.from);
  const coverFrom = (wall: number) => {
    const change = changes.findLast(({ from }) => from <= wall);
    if (change !== undefined && change.by === undefined) return;
    const isDate = change?.by?.start.isDate ?? start.isDate;
    const length = change?.length ?? periods.get(wall) ?? ownLength;
    const moved = change?.by === undefined ? wall : wall + wallOf(change.by.start).reading - change.from;
    const instant = isDate ? moved : instantOfWall(zone, moved);
    // A rule by hours has occurrences within the day.
    const day = isDate ? Math.floor(instant / DAY_MS) : dayAt(timezone, instant);
    cover(day, isDate ? day + length / DAY_MS - 1 : dayAt(timezone, Math.max(instant, instant + length - 1)));
  };

  const begin = wallOf(start).reading;
  const isSingle = rules.length + added.length + excluded.length + exceptions.length === 0;
  if (isSingle || begin >= EXPANDED_UNTIL) {
    count();
    coverFrom(begin);
    return days;
  }
  const floating = (list: readonly Rule[]) =>
    list.map((rule) => ({ ...rule, until: rule.until && wallOf(rule.until) }));
  const series = (recurrence: Omit<Recurrence, 'start'>) =>
    recurrenceSchedule({ ...recurrence, start: wallOf(start) }, 'UTC', { text: 'RRULE of an event', anchorMs: begin });
  // The start is an occurrence also where no rule names it.
  const walls = [start, ...added].map(wallOf);
  const kept = series({ rules: floating(rules), added: walls, excluded: excluded.map(wallOf) });
  const exceptional =
    exceptions.length === 0 ? undefined : series({ rules: floating(exceptions), added: [], excluded: [] });
  // Refuses a rule whose occurrences are too much work to find.
  void kept.shortestIntervalMs;
  void exceptional?.shortestIntervalMs;
  const first = walls.reduce((least, { reading }) => Math.min(least, reading), begin);
  let occurrences = 0;
  for (let at = kept.next(first - 1); at !== undefined && at < EXPANDED_UNTIL; at = kept.next(at)) {
    count();
    if (++occurrences > MOST_OCCURRENCES)
      throw new ReveilleError(
        'invalid_request',
        `it recurs more than ${MOST_OCCURRENCES} times until 2100; end its rule with UNTIL or COUNT`,
      );
    if (exceptional?.next(at - 1) !== at) coverFrom(at);
  }
  return days;
}
