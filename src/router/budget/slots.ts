/**
 * Places for wakes under limits that slide with time. Pure; instants are epoch milliseconds.
 *
 * A limit of n wakes in a span means that any n + 1 consecutive ones lie at least that span apart, from the first to
 * the last: then no window of the span holds more than n, wherever it begins.
 */
import type { Budget } from '../../wire/budget.ts';

/** A wake that was let in at an instant, or that was promised one: then it comes between `at` and `latest`. */
export type Taken = { readonly at: number; readonly latest: number };

export type Limit = { readonly count: number; readonly spanMs: number; readonly name: 'hour' | 'day' | 'gap' };

const HOUR_MS = 3_600_000;
/** No limit looks back further than this. */
export const LONGEST_SPAN_MS = 24 * HOUR_MS;

/** The limits of a budget; none is an empty list. */
export function limitsOf({ wakes_per_hour: hour, wakes_per_day: day, min_gap_seconds: gap }: Budget): Limit[] {
  const limits: Limit[] = [];
  if (hour !== undefined) limits.push({ count: hour, spanMs: HOUR_MS, name: 'hour' });
  if (day !== undefined) limits.push({ count: day, spanMs: LONGEST_SPAN_MS, name: 'day' });
  if (gap !== undefined) limits.push({ count: 1, spanMs: gap * 1000, name: 'gap' });
  return limits;
}

/** How many of the wakes are at or before `at`. */
function countUntil(taken: readonly Taken[], at: number): number {
  let low = 0;
  let high = taken.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (taken[middle]!.at <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * When a limit that does not allow a wake at `at` may allow one; `at` itself when it does.
 *
 * @param before how many of `taken` are at or before `at`
 */
function movedBy({ count, spanMs }: Limit, taken: readonly Taken[], before: number, at: number): number {
  // Looks at every run of `count + 1` wakes that the new one would be part of, `earlier` of them before it.
  for (let earlier = Math.min(count, before); earlier >= 0; earlier--) {
    const later = count - earlier;
    if (before + later > taken.length) return at;
    const first = earlier === 0 ? at : taken[before - earlier]!.latest;
    const last = later === 0 ? at : taken[before + later - 1]!.at;
    if (last - first >= spanMs) continue;
    // The last of its run: it may come when the span is over. Otherwise there is no room up to the next wake.
    return later === 0 ? first + spanMs : taken[before]!.at;
  }
  return at;
}

/**
 * The earliest instant from `from` on at which one more wake keeps every limit.
 *
 * @param taken wakes that were, are, or are promised a place in the future, ascending by `at`
 * @returns also the limit that stood in the way first; `undefined` when `at` is `from`
 */
export function earliestFree(
  taken: readonly Taken[],
  limits: readonly Limit[],
  from: number,
): { at: number; limit: Limit | undefined } {
  let at = from;
  let first: Limit | undefined;
  for (let settled = false; !settled; ) {
    settled = true;
    for (const limit of limits) {
      const moved = movedBy(limit, taken, countUntil(taken, at), at);
      if (moved === at) continue;
      first ??= limit;
      at = moved;
      settled = false;
    }
  }
  return { at, limit: first };
}
