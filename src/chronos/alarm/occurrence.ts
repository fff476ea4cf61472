/**
 * Converts wall times to instants: the instants of a cron expression or a recurrence rule in a zone whose clock changes.
 *
 * The rules follow Vixie and ISC cron:
 *
 * - An expression whose minute or hour field starts with `*` follows real time. It is due in every real minute whose
 * wall clock reading matches. Readings that a forward change skips never occur; readings that a backward change repeats
 * occur twice. Examples: `30 * * * *`, `* 2 * * *`, every fifteen minutes from 2 to 4. A rule with FREQ=HOURLY,
 * MINUTELY or SECONDLY and without BYHOUR follows real time too, and counts its interval in real time.
 * - Every other expression or rule names fixed times. A fixed time is due once, in the first instant at which the wall
 * clock has reached it. That is its own minute on most days, its first reading when the clock goes back, and the first
 * instant after the gap when the clock skips it. Fixed times that become due in the same instant are one occurrence.
 *
 * Both rules iterate over the spans between clock changes. The iteration keeps `reached`, the latest wall time that has
 * been processed. A later matching wall time is due in the first span that reaches it. When a span begins, a series
 * that follows real time resets `reached`.
 */

import type { Span, Zone } from '../../kit/clock/zone.ts';
import { countWallTimes, HORIZON_YEARS, nextWallTime, shortestWallGap } from './calendar.ts';
import type { CronFields } from './cron.ts';

const DAY_MS = 86_400_000;
const HORIZON_MS = HORIZON_YEARS * 366 * DAY_MS;

/**
 * The largest backward change of a clock was one day (Alaska, 1867). So a zone does not repeat a reading of two days
 * ago.
 */
const LONGEST_FOLD_MS = 2 * DAY_MS;

/** The last instant of any series: RFC 3339 writes years with four digits. */
export const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59);

/** Queries that a series answers. It is immutable, and equal calls give equal results in every process. */
export type Schedule = {
  /**
   * The first occurrence strictly after `after`; `undefined` when there is none within 48 years or before the year
   * 10000.
   */
  next(after: number): number | undefined;
  /**
   * The latest occurrence in `(after, now]` and the exact number of occurrences in it; `undefined` when there was none.
   * For most series it is computed without iterating over them.
   */
  latest(after: number, now: number): { at: number; count: number } | undefined;
  /**
   * The shortest time between two consecutive occurrences, in milliseconds of the wall clock (a clock change can bring
   * two closer together). At least 60 000 for a cron expression. It is computed when it is first read.
   *
   * @throws ReveilleError `invalid_request` for a series whose next occurrence is too much work to find
   */
  readonly shortestIntervalMs: number;
};

/** Wall times of a series, on a calendar without zones. `offset` is the zone's, in the span that is searched. */
export type WallTimes = {
  readonly followsRealTime: boolean;
  /**
   * The first wall time after `after`. A series that follows real time may omit one that is later than `until`, the
   * end of the span.
   */
  next(after: number, until: number, offset: number): number | undefined;
  /** The number of wall times in `(after, until]`. */
  count(after: number, until: number, offset: number): number;
};

/** The queries of a schedule that depend on instants. */
export type Occurrences = Pick<Schedule, 'next' | 'latest'>;

/** The series of a cron expression in a zone. */
export function cronOccurrences(fields: CronFields, zone: Zone): Schedule {
  let shortest: number | undefined;
  const times: WallTimes = {
    followsRealTime: fields.followsRealTime,
    next: (after) => nextWallTime(fields, after),
    count: (after, until) => countWallTimes(fields, after, until),
  };
  return {
    ...occurrencesOf(times, zone),
    get shortestIntervalMs() {
      shortest ??= shortestWallGap(fields);
      return shortest;
    },
  };
}

/**
 * The occurrences of wall times in a zone.
 *
 * @param bounds the first and last instant that may be an occurrence
 */
