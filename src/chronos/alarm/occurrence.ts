/**
 * Converts wall times to instants: the instants of a cron expression in a zone whose clock changes.
 *
 * The rules follow Vixie and ISC cron:
 *
 * - An expression whose minute or hour field starts with `*` follows real time. It is due in every real minute whose
 * wall clock reading matches. Readings that a forward change skips never occur; readings that a backward change repeats
 * occur twice. Examples: `30 * * * *`, `* 2 * * *`, every fifteen minutes from 2 to 4.
 * - Every other expression names fixed times. A fixed time is due once, in the first instant at which the wall clock
 * has reached it. That is its own minute on most days, its first reading when the clock goes back, and the first
 * instant after the gap when the clock skips it. Fixed times that become due in the same instant are one occurrence.
 *
 * Both rules iterate over the spans between clock changes. The iteration keeps `reached`, the latest wall time that has
 * been processed. A later matching wall time is due in the first span that reaches it. When a span begins, a series
 * that follows real time resets `reached`.
 */

import type { Span, Zone } from '../../kit/clock/zone.ts';
import { countWallTimes, HORIZON_YEARS, nextWallTime, shortestWallGap } from './calendar.ts';
import type { CronFields } from './cron.ts';
import type { CronSchedule } from './cron-schedule.ts';

const DAY_MS = 86_400_000;
const HORIZON_MS = HORIZON_YEARS * 366 * DAY_MS;

/**
 * The largest backward change of a clock was one day (Alaska, 1867). So a zone does not repeat a reading of two days
 * ago.
 */
const LONGEST_FOLD_MS = 2 * DAY_MS;

/** The last instant of any series: RFC 3339 writes years with four digits. */
export const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59);

/** The series of a cron expression in a zone. */
export function cronOccurrences(fields: CronFields, zone: Zone): CronSchedule {
  /** The value of `reached` at an instant in `span`. */
  function reachedAt(instant: number, span: Span): number {
    const shown = instant + span.offset;
    if (fields.followsRealTime || instant - span.start > LONGEST_FOLD_MS) return shown;
    let reached = shown;
    for (let past = zone.spanAt(instant - LONGEST_FOLD_MS); past.end <= instant; past = zone.spanAt(past.end)) {
      reached = Math.max(reached, lastShown(past));
    }
    return reached;
  }

  /** The value of `reached` just before `span` begins, given its value after the earlier spans. */
  function reachedBefore(span: Span, reached: number): number {
    return fields.followsRealTime ? span.start + span.offset - 1 : reached;
  }

  function next(after: number): number | undefined {
    if (!(Math.abs(after) < LAST_INSTANT)) return undefined;
    let span = zone.spanAt(after);
    let reached = reachedAt(after, span);
    while (span.start - after < HORIZON_MS) {
      const wallTime = nextWallTime(fields, reached);
      if (wallTime === undefined) return undefined;
      if (wallTime <= lastShown(span)) return within(span, wallTime);
      reached = Math.max(reached, lastShown(span));
      // A fixed time cannot become due before its neighbourhood; a series that follows real time may repeat readings.
      span = zone.spanAt(fields.followsRealTime ? span.end : Math.max(span.end, wallTime - LONGEST_FOLD_MS));
      reached = reachedBefore(span, reached);
    }
    return undefined;
  }

  /** The number of occurrences in `(after, until]`. */
  function count(after: number, until: number): number {
    let span = zone.spanAt(after);
    let reached = reachedAt(after, span);
    let total = 0;
    for (;;) {
      const opening = span.start + span.offset;
      if (reached < opening) {
        // Skipped times are due together with the span's first reading.
        if (countWallTimes(fields, reached, opening) > 0) total++;
        reached = opening;
      }
      const shown = Math.min(span.end - 1, until) + span.offset;
      if (reached < shown) {
        total += countWallTimes(fields, reached, shown);
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
    return { at: latestFrom(first, now), count: count(after, now) };
  }

  /**
   * The latest occurrence up to `now`, given one. A binary search, so that a long gap costs little more than a short
   * one.
   */
  function latestFrom(first: number, now: number): number {
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

  let shortest: number | undefined;
  return {
    next,
    latest,
    get shortestIntervalMs() {
      shortest ??= shortestWallGap(fields);
      return shortest;
    },
  };
}

/** The last wall time, to the millisecond, that a clock shows in a span. */
function lastShown(span: Span): number {
  return span.end - 1 + span.offset;
}

/** When a wall time is due in the first span that reaches it: at the span's start, if the clock has skipped it. */
function within(span: Span, wallTime: number): number | undefined {
  const instant = Math.max(span.start, wallTime - span.offset);
  return instant <= LAST_INSTANT ? instant : undefined;
}
