/** Lengths of time as ISO 8601 writes them. Pure. */

const SECOND_MS = 1000;

/**
 * Hours, minutes and whole seconds: `PT1H30M`, `PT0S`. Days are not used: they are not always 24 hours long.
 *
 * @param milliseconds less than 0 counts as 0, as after a clock that stepped back
 */
export function isoDuration(milliseconds: number): string {
  const all = Math.max(0, Math.floor(milliseconds / SECOND_MS));
  const parts = [
    [Math.floor(all / 3600), 'H'],
    [Math.floor(all / 60) % 60, 'M'],
    [all % 60, 'S'],
  ] as const;
  const text = parts.flatMap(([count, unit]) => (count === 0 ? [] : [`${count}${unit}`])).join('');
  return `PT${text || '0S'}`;
}