export function occurrencesOf(
  times: WallTimes,
  zone: Zone,
  { start = Number.NEGATIVE_INFINITY, end = LAST_INSTANT }: { start?: number; end?: number } = {},
): Occurrences & {
  /** The number of occurrences in `(after, until]`. */
  count(after: number, until: number): number;
} {
  /** The value of `reached` at an instant in `span`. */
  function reachedAt(instant: number, span: Span): number {
    const shown = instant + span.offset;
    if (times.followsRealTime || instant - span.start > LONGEST_FOLD_MS) return shown;
    let reached = shown;
    for (let past = zone.spanAt(instant - LONGEST_FOLD_MS); past.end <= instant; past = zone.spanAt(past.end)) {
      reached = Math.max(reached, lastShown(past));
    }
    return reached;
  }

  /** The value of `reached` just before `span` begins, given its value after the earlier spans. */
  function reachedBefore(span: Span, reached: number): number {
    return times.followsRealTime ? span.start + span.offset - 1 : reached;
  }

  function next(given: number): number | undefined {
    const after = Math.max(given, start - 1);
    if (!(Math.abs(after) < LAST_INSTANT)) return undefined;
    let span = zone.spanAt(after);
    let reached = reachedAt(after, span);
    while (span.start - after < HORIZON_MS && span.start <= end) {
      const wallTime = times.next(reached, lastShown(span), span.offset);
      if (!times.followsRealTime && !(wallTime! < LAST_INSTANT + LONGEST_FOLD_MS)) return undefined;
      if (wallTime !== undefined && wallTime <= lastShown(span)) {
        // The clock may have skipped it: then it is due at the start of the span.
        const instant = Math.max(span.start, wallTime - span.offset);
        return instant <= end ? instant : undefined;
      }
      reached = Math.max(reached, lastShown(span));
      // A fixed time cannot become due before its neighbourhood; a series that follows real time may repeat readings.
      const skipsTo = times.followsRealTime ? span.end : Math.max(span.end, wallTime! - LONGEST_FOLD_MS);
      span = zone.spanAt(skipsTo);
      reached = reachedBefore(span, reached);
    }
    return undefined;
  }

  function count(from: number, to: number): number {
    const after = Math.max(from, start - 1);
    const until = Math.min(to, end);
    if (after >= until) return 0;
    let span = zone.spanAt(after);
    let reached = reachedAt(after, span);
    let total = 0;
    for (;;) {
      const opening = span.start + span.offset;
      if (reached < opening) {
        // Skipped times are due together with the span's first reading.
        if (times.count(reached, opening, span.offset) > 0) total++;
        reached = opening;
      }
      const shown = Math.min(span.end - 1, until) + span.offset;
      if (reached < shown) {
        total += times.count(reached, shown, span.offset);
        reached = shown;
      }
      if (until < span.end) return total;
      span = zone.spanAt(span.end);
      reached = reachedBefore(span, reached);
    }
  }

  function latest(after: number, now: number): { at: number; count: number } | undefined {
    const first = next(after);
    if (first === undefined || first > now) return undefined;
    return { at: latestFrom(first, now, next), count: count(after, now) };
  }

  return { next, latest, count };
}

/**
 * The latest occurrence up to `now`, given one. A binary search, so that a long gap costs little more than a short one.
 */
export function latestFrom(first: number, now: number, next: Schedule['next']): number {
  let known = first;
  let beyond = now;
  for (;;) {
    const following = next(known);
    if (following === undefined || following > now) return known;
    const middle = Math.floor((following + beyond) / 2);
    const candidate = next(middle);
    if (candidate !== undefined && candidate <= now) {
      known = candidate;
    } else {
      known = following;
      beyond = middle;
    }
  }
}

/** The last wall time, to the millisecond, that a clock shows in a span. */
function lastShown(span: Span): number {
  return span.end - 1 + span.offset;
}

/** The first instant at which the wall clock shows a time, or has skipped it. */
export function instantOfWall(zone: Zone, wallTime: number): number {
  // No offset is larger than a day.
  for (let span = zone.spanAt(wallTime - LONGEST_FOLD_MS); ; span = zone.spanAt(span.end)) {
    if (wallTime <= lastShown(span)) return Math.max(span.start, wallTime - span.offset);
  }
}
