/** How figures are written. Pure. */

/** Milliseconds; what never arrived is a word. */
export function ms(value: number | null): string {
  if (value === null) return 'never';
  if (value >= 10_000) return `${count(value / 1000)} s`;
  return value < 100 ? value.toFixed(1) : count(value);
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
