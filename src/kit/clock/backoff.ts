/** Exponential backoff, the one that everybody uses. Pure. */

/**
 * Makes a backoff that doubles from `first` up to `longest`, both in the unit of the result.
 *
 * @returns the pause after `failures` failures in a row; counts from 1, and takes a smaller number for 1
 */
export function backoff({ first, longest }: { first: number; longest: number }): (failures: number) => number {
  // The exponent is bounded, so that no count of failures overflows the product.
  return (failures) => Math.min(longest, first * 2 ** Math.min(Math.max(failures - 1, 0), 40));
}

/**
 * Equal jitter: spreads a pause over its upper half, so that what failed together is not tried again together.
 *
 * @param draw uniform in [0, 1)
 */
export function withJitter(pause: number, draw: number): number {
  return pause / 2 + (pause / 2) * draw;
}
