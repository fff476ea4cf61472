/**
 * Finds the earliest time for a wake under sliding limits. Pure; instants are epoch milliseconds.
 *
 * A limit of n wakes in a span means that any n + 1 consecutive wakes span at least that time, from first to last. Then
 * no window of that length contains more than n, wherever it begins.
 */
import type { Budget } from '../../wire/budget.ts';

/**
 * A wake that was admitted at an instant, or has a promised time. A promised wake arrives between `at` and `latest`.
 */
export type Taken = { readonly at: number; readonly latest: number };

export type Limit = { readonly count: number; readonly spanMs: number; readonly name: 'hour' | 'day' | 'gap' };

const HOUR_MS = 3_600_000;
/** The longest span of a limit. */
export const LONGEST_SPAN_MS = 24 * HOUR_MS;

/** The limits of a budget; an empty list means no limits. */
export function limitsOf({ wakes_per_hour: hour, wakes_per_day: day, min_gap_seconds: gap }: Budget): Limit[] {
  const limits: Limit[] = [];
  if (hour !== undefined) limits.push({ count: hour, spanMs: HOUR_MS, name: 'hour' });
  if (day !== undefined) limits.push({ count: day, spanMs: LONGEST_SPAN_MS, name: 'day' });
  if (gap !== undefined) limits.push({ count: 1, spanMs: gap * 1000, name: 'gap' });
  return limits;
}

/** The number of wakes at or before `at`. */
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
 * The next instant at which a limit may allow a wake; `at` itself when it does.
 *
 * @param before the number of `taken` at or before `at`
 */
function movedBy({ count, spanMs }: Limit, taken: readonly Taken[], before: number, at: number): number {
  // Check every run of `count + 1` wakes that contains the new one, with `earlier` of them before it.
  for (let earlier = Math.min(count, before); earlier >= 0; earlier--) {
    const later = count - earlier;
    if (before + later > taken.length) return at;
    const first = earlier === 0 ? at : taken[before - earlier]!.latest;
    const last = later === 0 ? at : taken[before + later - 1]!.at;
    if (last - first >= spanMs) continue;
    // The last of its run may go when the span has ended. Otherwise no time is free before the next wake.
    return later === 0 ? first + spanMs : taken[before]!.at;
  }
  return at;
}

/**
 * The earliest instant from `from` on at which one more wake respects every limit.
 *
 * @param taken past and promised wakes, ascending by `at`
 * @returns also the limit that forced the delay first; `undefined` when `at` is `from`
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
