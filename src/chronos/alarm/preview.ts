/** What an alarm would do, before it is set: its occurrences, with the effects of clock changes and holidays. Pure. */
import { formatDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import { offsetAt } from '../../kit/clock/zone.ts';
import type { AlarmPreview, AlarmPreviewRequest, PreviewedOccurrence } from '../../wire/alarm.ts';
import type { Overlap } from '../../wire/alarm-fields.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Alarm } from './alarm.ts';
import { type DefinitionLimits, draftAlarm, firstOccurrence } from './definition.ts';
import { isEvery } from './every.ts';
import { type Calendars, endOfCalendar, NO_CALENDARS } from './holidays.ts';
import type { Schedule } from './occurrence.ts';
import { encodeOptions, optionsOf } from './options.ts';
import { compileRule, compileSchedule } from './schedule.ts';
import { DEFAULT_TIMEZONE, seriesOf } from './series.ts';
import { notesOfEvents } from './waits-for.ts';
import { nextInstants, readingOf, type WordHours } from './when.ts';

const DAY_MS = 86_400_000;

/** Occurrences without `count`. */
const SHOWN = 10;
/** Excluded occurrences at most: a calendar may exclude a whole year of a dense series. */
const LEFT_OUT_MOST = 100;

/** Occurrences that are counted before `from`. */
const MOST_BEFORE = 50_000;

/** `02:30` of a wall time. */
const clock = (wall: number) => new Date(wall).toISOString().slice(11, 16);

/** The series on a calendar without clock changes; `undefined` when it counts in real time. */
function wallSeries({ cronExpr, anchor, kind, options }: Alarm, timezone: string): Schedule | undefined {
  try {
    if (kind === 'cron') return isEvery(cronExpr!) ? undefined : compileSchedule(cronExpr!, 'UTC', anchor);
    const floating = optionsOf({ options }).rrule!.replace(/;TZID=[^:;]+/gi, '');
    return compileRule(floating, 'UTC', anchor + offsetAt(timezone, anchor));
  } catch (error) {
    // A rule may name instants in UTC.
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
}

/** What a clock change does to an occurrence. @param unchanged its series on a calendar without clock changes */
function clockNote(at: number, timezone: string, unchanged: Schedule): string | undefined {
  const offset = offsetAt(timezone, at);
  const wall = at + offset;
  const before = offsetAt(timezone, at - 1);
  if (before < offset && unchanged.next(wall - 1) !== wall) {
    const skipped = unchanged.latest(at + before - 1, wall - 1);
    if (skipped) return `the clock skips ${clock(skipped.at)} on this day: the first instant after`;
  }
  const others = [offsetAt(timezone, at - DAY_MS), offsetAt(timezone, at + DAY_MS)].map((other) => wall - other);
  const other = others.find((instant) => instant !== at && instant + offsetAt(timezone, instant) === wall);
  if (other === undefined) return undefined;
  return `the clock shows ${clock(wall)} twice on this day: the ${other > at ? 'first' : 'second'}`;
}

const OVERLAP_NOTES: Readonly<Record<Overlap, string | undefined>> = {
  allow: undefined,
  skip: 'an occurrence is skipped while an earlier turn runs',
  buffer_one: 'while an earlier turn runs, the latest occurrence waits',
  buffer_all: 'while an earlier turn runs, occurrences wait and fire one after another',
};

/** What the other fields do, in words. */
function notesOf(alarm: Alarm): string[] {
  const { jitterSeconds, maxLatenessSeconds } = alarm;
  const { catch_up, catch_up_window_seconds: window, overlap = 'allow', pause_on_failure } = optionsOf(alarm);
  const seconds = (length: number) => formatDuration(length * 1000);
  const notes = [
    jitterSeconds > 0 ? `each fires up to ${seconds(jitterSeconds)} later, by its jitter` : undefined,
    catch_up === 'all' ? 'after downtime, all overdue occurrences fire' : undefined,
    catch_up === 'none' ? 'after downtime, overdue occurrences do not fire' : undefined,
    window === undefined ? undefined : `an occurrence that is overdue by more than ${seconds(window)} is missed`,
    OVERLAP_NOTES[overlap],
    pause_on_failure ? 'the series pauses when a fire or its turn fails' : undefined,
    maxLatenessSeconds === null
      ? undefined
      : `an occurrence that is later than ${seconds(maxLatenessSeconds)} is missed`,
  ];
  return notes.filter((note) => note !== undefined);
}

/** The occurrences that holidays exclude, up to an instant. */
function excludedBy(alarm: Alarm, after: number, until: number, calendars: Calendars): number[] {
  const all = { ...alarm, options: encodeOptions({ ...optionsOf(alarm), holidays: null }) };
  const [every, kept] = [seriesOf(all, NO_CALENDARS), seriesOf(alarm, calendars)];
  const excluded: number[] = [];
  for (let at = every.next(after); at !== undefined && at <= until; at = every.next(at)) {
    if (kept.next(at - 1) !== at) excluded.push(at);
    if (excluded.length === LEFT_OUT_MOST) break;
  }
  return excluded;
}

/**
 * The number of occurrences before `from`, which count for `max_fires`.
 *
 * @throws ReveilleError `invalid_request` when they are too many to count
 */
function firedBefore(alarm: Alarm, now: number, from: number, calendars: Calendars): number {
  if (alarm.maxFires === null) return 0;
  const series = seriesOf(alarm, calendars);
  let fired = 0;
  for (let at = series.next(now); at !== undefined && at < from && fired < alarm.maxFires; at = series.next(at))
    if (++fired > MOST_BEFORE)
      throw new ReveilleError(
        'invalid_request',
        `from is after more than ${MOST_BEFORE} occurrences, too many to count for max_fires; omit one of them`,
      );
  return fired;
}

type PreviewContext = {
  readonly now: number;
  readonly limits: DefinitionLimits;
  readonly hours?: WordHours | undefined;
  readonly calendars?: Calendars | undefined;
  /** The zone in which times are shown when the request names none. */
  readonly zone?: string | undefined;
};

/**
 * The next occurrences of an alarm that a request would set. Nothing is stored.
 *
 * @param request.from the first instant that is shown; by default the current one
 * @throws ReveilleError `invalid_request` as for a create
 */
export function previewAlarm(
  { count = SHOWN, from, wake_message = '', ...input }: AlarmPreviewRequest,
  { now, limits, hours, calendars = NO_CALENDARS, zone = DEFAULT_TIMEZONE }: PreviewContext,
): AlarmPreview {
  const alarm = draftAlarm({ ...input, wake_message }, { id: '', owner: '', now, limits, hours });
  firstOccurrence(alarm, now, limits, calendars);
  const reading = readingOf(alarm, input.timezone ?? zone, { now, hours, calendars });
  const { text, timezone } = reading;
  const after = (from ?? now + 1) - 1;
  const counted = { ...alarm, scheduledFires: firedBefore(alarm, now, after + 1, calendars) };
  const found = nextInstants(counted, after, count + 1, calendars);
  const shown = found.slice(0, count);
  const isSeries = alarm.kind === 'cron' || alarm.kind === 'rrule';
  const unchanged = isSeries ? wallSeries(alarm, timezone) : undefined;
  const noteOf = (at: number) =>
    alarm.kind === 'event' ? 'unless something comes' : unchanged && clockNote(at, timezone, unchanged);
  const previewed = (at: number, note: string | undefined): PreviewedOccurrence => ({
    ...{ at: formatInstant(at), local: formatWithOffset(timezone, at) },
    ...(note !== undefined && { note }),
  });
  const { holidays } = optionsOf(alarm);
  const until = found.at(-1) ?? after;
  const excluded = holidays === undefined ? [] : excludedBy(alarm, after, until, calendars);
  const ends = isSeries && found.length <= count ? ['the series ends after these'] : [];
  const ended = holidays === undefined ? undefined : endOfCalendar(holidays, { timezone, calendars, now: until });
  const unexcluded =
    ended === undefined ? [] : [`the calendar ${holidays} ends on ${ended}: it excludes nothing after that day`];
  return {
    kind: alarm.kind,
    text,
    timezone,
    reading,
    occurrences: shown.map((at) => previewed(at, noteOf(at))),
    ...(holidays !== undefined && {
      left_out: excluded.map((at) => previewed(at, `excluded by the calendar ${holidays}`)),
    }),
    notes: [...(alarm.kind === 'event' ? notesOfEvents(alarm) : []), ...notesOf(alarm), ...unexcluded, ...ends],
  };
}
