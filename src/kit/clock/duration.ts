/** Durations as text: formatted for people, as people type them, and in ISO 8601. Pure. */
import type { LateReason } from '../../wire/wake.ts';

/** The units of formatted durations. */
const UNITS = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'min', ms: 60_000 },
  { name: 's', ms: 1000 },
] as const;

/**
 * A duration in its two largest units, rounded down: `17 ms`, `3.2 s`, `4 min 10 s`, `2 h`, `31 d 4 h`.
 *
 * @param ms milliseconds; the sign is dropped
 */
export function formatDuration(ms: number): string {
  const size = Math.trunc(Math.abs(ms));
  if (size < 1000) return `${size} ms`;
  if (size < 10_000) return `${Math.floor(size / 100) / 10} s`;
  const first = UNITS.findIndex((unit) => size >= unit.ms);
  const large = UNITS[first]!;
  const small = UNITS[first + 1];
  const text = `${Math.floor(size / large.ms)} ${large.name}`;
  const rest = small ? Math.floor((size % large.ms) / small.ms) : 0;
  return rest > 0 ? `${text} ${rest} ${small!.name}` : text;
}

export const LATE_REASON_TEXT: Readonly<Record<LateReason, string>> = {
  slept: 'the computer slept',
  not_running: 'Reveille was not running',
  stalled: 'the process of Reveille was stopped or got no CPU time',
  machine_start: 'the machine had to start',
};

/**
 * The distance of an instant from its due time: `12 ms late`, `on time`, `3 ms early by this machine's clock`; with a
 * reason `12 min late: the computer slept`.
 */
export function formatLateness(latenessMs: number, because?: LateReason): string {
  if (latenessMs === 0) return 'on time';
  const why = because === undefined ? '' : `: ${LATE_REASON_TEXT[because]}`;
  if (latenessMs > 0) return `${formatDuration(latenessMs)} late${why}`;
  return `${formatDuration(latenessMs)} early by this machine's clock`;
}

const TYPED_UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const TYPED_PART = String.raw`(\d+(?:\.\d+)?)(ms|s|min|m|h|d|w)`;
const TYPED = new RegExp(`^(?:${TYPED_PART}\\s*)+$`);

/**
 * Parses a duration as people type it: `90s`, `10m`, `1h30m`, `2d`, `1.5h`. A bare number has no unit and is not a
 * duration.
 *
 * @returns milliseconds, or `undefined` if the text is not a duration
 */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (!TYPED.test(trimmed)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of trimmed.matchAll(new RegExp(TYPED_PART, 'g')))
    sum += Number(amount) * TYPED_UNIT_MS[unit!]!;
  return Number.isFinite(sum) ? Math.round(sum) : undefined;
}

/**
 * Formats an ISO 8601 duration in hours, minutes and whole seconds: `PT1H30M`, `PT0S`. It has no days, because a day
 * may have 23 or 25 hours.
 *
 * @param milliseconds a negative number counts as 0, for clocks that were set back
 */
export function isoDuration(milliseconds: number): string {
  const all = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [
    [Math.floor(all / 3600), 'H'],
    [Math.floor(all / 60) % 60, 'M'],
    [all % 60, 'S'],
  ] as const;
  const text = parts.flatMap(([count, unit]) => (count === 0 ? [] : [`${count}${unit}`])).join('');
  return `PT${text || '0S'}`;
}
