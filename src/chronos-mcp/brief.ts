/** Short answers of `alarm_list`: what a model needs to choose an alarm, within a bound of tokens. */
import type { AlarmView } from '../wire/alarm.ts';
import { encodeJson } from '../wire/json.ts';

/** An answer without `full` has fewer tokens than this. */
export const ANSWER_TOKENS = 4_000;

/** Characters of a label, of the start of a message, and of a schedule. */
const ROW_CHARACTERS = 120;
/** Characters of the texts of one alarm that does not fit whole. */
const TEXT_CHARACTERS = 600;

/**
 * A high estimate of the tokens of a text, for tokenizers of 100,000 entries and more: three digits are one, random letters
 * are fewer than three for four, and a space belongs to its word. Any other text may have one for each byte.
 */
export function tokensAtMost(text: string): number {
  let tokens = 0;
  for (const [part] of text.matchAll(/[0-9]{1,3}| ?[A-Za-z]+|./gsu)) {
    if (/[A-Za-z]/.test(part)) tokens += Math.ceil(part.trimStart().length * 0.75);
    else tokens += /^[0-9]/.test(part) ? 1 : Buffer.byteLength(part);
  }
  return tokens;
}

/** The first characters of a text, on one line. */
function excerpt(text: string, most: number): string {
  const characters = [...text.replace(/\s+/g, ' ').trim()];
  return characters.length <= most ? characters.join('') : `${characters.slice(0, most - 1).join('')}…`;
}

export type BriefAlarm = Pick<AlarmView, 'id' | 'status' | 'next_fire_at'> & {
  label?: string;
  /** The start of the message of an alarm without a label. */
  message?: string;
  schedule: string;
  agent?: string;
};

/** @param words its schedule in words */
export function briefAlarm(alarm: AlarmView, words: string, agent: string | undefined): BriefAlarm {
  const { id, label, wake_message: message, next_fire_at: next, status } = alarm;
  return {
    id,
    ...(label === '' ? { message: excerpt(message, ROW_CHARACTERS) } : { label: excerpt(label, ROW_CHARACTERS) }),
    ...(next !== undefined && { next_fire_at: next }),
    schedule: excerpt(words, ROW_CHARACTERS),
    status,
    ...(agent !== undefined && { agent }),
  };
}

/** Of the answer around the rows. */
const AROUND_TOKENS = 250;

/** How many rows an answer can have; at least one. */
export function fittingRows(rows: readonly BriefAlarm[]): number {
  let tokens = AROUND_TOKENS;
  const beyond = rows.findIndex((row) => {
    tokens += tokensAtMost(encodeJson(row)) + 1;
    return tokens >= ANSWER_TOKENS;
  });
  return beyond === -1 ? rows.length : Math.max(1, beyond);
}

/** An alarm as far as it fits: otherwise its long texts are cut, and its payload and objects left out. */
export function boundedAlarm(alarm: AlarmView): object {
  if (tokensAtMost(encodeJson(alarm)) < ANSWER_TOKENS - AROUND_TOKENS) return alarm;
  const members = Object.entries(alarm).flatMap(([name, value]): [string, unknown][] => {
    if (typeof value === 'string') return [[name, excerpt(value, TEXT_CHARACTERS / 4)]];
    return typeof value === 'object' ? [] : [[name, value]];
  });
  const message = excerpt(alarm.wake_message, TEXT_CHARACTERS);
  return {
    ...Object.fromEntries(members),
    wake_message: message,
    cut: 'Texts are cut, objects left out: full has all.',
  };
}
