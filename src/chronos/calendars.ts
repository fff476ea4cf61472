/** The calendars of exclusion on disk: iCalendar files `NAME.ics` in one folder, read when an alarm needs them. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../kit/clock/clock.ts';
import { replaceFile } from '../kit/identity/private-file.ts';
import type { Logger } from '../kit/log/log.ts';
import { type CalendarEvent, type OmittedEvent, parseCalendar } from '../kit/recurrence/calendar-file.ts';
import { ReveilleError, systemCodeOf, thrownText } from '../wire/errors.ts';
import { showValue } from '../wire/validate.ts';
import { type Calendars, dateOfDay, daysOfEvents } from './alarm/holidays.ts';

const LOOK_EVERY_MS = 1_000;
const SUFFIX = '.ics';
const MOST_CHARACTERS = 4 * 1024 * 1024;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * The number of days of a calendar, and the first and last one, such as `2026-12-25`. `problems` has the first events
 * that cannot be used, of `left_out` in all.
 */
export type CalendarSummary = {
  name: string;
  days: number;
  from?: string;
  to?: string;
  error?: string;
  left_out?: number;
  problems?: string[];
};
const MOST_PROBLEMS = 100;

/** The events of a file, and the ones that cannot be used. */
type Events = ReturnType<typeof parseCalendar>;

/** The folder of the calendars, by the settings of chronosd. */
export const calendarsFolder = (settings: {
  readonly CHRONOS_CALENDARS_DIR?: string | undefined;
  readonly CHRONOS_DATA_DIR?: string | undefined;
}): string => settings.CHRONOS_CALENDARS_DIR ?? join(settings.CHRONOS_DATA_DIR!, 'calendars');

/** @throws ReveilleError `invalid_request` for a name that is no plain file name */
export function checkCalendarName(name: string): string {
  if (NAME.test(name)) return name;
  throw new ReveilleError(
    'invalid_request',
    `the name of a calendar has letters, digits, dots, underscores and hyphens, at most 64 (got ${showValue(name)})`,
  );
}

const pathOf = (folder: string, name: string) => join(folder, `${checkCalendarName(name)}${SUFFIX}`);

/** @throws ReveilleError `invalid_request` with line and column */
function eventsOf(text: string): Events {
  if (text.length > MOST_CHARACTERS)
    throw new ReveilleError(
      'invalid_request',
      `the file must have at most ${MOST_CHARACTERS} characters (it has ${text.length})`,
    );
  return parseCalendar(text);
}

/** @throws ReveilleError `invalid_request` with line and column, or when it is no file or too large */
function eventsIn(path: string): Events {
  const stats = statSync(path);
  // A pipe or a device would never end.
  if (!stats.isFile()) throw new ReveilleError('invalid_request', 'it is no file');
  // A character has at most four bytes.
  if (stats.size > MOST_CHARACTERS * 4)
    throw new ReveilleError('invalid_request', `the file must have at most ${MOST_CHARACTERS} characters`);
  return eventsOf(readFileSync(path, 'utf8'));
}

/** `line 12, column 7: this event has no DTSTART ("Office party")` */
function problemText({ place, problem, summary }: OmittedEvent): string {
  const named = summary === undefined ? '' : ` (${showValue(summary)})`;
  return `line ${place.line}, column ${place.column}: ${problem}${named}`;
}

function summaryOf(name: string, { events, omitted }: Events): CalendarSummary {
  const problems = [...omitted];
  const days = daysOfEvents(events, 'UTC', (event) => problems.push(event));
  const [first, last] = [days[0], days.at(-1)];
  return {
    ...{ name, days: days.length, ...(first !== undefined && { from: dateOfDay(first), to: dateOfDay(last!) }) },
    ...(problems.length > 0 && {
      left_out: problems.length,
      problems: problems.slice(0, MOST_PROBLEMS).map(problemText),
    }),
  };
}

/**
 * Installs a calendar, replacing one with its name. Events that cannot be used are left out.
 *
 * @throws ReveilleError `invalid_request` for a file without days, or with line and column for one that does not parse
 */
