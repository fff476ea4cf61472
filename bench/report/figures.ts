/** Number formats. Pure. */

/** Milliseconds; a word for a missing fire. */
export function ms(value: number | null): string {
  if (value === null) return 'never';
  if (value >= 10_000) return `${count(value / 1000)} s`;
  return value < 100 ? value.toFixed(1) : count(value);
}

/** Milliseconds as microseconds. */
export function micros(milliseconds: number): string {
  return count(1000 * milliseconds);
}

/** A difference in microseconds, always with its sign. */
export function moreMicros(milliseconds: number): string {
  const size = micros(Math.abs(milliseconds));
  return size === '0' ? size : `${milliseconds < 0 ? '−' : '+'}${size}`;
}

/** A whole number. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** A proportion. */
export function times(value: number): string {
  return `${value.toFixed(2)} ×`;
}

export function megabytes(value: number): string {
  return `${value.toFixed(0)} MB`;
}
