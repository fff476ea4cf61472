/** Exponential backoff. Pure. */

/**
 * Creates a backoff that doubles from `first` up to `longest`, both in the unit of the result.
 *
 * @returns the pause after `failures` consecutive failures; counts from 1, and treats smaller numbers as 1
 */
export function backoff({ first, longest }: { first: number; longest: number }): (failures: number) => number {
  // The exponent is limited, so that the product does not overflow.
  return (failures) => Math.min(longest, first * 2 ** Math.min(Math.max(failures - 1, 0), 40));
}

/**
 * Equal jitter: spreads a pause over its upper half, so that operations that failed together are not retried together.
 *
 * @param draw uniform in [0, 1)
 */
export function withJitter(pause: number, draw: number): number {
  return pause / 2 + (pause / 2) * draw;
}
