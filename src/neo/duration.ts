/** Durations in words, for models and people. */

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
  const words = `${Math.floor(size / large.ms)} ${large.name}`;
  const rest = small ? Math.floor((size % large.ms) / small.ms) : 0;
  return rest > 0 ? `${words} ${rest} ${small!.name}` : words;
}

/** How an instant stands to the one it was due at: `12 ms late`, `on time`, `3 ms early by this machine's clock`. */
export function formatLateness(latenessMs: number): string {
  if (latenessMs === 0) return 'on time';
  if (latenessMs > 0) return `${formatDuration(latenessMs)} late`;
  return `${formatDuration(latenessMs)} early by this machine's clock`;
}
