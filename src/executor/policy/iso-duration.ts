/** Durations as ISO 8601 writes them: `PT24H`, `P1DT12H`, `P2W`. Pure. */

const DURATION = /^P(?:(\d{1,6})W|(?=\d|T\d)(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9})S)?)?)$/;

/**
 * @returns milliseconds; `undefined` when the text is no duration, and for years and months, which have no fixed length. A day has 24 hours
 */
export function readIsoDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (!match) return undefined;
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0));
  return ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
}
