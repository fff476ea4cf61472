/**
 * Instants as text: RFC 3339 with an offset. It uses no schema library, because programs that must start quickly use
 * it.
 */
const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;

const EARLIEST = Date.parse('0000-01-01T00:00:00.000Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

const DAY_MS = 86_400_000;
/** The numbers below 100, with two digits. */
const TWO_DIGITS = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, '0'));
/** The date of the day that was formatted last: most instants of a process are of one day. */
let lastDay = { number: Number.NaN, text: '' };

/** Milliseconds since the epoch as `2026-06-15T08:10:00.000Z`. */
export function formatInstant(epochMs: number): string {
  if (!Number.isInteger(epochMs) || Math.abs(epochMs) > 8.64e15) return new Date(epochMs).toISOString();
  const number = Math.floor(epochMs / DAY_MS);
  if (number !== lastDay.number) lastDay = { number, text: new Date(number * DAY_MS).toISOString().split('T', 1)[0]! };
  const ofDay = epochMs - number * DAY_MS;
  const hours = TWO_DIGITS[Math.floor(ofDay / 3_600_000)];
  const minutes = TWO_DIGITS[Math.floor(ofDay / 60_000) % 60];
  const seconds = TWO_DIGITS[Math.floor(ofDay / 1000) % 60];
  const fraction = ofDay % 1000;
  const hundreds = Math.floor(fraction / 100);
  return `${lastDay.text}T${hours}:${minutes}:${seconds}.${hundreds}${TWO_DIGITS[fraction % 100]}Z`;
}

/** Whether a text is an instant in the form of {@link formatInstant}, and in no other form of RFC 3339. */
export function isWrittenInstant(text: string): boolean {
  const epochMs = Date.parse(text);
  // A year of more than four digits has a longer text.
  return text.length === 24 && !Number.isNaN(epochMs) && formatInstant(epochMs) === text;
}

/**
 * Parses an RFC 3339 instant. Finer fractions are cut to milliseconds.
 *
 * @returns milliseconds since the epoch. `undefined` for a text without an offset, an instant that does not exist (30
 * February, 25 o'clock), or a year outside 0000 to 9999 in UTC
 */
export function parseInstant(text: string): number | undefined {
  const match = RFC_3339.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', offset] = match;
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const atUtc = Date.parse(`${local}${fraction.slice(0, 4)}Z`);
  // Date.parse rolls 30 February over; an existing date prints as it was written.
  if (Number.isNaN(atUtc) || new Date(atUtc).toISOString().slice(0, 19) !== local) return undefined;
  const epochMs = Date.parse(`${local}${fraction.slice(0, 4)}${offset!.toUpperCase()}`);
  return epochMs >= EARLIEST && epochMs <= LATEST ? epochMs : undefined;
}
