/** Durations as people type them: `90s`, `10m`, `1h30m`, `2d`, `1.5h`. */

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const PART = String.raw`(\d+(?:\.\d+)?)(ms|s|min|m|h|d|w)`;
const WHOLE = new RegExp(`^(?:${PART}\\s*)+$`);

/**
 * Reads a duration. A bare number has no unit and is none.
 *
 * @returns milliseconds, or `undefined` when the text is no duration
 */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (!WHOLE.test(trimmed)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of trimmed.matchAll(new RegExp(PART, 'g'))) sum += Number(amount) * UNIT_MS[unit!]!;
  return Number.isFinite(sum) ? Math.round(sum) : undefined;
}
