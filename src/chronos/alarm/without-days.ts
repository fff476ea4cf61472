/** A series without the occurrences on some days: the days of holidays, or EXDATE with a date. */
import { dayAt, nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { zoneOf } from '../../kit/clock/zone.ts';
import { instantOfWall, latestFrom, type Occurrences } from './occurrence.ts';

const DAY_MS = 86_400_000;
/** A series whose occurrences for so long are all excluded has ended. */
const LONGEST_BREAK_MS = 10 * 366 * DAY_MS;

/**
 * The occurrences that are on no excluded day.
 *
 * @param timezone whose wall clock says on which day an occurrence is
 * @param days the excluded days, sorted, each as its number since 1 January 1970
 */
export function withoutDays(
  { next: nextOfAll, latest: latestOfAll }: Occurrences,
  timezone: string,
  days: readonly number[],
): Occurrences {
  const excluded = new Set(days);
  const zone = zoneOf(timezone);

  function next(after: number): number | undefined {
    for (let at = nextOfAll(after); at !== undefined && at - after < LONGEST_BREAK_MS; ) {
      if (!excluded.has(dayAt(timezone, at))) return at;
      at = nextOfAll(nextDayAfter(timezone, at) - 1);
    }
    return undefined;
  }

  return {
    next,
    latest(after, now) {
      const first = next(after);
      if (first === undefined || first > now) return undefined;
      let count = latestOfAll(after, now)!.count;
      const [from, to] = [dayAt(timezone, after), dayAt(timezone, now)];
      for (const day of days) {
        if (day < from) continue;
        if (day > to) break;
        const begin = Math.max(after, instantOfWall(zone, day * DAY_MS) - 1);
        const end = Math.min(now, instantOfWall(zone, (day + 1) * DAY_MS) - 1);
        if (begin < end) count -= latestOfAll(begin, end)?.count ?? 0;
      }
      return { at: latestFrom(first, now, next), count };
    },
  };
}
