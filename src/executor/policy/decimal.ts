/** Decimal numbers without rounding: money is counted in whole units of its last digit. Pure. */

/** The number `units / 10^scale`. */
export type Decimal = { readonly units: bigint; readonly scale: number };

/** An unambiguous notation: ASCII digits, no exponent, no leading zeros, no separators. */
const DECIMAL = /^-?(?:0|[1-9]\d{0,77})(?:\.\d{1,78})?$/;

export const ZERO: Decimal = { units: 0n, scale: 0 };

/**
 * Reads a decimal number from text, or from a JSON number that JavaScript carries exactly.
 *
 * @returns `undefined` for anything else: another type, NaN, an exponent, digits of other scripts, blanks
 */
export function readDecimal(value: unknown): Decimal | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !DECIMAL.test(text)) return undefined;
  const point = text.indexOf('.');
  if (point === -1) return { units: BigInt(text), scale: 0 };
  return { units: BigInt(text.slice(0, point) + text.slice(point + 1)), scale: text.length - point - 1 };
}

const unitsAt = ({ units, scale }: Decimal, wanted: number) => units * 10n ** BigInt(wanted - scale);

export function plus(one: Decimal, other: Decimal): Decimal {
  const scale = Math.max(one.scale, other.scale);
  return { units: unitsAt(one, scale) + unitsAt(other, scale), scale };
}

export function isMore(one: Decimal, other: Decimal): boolean {
  const scale = Math.max(one.scale, other.scale);
  return unitsAt(one, scale) > unitsAt(other, scale);
}

/** Formats with the scale of the input. */
export function formatDecimal({ units, scale }: Decimal): string {
  const sign = units < 0n ? '-' : '';
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  return scale === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-scale)}`;
}
