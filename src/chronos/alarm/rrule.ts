/**
 * A series by recurrence rules: compiles the field `rrule` in a zone. Its rules, RDATE and EXDATE are combined as
 * instants, so that rules with fixed times and rules that follow real time mix.
 */
import { isZone, type Zone, zoneOf } from '../../kit/clock/zone.ts';
import {
  type Moment,
  parseRecurrence,
  type Recurrence,
  type Rule,
  recurrenceError,
} from '../../kit/recurrence/recurrence.ts';
import { showValue } from '../../wire/validate.ts';
import {
  instantOfWall,
  LAST_INSTANT,
  latestFrom,
  type Occurrences,
  occurrencesOf,
  type Schedule,
  type WallTimes,
} from './occurrence.ts';
import { countUpTo, followsRealTime, type RuleTimes, ruleTimes, TooManyTimes } from './rule-times.ts';
import { withoutDays } from './without-days.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;
const CENTURY_MS = 100 * YEAR_MS;

/** Occurrences that are expanded to check a rule when it is set, and the time within which. */
const CHECKED_OCCURRENCES = 1_000;
const CHECKED_MS = 40 * 366 * DAY_MS;
/** Steps that one search may take, about 50 µs. A rule with sparse days takes 500; one with impossible times, many more. */
const MOST_STEPS = 1_000;
/** Steps to find the end of a rule with COUNT. */
const MOST_STEPS_COUNTED = 100_000;
const TOO_MUCH_WORK =
  'the next occurrence takes too much work to find, because its interval rarely meets its times; name fewer BY parts or an interval that divides a day';
/** Occurrences that are compared one by one to count those of several rules. */
const MOST_COMPARED = 50_000;

/** One rule, or the list of RDATE. */
type Source = Occurrences & {
  count(after: number, until: number): number;
  /** Steps of the last search: those of the rule in each span between clock changes. */
  readonly steps: number;
};

/**
 * Compiles a recurrence.
 *
 * @param anchorMs where a recurrence without DTSTART begins, at a full minute
 * @throws ReveilleError `invalid_request` that names rrule or timezone, the value and the remedy
 */
export function compileRecurrence(text: string, timezone: string, anchorMs: number): Schedule {
  return recurrenceSchedule(parseRecurrence(text), timezone, { text, anchorMs });
}

/** The schedule of a recurrence that is read. @param given.text what error messages show */
export function recurrenceSchedule(
  { rules, start, added, excluded }: Recurrence,
  timezone: string,
  { text, anchorMs }: { text: string; anchorMs: number },
): Schedule {
  const zone = zoneOf(timezone);

  /** The instant of a moment: the first one at which the wall clock shows it or has skipped it. */
  function instantOf({ reading, zone: named }: Moment, name: string): number {
    if (named === undefined || named.toLowerCase() === timezone.toLowerCase()) return instantOfWall(zone, reading);
    if (named.toUpperCase() === 'UTC') return reading;
    if (!isZone(named))
      throw recurrenceError(
        text,
        `${name} is in zone ${showValue(named)}, which is not an IANA zone; omit TZID, and set timezone`,
      );
    throw recurrenceError(
      text,
      `${name} is in zone ${showValue(named)}, but timezone is ${showValue(timezone)}; set timezone to the zone of ${name}`,
    );
  }
  const instantsOf = (moments: readonly Moment[], name: string) =>
    sorted(moments.map((moment) => instantOf(moment, name)));

  // Without DTSTART the rules begin at a full minute, so that a rule without BYSECOND does not fire at odd seconds.
  const begin = start ? instantOf(start, 'DTSTART') : Math.floor(anchorMs / MINUTE_MS) * MINUTE_MS;
  const shown = begin + zone.spanAt(begin).offset;
  const wall = start === undefined || start.zone?.toUpperCase() === 'UTC' ? shown : start.reading;
  // A time that the clock skips is a reading with the offset of before.
  const { offset } = zone.spanAt(wall < shown ? begin - 1 : begin);
  // Without DTSTART the series begins after its anchor: COUNT counts the occurrences after the alarm was set.
  const first = start ? 0 : Math.floor(anchorMs / SECOND_MS) * SECOND_MS - begin + 1;
  let sources: Source[];
  try {
    sources = rules.map((rule) =>
      ruleOccurrences(rule, zone, { begin: begin + first, start: wall, first: wall + first, offset }, instantOf),
    );
  } catch (error) {
    if (error instanceof TooManyTimes || error instanceof TooMuchWork) throw recurrenceError(text, error.message);
    throw error;
  }
  const addedInstants = instantsOf(added, 'RDATE');
  if (addedInstants.length > 0) sources.push(listed(addedInstants));
  const days = sorted(excluded.filter(({ isDate }) => isDate).map(({ reading }) => reading / DAY_MS));
  const instants = instantsOf(
    excluded.filter(({ isDate }) => !isDate),
    'EXDATE',
  );
  const union = combined(sources, instants);
  const { next, latest } = days.length === 0 ? union : withoutDays(union, timezone, days);
  let shortest: number | undefined;
  return {
    next,
    latest,
    get shortestIntervalMs() {
      shortest ??= shortestGap(text, sources, next, { zone, from: Math.min(begin, ...addedInstants) - 1 });
      return shortest;
    },
  };
}

/** Each number once, in order. */
const sorted = (numbers: readonly number[]) => [...new Set(numbers)].sort((one, other) => one - other);

