/**
 * Instants as text: RFC 3339 with an offset, read and written without a schema library, for what has to start quickly.
 */
const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;

const EARLIEST = Date.parse('0000-01-01T00:00:00.000Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/** Milliseconds since the epoch as `2026-06-15T08:10:00.000Z`. */
export function formatInstant(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/**
 * Whether a text is an instant as {@link formatInstant} writes it, and none of the other forms that RFC 3339 has for
 * it.
 */
export function isWrittenInstant(text: string): boolean {
  const epochMs = Date.parse(text);
  // A year of more than four digits has a longer text.
  return text.length === 24 && !Number.isNaN(epochMs) && formatInstant(epochMs) === text;
}

/**
 * Reads an RFC 3339 instant. Finer fractions are cut to milliseconds.
 *
 * @returns milliseconds since the epoch, or `undefined` when the text is not an instant that exists
 *   (no offset, the 30th of February, 25 o'clock), or has no year of four digits in UTC, in which it is written again
 */
export function parseInstant(text: string): number | undefined {
  const match = RFC_3339.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', offset] = match;
  const wall = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const atUtc = Date.parse(`${wall}${fraction.slice(0, 4)}Z`);
  // Date.parse rolls the 30th of February over; a date that exists prints as it was written.
  if (Number.isNaN(atUtc) || new Date(atUtc).toISOString().slice(0, 19) !== wall) return undefined;
  const epochMs = Date.parse(`${wall}${fraction.slice(0, 4)}${offset!.toUpperCase()}`);
  return epochMs >= EARLIEST && epochMs <= LATEST ? epochMs : undefined;
}
