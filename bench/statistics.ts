/** Percentiles and medians. Pure. */

/**
 * The smallest value that at least `share` of all values do not exceed (nearest rank).
 *
 * @param sorted ascending
 * @param share in (0, 1]
 * @param missing number of further values, larger than all of these: missing fires
 * @returns `null` if the rank is one of the missing, or if there are no values
 */
export function percentile(sorted: ArrayLike<number>, share: number, missing = 0): number | null {
  const rank = Math.ceil(share * (sorted.length + missing));
  return sorted[Math.max(rank, 1) - 1] ?? null;
}

/**
 * The median. For an even number of values, the mean of the middle two.
 *
 * @param values `null` means "larger than every measured value"
 * @returns `null` if there are no values, or if the median is one of the nulls
 */
export function median(values: readonly (number | null)[]): number | null {
  if (values.length === 0) return null;
  const sorted = values.map((value) => value ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const value = Number.isInteger(middle) ? (sorted[middle - 1]! + sorted[middle]!) / 2 : sorted[Math.floor(middle)]!;
  return Number.isFinite(value) ? value : null;
}

/**
 * How late a set of fires arrived, in milliseconds after their due times. `null` means "not within the waiting time".
 */
export type Lateness = {
  /** Number of expected fires. */
  expected: number;
  /** Number of fires that did not arrive. */
  missing: number;
  /** Number of fires that arrived more than once. */
  repeated: number;
  /** Number of fires that arrived before they were due. */
  early: number;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  max: number | null;
};

/** @param late milliseconds of each fire that arrived, in any order; negative for early ones */
export function latenessOf(late: readonly number[], expected: number, repeated: number): Lateness {
  const sorted = Float64Array.from(late).sort();
  const missing = Math.max(0, expected - late.length);
  const at = (share: number) => percentile(sorted, share, missing);
  return {
    expected,
    missing,
    repeated,
    early: late.filter((milliseconds) => milliseconds < 0).length,
    p50: at(0.5),
    p90: at(0.9),
    p99: at(0.99),
    max: at(1),
  };
}

/** One line for several rounds: the median of each percentile, the sum of faults. */
export function medianLateness(rounds: readonly Lateness[]): Lateness {
  const sum = (member: 'expected' | 'missing' | 'repeated' | 'early') =>
    rounds.reduce((total, round) => total + round[member], 0);
  const middle = (member: 'p50' | 'p90' | 'p99' | 'max') => median(rounds.map((round) => round[member]));
  return {
    expected: sum('expected'),
    missing: sum('missing'),
    repeated: sum('repeated'),
    early: sum('early'),
    p50: middle('p50'),
    p90: middle('p90'),
    p99: middle('p99'),
    max: middle('max'),
  };
}