/** The occurrences of one rule. */
function ruleOccurrences(
  rule: Rule,
  zone: Zone,
  { begin, ...from }: { begin: number; start: number; first: number; offset: number },
  instantOf: (moment: Moment, name: string) => number,
): Source {
  const { until, count } = rule;
  const isRealTime = followsRealTime(rule);
  // A date as the end includes its day.
  const lastReading = until && (until.isDate ? until.reading + DAY_MS - 1 : until.reading);
  const end = until === undefined ? LAST_INSTANT : instantOf({ ...until, reading: lastReading! }, 'UNTIL');
  const last = until === undefined || until.zone === 'UTC' ? Number.POSITIVE_INFINITY : lastReading!;
  let steps = 0;
  const measured = (times: RuleTimes): WallTimes => ({
    ...times,
    next(after, until, offset) {
      const found = times.next(after, until, offset);
      steps += 1 + times.steps;
      if (steps > MOST_STEPS_COUNTED && isCounting) throw new TooMuchWork(TOO_MUCH_WORK);
      return found;
    },
  });
  let isCounting = count !== undefined;
  let times = measured(ruleTimes(rule, { ...from, last }));
  let lastInstant = end;
  if (count !== undefined && isRealTime) {
    lastInstant = nth(count, begin - 1, occurrencesOf(times, zone, { start: begin, end }).next, end);
  } else if (count !== undefined) {
    const next = (after: number) => times.next(after, LAST_INSTANT, from.offset);
    times = measured(ruleTimes(rule, { ...from, last: nth(count, from.first - 1, next, last) }));
  }
  isCounting = false;
  const { next, latest, count: countBetween } = occurrencesOf(times, zone, { start: begin, end: lastInstant });
  return {
    next(after) {
      steps = 0;
      return next(after);
    },
    latest,
    count: countBetween,
    get steps() {
      return steps;
    },
  };
}

/** A rule whose end by COUNT takes too much work to find. */
class TooMuchWork extends Error {}

/**
 * The nth occurrence after an instant or wall time; `otherwise` when there are fewer, or when it is more than a century
 * away: the zone would have to be read until then.
 */
function nth(count: number, after: number, next: Schedule['next'], otherwise: number): number {
  let found = 0;
  for (let at = after; at - after < CENTURY_MS; ) {
    const following = next(at);
    // No answer means that there is none within 48 years.
    if (following === undefined) at += 47 * YEAR_MS;
    else {
      at = following;
      if (++found === count) return at;
    }
  }
  return otherwise;
}

/** Occurrences that are listed, sorted. */
function listed(instants: readonly number[]): Source {
  const upTo = (instant: number) => countUpTo(instants, instant);
  const count = (after: number, until: number) => Math.max(0, upTo(until) - upTo(after));
  return {
    next: (after) => instants[upTo(after)],
    latest(after, now) {
      const at = instants[upTo(now) - 1];
      return at === undefined || at <= after ? undefined : { at, count: count(after, now) };
    },
    count,
    steps: 0,
  };
}

/** The union of sources without the excluded instants. */
function combined(sources: readonly Source[], excluded: readonly number[]): Occurrences {
  const isExcluded = new Set(excluded);
  const has = (source: Source, instant: number) => source.next(instant - 1) === instant;

  function next(after: number): number | undefined {
    for (let from = after; ; ) {
      let first: number | undefined;
      for (const source of sources) {
        const found = source.next(from);
        if (found !== undefined && (first === undefined || found < first)) first = found;
      }
      if (first === undefined || !isExcluded.has(first)) return first;
      from = first;
    }
  }

  function count(after: number, until: number): number {
    // Of instants in several sources, one counts. The source with the most is not iterated, nor is one with very many:
    // after long downtime, the instants that two such rules share count twice.
    const counted = sources
      .map((source) => ({ source, count: source.count(after, until) }))
      .sort((one, other) => other.count - one.count);
    let total = counted[0]!.count;
    for (const [index, { source, count: ofSource }] of counted.entries()) {
      if (index === 0 || ofSource === 0) continue;
      if (ofSource > MOST_COMPARED) {
        total += ofSource;
        continue;
      }
      const earlier = counted.slice(0, index);
      for (let at = source.next(after); at !== undefined && at <= until; at = source.next(at)) {
        const instant = at;
        if (!earlier.some((other) => has(other.source, instant))) total++;
      }
    }
    for (const instant of excluded)
      if (instant > after && instant <= until && sources.some((source) => has(source, instant))) total--;
    return total;
  }

  return {
    next,
    latest(after, now) {
      const first = next(after);
      if (first === undefined || first > now) return undefined;
      return { at: latestFrom(first, now, next), count: count(after, now) };
    },
  };
}

/**
 * The shortest distance between two of the first thousand occurrences within forty years. They show every distance between the days of a
 * month or week, and between times of day: a rule with more times than that is by minutes or seconds, and has one
 * distance. A time that the clock skips is moved, so it is not compared.
 */
function shortestGap(
  text: string,
  sources: readonly Source[],
  next: Schedule['next'],
  { zone, from }: { zone: Zone; from: number },
): number {
  let shortest = Number.POSITIVE_INFINITY;
  let previous: { at: number; wall: number } | undefined;
  for (let at = next(from), checked = 0; at !== undefined; at = next(at), checked++) {
    if (sources.reduce((sum, { steps }) => sum + steps, 0) > MOST_STEPS) throw recurrenceError(text, TOO_MUCH_WORK);
    if (checked === CHECKED_OCCURRENCES || at - from > CHECKED_MS) break;
    const { start, offset } = zone.spanAt(at);
    const isMoved = at === start && zone.spanAt(at - 1).offset < offset;
    const current: typeof previous = isMoved ? undefined : { at, wall: at + offset };
    // Real time and the wall clock differ over a clock change; one of them shows the distance that the rule names.
    if (previous && current) shortest = Math.min(shortest, Math.max(at - previous.at, current.wall - previous.wall));
    previous = current;
  }
  return shortest;
}
