/** Durations in ISO 8601, as fields of requests and policies have them. Pure. */
import { z } from 'zod';

const ISO_DURATION =
  /^P(?:(\d{1,6})W|(?=\d|T\d)(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9})S)?)?)$/;

/**
 * Parses an ISO 8601 duration: `PT24H`, `P1DT12H`, `P2W`.
 *
 * @returns milliseconds, with 24 hours to a day; `undefined` if the text is not a duration, and for years and months,
 * which have no fixed length
 */
export function readIsoDuration(text: string): number | undefined {
  const match = ISO_DURATION.exec(text);
  if (!match) return undefined;
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0));
  return ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
}

/** The longest duration of a field. */
export const LONGEST_DURATION = 'P3660D';

/**
 * A duration that stays text, within bounds of the same form. `durationMs` reads it.
 *
 * @param least the shortest, such as `PT1S`
 */
export function durationSchema(least: string, most: string = LONGEST_DURATION): z.ZodString {
  const [from, to] = [durationMs(least), durationMs(most)];
  return z.string().refine((text) => {
    const ms = readIsoDuration(text);
    return ms !== undefined && ms >= from && ms <= to;
  }, `must be an ISO 8601 duration from ${least} to ${most}, such as PT5M or P1D`);
}

/** Milliseconds of a duration that was checked before. */
export function durationMs(text: string): number {
  const ms = readIsoDuration(text);
  if (ms === undefined) throw new RangeError(`not an ISO 8601 duration: ${text}`);
  return ms;
}
