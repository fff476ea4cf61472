/** Amounts of money as whole cents, and as decimal text for people. Nothing here uses floating point. */

const AMOUNT = /^(?:0|[1-9]\d{0,11})(?:\.\d{1,2})?$/;

/**
 * Cents of an amount such as `12.50` or `7`; `undefined` for text other than an amount above zero with at most two
 * decimals.
 */
export function centsOf(text: string): number | undefined {
  if (!AMOUNT.test(text)) return undefined;
  const [whole = '0', decimals = ''] = text.split('.');
  // At most 14 digits: JavaScript represents them exactly.
  const cents = Number(whole) * 100 + Number(decimals.padEnd(2, '0'));
  return cents > 0 ? cents : undefined;
}

/** `1250` is `12.50`. */
export function amountText(cents: number): string {
  const digits = String(Math.abs(cents)).padStart(3, '0');
  return `${cents < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

const RATE = /^(?:0|[1-9]\d{0,5})(?:\.\d{1,12})?$/;
/** The maximum that {@link centsOf} reads. */
const MOST_CENTS = 99_999_999_999_999n;

/**
 * The result of an amount at a rate such as `1.1637`: computed exactly, then rounded down to the cent. `undefined` when
 * the result is zero or above the maximum amount.
 *
 * @throws RangeError when the rate is no decimal number
 */
export function centsAtRate(cents: number, rate: string): number | undefined {
  if (!RATE.test(rate)) throw new RangeError(`invalid rate: ${JSON.stringify(rate)}`);
  const [whole = '0', decimals = ''] = rate.split('.');
  const exact = BigInt(cents) * BigInt(whole + decimals);
  const rounded = exact / 10n ** BigInt(decimals.length);
  return rounded > 0n && rounded <= MOST_CENTS ? Number(rounded) : undefined;
}
