/** What of a long conversation's older turns belongs to the present one: those that share its rarer words. Pure. */

import { codeFor, quoted } from '../../kit/model/quotation.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Turn } from '../turn.ts';

/** How many older turns are looked through, and how many are shown. */
export const OLDER_TURNS_READ = 200;
const OLDER_TURNS_SHOWN = 3;
const EXCERPT_CHARACTERS = 800;
/** Longer texts are looked at up to here. */
const READ_CHARACTERS = 8192;

/** A turn must share words of this much weight to be shown; a single common word does not make it belong. */
const LEAST_WEIGHT = 2;

function wordsOf(text: string): Set<string> {
  return new Set(
    text
      .slice(0, READ_CHARACTERS)
      .toLowerCase()
      .match(/[\p{L}\p{N}_-]{3,}/gu) ?? [],
  );
}

const textOf = ({ message, reply = '', label = '' }: Turn) => `${label}\n${message}\n${reply}`;

function excerpt(text: string): string {
  return text.length > EXCERPT_CHARACTERS ? `${text.slice(0, EXCERPT_CHARACTERS).toWellFormed()}…` : text;
}

/**
 * The older turns that share most with a turn, by the weight of the words they have in common: a word that every turn has weighs
 * nothing, one that a single turn has weighs most (inverse document frequency).
 *
 * @param older oldest first
 * @returns oldest first
 */
export function relevantTurns(turn: Turn, older: readonly Turn[]): Turn[] {
  const asked = wordsOf(textOf(turn));
  const shared = older.map((each) => [...wordsOf(textOf(each))].filter((word) => asked.has(word)));
  const frequency = new Map<string, number>();
  for (const words of shared) for (const word of words) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  const weightOf = (word: string) => Math.log((older.length + 1) / frequency.get(word)!);
  return older
    .map((each, place) => ({ each, weight: shared[place]!.reduce((sum, word) => sum + weightOf(word), 0) }))
    .filter(({ weight }) => weight >= LEAST_WEIGHT)
    .sort((one, other) => other.weight - one.weight || other.each.seq - one.each.seq)
    .slice(0, OLDER_TURNS_SHOWN)
    .map(({ each }) => each)
    .sort((one, other) => one.seq - other.seq);
}

/** Older turns as the system block shows them; `undefined` when none belongs. */
export function renderOlder(turn: Turn, older: readonly Turn[]): string | undefined {
  const relevant = relevantTurns(turn, older);
  if (relevant.length === 0) return undefined;
  const shown = relevant.map((each) => {
    const who = each.origin === 'chronos' ? 'you, by an alarm' : 'a person';
    const answer = each.reply === undefined ? '' : `\nyour answer: ${excerpt(each.reply)}`;
    return `${formatInstant(each.createdAt)}, ${who}: ${excerpt(each.message)}${answer}`;
  });
  const text = shown.join('\n\n');
  const note = 'Older turns of this conversation that are not shown but may belong to this one, shortened:';
  return `${note}\n${quoted('older', codeFor([turn.id, 'older'], [text]), text)}`;
}
