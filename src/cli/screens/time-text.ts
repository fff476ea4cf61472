/**
 * How `reveille time` formats instants, durations and the user's text, and its one line for the prompt hooks of clients.
 * Pure.
 */
import { formatDuration } from '../../kit/clock/duration.ts';
import { monthName } from '../../kit/clock/local-time.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import type { PromptContext } from '../../wire/chronometric-view.ts';
import type { BreakLevel } from '../../wire/chronometric-vocabulary.ts';
import { readIsoDuration } from '../../wire/iso-duration.ts';
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

type PromptData = Omit<PromptContext, 'line'>;

/** Characters shown of an intent. */
const INTENT_CELLS = 160;

function promptPart({ since_last_prompt: since }: PromptData): string[] {
  if (since === undefined) return [];
  return [since === null ? 'First prompt seen here.' : `Last prompt ${ago(lengthOfTime(since))}.`];
}

/** `12:40` on the same day, `2026-06-14 23:50` on another. */
const whenText = (instant: string, now: string) =>
  instant.slice(0, 10) === now.slice(0, 10) ? clockOf(instant) : `${instant.slice(0, 10)} ${clockOf(instant)}`;

function sessionPart({ session, now }: PromptData): string[] {
  if (session === undefined) return [];
  if (session === null) return ['No session open.'];
  const purpose = session.intent === undefined ? '' : ` for "${fit(harmless(session.intent), INTENT_CELLS)}"`;
  const since = `since ${whenText(session.started_at, now)}`;
  if (session.forgotten)
    return [`A session${purpose} is still open ${since}, last seen ${whenText(session.last_seen_at, now)}.`];
  return [`Session open ${since}${purpose}, ${inMinutes(lengthOfTime(session.active_duration))} active.`];
}

function breakPart({ break: breakStatus }: PromptData): string[] {
  if (!breakStatus) return [];
  const { due, due_in: left, level, elapsed, protected_window_label: label } = breakStatus;
  if (!due) return [`Break due in ${inMinutes(lengthOfTime(left!))} of active time.`];
  const why =
    label === undefined ? `${inMinutes(lengthOfTime(elapsed))} active without one` : `kept free for ${harmless(label)}`;
  return [`Break due now${levelWords(level)}: ${why}.`];
}

/** The text for an agent: now, the gap since the last prompt, the session, and whether a break is due. */
export function promptLine(data: PromptData): string {
  const { now, day_of_week: day, timezone } = data;
  const moment = `Time: ${day} ${now.slice(0, 10)} ${clockOf(now)} ${now.slice(19)} (${timezone}).`;
  return [moment, ...promptPart(data), ...sessionPart(data), ...breakPart(data)].join(' ');
}

const underEvent = (hookEventName: string) => (line: string) =>
  JSON.stringify({ hookSpecificOutput: { hookEventName, additionalContext: line } });

/** The line in each client's format; docs/guides/time-hook.md describes the configuration. */
const FORMS = {
  text: (line: string) => line,
  'claude-code': underEvent('UserPromptSubmit'),
  codex: underEvent('UserPromptSubmit'),
  gemini: underEvent('BeforeAgent'),
  cursor: (line: string) => JSON.stringify({ additional_context: line }),
} as const;

type HookFormat = keyof typeof FORMS;
export const HOOK_FORMATS = Object.keys(FORMS) as readonly HookFormat[];

/** @returns the line in the client's format; `undefined` for an unknown format */
export function inForm(format: string, line: string): string | undefined {
  return HOOK_FORMATS.includes(format as HookFormat) ? FORMS[format as HookFormat](line) : undefined;
}
