/** Detects numbers that JavaScript would round. */

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const LITERAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Whether a text is exactly one JSON number. */
export function isNumberLiteral(text: string): boolean {
  return LITERAL.test(text);
}

/**
 * Normal form of a number: its significant digits and the exponent of the last one, so `1.50`, `15e-1` and `1.5` are
 * equal.
 *
 * @param text a number as JSON or JavaScript writes it
 */
export function decimalForm(text: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = NUMBER.exec(text)!;
  const digits = `${whole}${fraction}`;
  let first = 0;
  while (digits[first] === '0') first++;
  let last = digits.length;
  while (last > first && digits[last - 1] === '0') last--;
  if (first === last) return '0';
  const power = Number(exponent) - fraction.length + (digits.length - last);
  return `${sign}${digits.slice(first, last)}e${power}`;
}

/**
 * Whether JavaScript represents a JSON number exactly: it prints the same decimal number. `0.1` is exact;
 * `12345678901234567890`, `1.00000000000000000001` and `1e400` are not.
 *
 * @param literal the number's source text
 */
export function isExact(literal: string): boolean {
  const value = Number(literal);
  return Number.isFinite(value) && decimalForm(literal) === decimalForm(String(value));
}