export function addCalendar(folder: string, name: string, text: string): CalendarSummary {
  const path = pathOf(folder, name);
  const summary = summaryOf(name, eventsOf(text));
  if (summary.days === 0)
    throw new ReveilleError(
      'invalid_request',
      summary.problems?.[0] ?? 'the file has no events; a calendar needs VEVENT components with DTSTART',
    );
  mkdirSync(folder, { recursive: true });
  replaceFile(path, text, { mode: 0o644 });
  return summary;
}

/** The names of the installed calendars, sorted; none without the folder. */
export function calendarNames(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith(SUFFIX))
      .map((file) => file.slice(0, -SUFFIX.length))
      .filter((name) => NAME.test(name))
      .sort();
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** The installed calendars; an unusable one with its error. */
export function listCalendars(folder: string): CalendarSummary[] {
  return calendarNames(folder).map((name) => {
    try {
      return summaryOf(name, eventsIn(pathOf(folder, name)));
    } catch (error) {
      return { name, days: 0, error: thrownText(error) };
    }
  });
}

/** @returns false if no calendar has the name */
export function removeCalendar(folder: string, name: string): boolean {
  try {
    rmSync(pathOf(folder, name));
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

type Read = {
  /** Of the clock's monotonic time. */
  lookedAt: number;
  /** Changes when the file does; empty without a file. */
  version: string;
  events: readonly CalendarEvent[] | undefined;
  /** By zone. */
  days: Map<string, readonly number[] | undefined>;
};

/**
 * The calendars of a daemon. A calendar is read when an alarm first needs it, and again when its file has changed; that is
 * looked at no more than once a second. A missing or unusable calendar is logged once.
 */
export function openCalendars(
  folder: string,
  { clock, log }: { clock: Pick<Clock, 'monotonic'>; log: Pick<Logger, 'warn'> },
): Calendars {
  const read = new Map<string, Read>();

  function versionOf(path: string): string {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? '' : `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
  }

  const warnOf = (name: string, omitted: readonly OmittedEvent[]) =>
    log.warn(
      { calendar: name, folder, leftOut: omitted.length, problem: problemText(omitted[0]!) },
      'events of the calendar cannot be used; alarms with it fire on their days too',
    );

  function look(name: string): Read {
    const known = read.get(name);
    const now = clock.monotonic();
    if (known && now - known.lookedAt < LOOK_EVERY_MS) return known;
    const path = join(folder, `${name}${SUFFIX}`);
    let version = '';
    let events: readonly CalendarEvent[] | undefined;
    try {
      version = NAME.test(name) ? versionOf(path) : '';
      if (known && known.version === version) {
        known.lookedAt = now;
        return known;
      }
      if (version !== '') {
        const { events: usable, omitted } = eventsIn(path);
        events = usable;
        if (omitted.length > 0) warnOf(name, omitted);
      } else log.warn({ calendar: name, folder }, 'the calendar is missing; alarms with it fire on its days too');
    } catch (error) {
      log.warn(
        { calendar: name, folder, err: error },
        'the calendar cannot be read; alarms with it fire on its days too',
      );
    }
    const found: Read = { lookedAt: now, version, events, days: new Map() };
    read.set(name, found);
    return found;
  }

  return {
    daysOf(name, timezone) {
      const { events, days } = look(name);
      if (events === undefined) return undefined;
      const zone = timezone.toLowerCase();
      if (!days.has(zone)) {
        try {
          const omitted: OmittedEvent[] = [];
          days.set(
            zone,
            daysOfEvents(events, timezone, (event) => omitted.push(event)),
          );
          if (omitted.length > 0) warnOf(name, omitted);
        } catch (error) {
          days.set(zone, undefined);
          log.warn(
            { calendar: name, folder, err: error },
            'the calendar cannot be used; alarms with it fire on its days too',
          );
        }
      }
      return days.get(zone);
    },
    names: () => calendarNames(folder),
  };
}
