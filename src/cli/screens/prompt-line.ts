/** One line about the time for an agent, and the formats of the clients' prompt hooks. Pure. */
import type { PromptContext } from '../../wire/chronometric-view.ts';
import { fit } from './columns.ts';
import { ago, clockOf, harmless, inMinutes, lengthOfTime, levelWords } from './time-text.ts';

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
