/** How `reveille time` formats instants, durations and the user's text. Pure. */

import { formatDuration, readIsoDuration } from '../../kit/clock/duration.ts';
import { monthName } from '../../kit/clock/local-time.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import type { BreakLevel } from '../../wire/chronometric-vocabulary.ts';
import { fit, wrap } from './columns.ts';

const MINUTE_MS = 60_000;

/** `PT1H22M` in milliseconds. */
export const lengthOfTime = (isoDuration: string): number => readIsoDuration(isoDuration) ?? 0;

/** A duration in whole minutes: `1 h 22 min`, `under 1 min`. */
export function inMinutes(ms: number): string {
  if (ms < MINUTE_MS) return 'under 1 min';
  const minutes = Math.floor(ms / MINUTE_MS);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  // Not in days: two days of work are hours for a reader.
  return [hours > 0 && `${hours} h`, rest > 0 && `${rest} min`].filter(Boolean).join(' ');
}

/** Age: `just now`, `42 s ago`, `4 min ago`, `2 h 5 min ago`, `3 d 4 h ago`. */
export function ago(ms: number): string {
  if (ms < 1000) return 'just now';
  const whole = ms < MINUTE_MS ? Math.floor(ms / 1000) * 1000 : Math.floor(ms / MINUTE_MS) * MINUTE_MS;
  return `${formatDuration(whole)} ago`;
}

/** `08:52` of an instant with its offset: what the wall clock showed there. */
export const clockOf = (instant: string): string => instant.slice(11, 16);

/** `22 November 2026` of a date or an instant. */
export function dateWords(date: string): string {
  const [year, month, day] = date.slice(0, 10).split('-');
  return `${Number(day)} ${monthName(Number(month))} ${year}`;
}

/** `Sun 22 Nov`. */
export function shortDate(dayOfWeek: string, date: string): string {
  const [day, month] = dateWords(date).split(' ');
  return `${dayOfWeek.slice(0, 3)} ${day!.padStart(2)} ${month!.slice(0, 3)}`;
}

/** The urgency of a break; nothing below the first step of the ladder. */
export const levelWords = (level: BreakLevel | undefined): string =>
  level === undefined || level === 'none' ? '' : ` (${level})`;

/** The user's text as one line, safe for a terminal: white space becomes a blank, control characters become visible. */
export function harmless(text: string): string {
  return printable(text.toWellFormed().replace(/\s+/gu, ' ').trim());
}

/** The user's text wrapped to a width; beyond `most` lines, the last one ends with an ellipsis. */
export function paragraph(text: string, width: number, most: number): string[] {
  const lines = wrap(harmless(text), width);
  const shown = [...lines.slice(0, most - 1), ...(lines.length < most ? [] : [lines.slice(most - 1).join(' ')])];
  return shown.map((line) => fit(line, width));
}
