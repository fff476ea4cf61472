/**
 * Where values of a plan may come from: the words that were handed over, and what tools answered while it was compiled.
 * Pure.
 */

import { decimalForm } from '../../wire/exact-number.ts';
import type { ContextPiece } from '../../wire/executor.ts';
import type { CompileRead } from '../receipt/bodies.ts';

/**
 * Who wrote the text that a value stands in; where it stands in several, the first of these is named. `schema`: nobody,
 * the tool takes no other value or has it by default. The task itself comes late, for an agent may have written it:
 * what is behind its words says more.
 */
export const ORIGINS = ['schema', 'conversation', 'person', 'alarm', 'tool', 'prose', 'read'] as const;
export type OriginKind = (typeof ORIGINS)[number];

export type Origin = {
  readonly kind: OriginKind;
  /** Of a `read`: `<alias>/<tool>` */
  readonly tool?: string;
};

/** What a plan was compiled from. */
export type Material = {
  readonly prose: string;
  readonly context: readonly ContextPiece[];
  readonly reads: readonly CompileRead[];
  /** The id of the conversation that the task comes from; only an argument of that name may have it from here. */
  readonly conversationId?: string | undefined;
};

/** A text, or each text and number of what is written in it as JSON. */
export type Source = Origin & { readonly words: WordIndex };

/** A line separator: no value that is let through holds one, so none can reach from one leaf into the next. */
const LEAF_SEPARATOR = '\u2028';

/** How deep JSON inside of JSON is read. */
const DEEPEST = 3;

/** All texts and numbers of a JSON value, names of fields included. */
function leavesOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return [value, ...jsonLeaves(value, depth + 1)];
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    ...(Array.isArray(value) ? [] : [name]),
    ...leavesOf(member, depth),
  ]);
}

/**
 * What a JSON document says; nothing of other texts. Numbers that JavaScript rounds are left out: nobody has written
 * the rounded ones.
 */
function jsonLeaves(text: string, depth = 0): string[] {
  if (depth > DEEPEST || !/^\s*[[{]/.test(text)) return [];
  try {
    const exact = (_: string, value: unknown, { source }: { source?: string }) =>
      typeof value === 'number' && source !== undefined && String(value) !== source ? source : value;
    const parse = JSON.parse as (text: string, reviver: typeof exact) => unknown;
    return leavesOf(parse(text, exact), depth);
  } catch {
    return [];
  }
}

function sourcesIn(text: string, origin: Origin): Source[] {
  const leaves = jsonLeaves(text);
  const texts = leaves.length === 0 ? [text] : [text, leaves.join(LEAF_SEPARATOR)];
  return texts.map((part) => ({ ...origin, words: indexWords(part) }));
}

/** The sources of some material, in the order of {@link ORIGINS}. */
export function sourcesOf({ prose, context, reads, conversationId }: Material): readonly Source[] {
  const all: Source[] = [
    ...(conversationId === undefined ? [] : [{ kind: 'conversation', words: indexWords(conversationId) } as const]),
    ...sourcesIn(prose, { kind: 'prose' }),
    ...context.flatMap(({ from, text }) => sourcesIn(text, { kind: from })),
    ...reads.flatMap(({ tool, text = '' }) => sourcesIn(text, { kind: 'read', tool })),
  ];
  return all.sort((one, other) => ORIGINS.indexOf(one.kind) - ORIGINS.indexOf(other.kind));
}

/** Scripts that are written without spaces: their runs end where other writing begins. */
const UNSPACED =
  '\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Hangul}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}';
/** Of these, what can be taken for a dash, a bar or a zero: it goes on with the word that it stands in. */
const DASHLIKE = '一丨丶〇';
const QUOTES = '"`“”„«»‟';
const SEPARATORS = `\\s${QUOTES};|、。，；：（）「」『』【】`;
const CHUNK = new RegExp(
  `(?![${DASHLIKE}])[${UNSPACED}](?:(?![${DASHLIKE}])[${UNSPACED}])*|(?:[${DASHLIKE}]|[^${SEPARATORS}${UNSPACED}])+`,
  'gu',
);

/** A comma between digits may be part of a number. */
const BETWEEN_COMMAS = /(?:[^,]|(?<=\d),(?=\d))+/gu;

const LEADING = new Set([...`([{<'‘‚:¿¡`]);
const TRAILING = new Set([...`)]}>'’.,:!?…`]);
const EMPHASIS = new Set(['*', '_']);

/** `amount=5`: what stands after the sign is a word, too. */
const ASSIGNED = /^[A-Za-z_]{1,40}=(?=.)/;

const STARTS = 1;
const ENDS = 2;

type Chunk = { readonly start: number; readonly end: number; readonly text: string };

/** A word without brackets and punctuation around it. */
type Word = Chunk;

/**
 * Digits in groups are one thing: neither `1` nor `000` stands in `1 000`, and `DE89` is not the whole of `DE89 3704`.
 */
const GROUP_BEFORE = /^[([{<'\p{Sc}#+-]*[\d.,]*\d$|^[A-Z]{2}\d{2}$/u;
const GROUP_AFTER = /^\d[\d.,%\p{Sc})\]}>'!?:]*$/u;
const IBAN_BEFORE = /^[A-Z]{2}\d{2}$/;
const IBAN_AFTER = /^[A-Z0-9]{4}$/;
const GROUP_GAP = /^[ \u00a0\u2007\u2009\u202f]$/;

function chunksOf(text: string): Chunk[] {
  const chunks: Chunk[] = [];
  for (const { 0: outer, index } of text.matchAll(CHUNK)) {
    for (const { 0: inner, index: within } of outer.matchAll(BETWEEN_COMMAS)) {
      const start = index + within;
      chunks.push({ start, end: start + inner.length, text: inner });
    }
  }
  return chunks;
}

const goesOn = (one: Chunk, other: Chunk, text: string) =>
  GROUP_GAP.test(text.slice(one.end, other.start)) &&
  ((GROUP_BEFORE.test(one.text) && GROUP_AFTER.test(other.text)) ||
    (IBAN_BEFORE.test(one.text) && IBAN_AFTER.test(other.text)));

/** Marks where the words in a chunk begin and end, and gives the innermost one. */
function mark({ start, end }: Chunk, text: string, edges: Uint8Array): Word {
  let [from, to] = [start, end];
  const begin = () => {
    edges[from]! |= STARTS;
  };
  const finish = () => {
    edges[to]! |= ENDS;
  };
  begin();
  finish();
  for (; from < to && LEADING.has(text[from]!); begin()) from++;
  for (; to > from && TRAILING.has(text[to - 1]!); finish()) to--;
  while (to - from > 2 && EMPHASIS.has(text[from]!) && text[to - 1] === text[from]) {
    from++;
    to--;
    begin();
    finish();
  }
  const assigned = ASSIGNED.exec(text.slice(from, Math.min(to, from + 42)));
  if (assigned && from + assigned[0].length < to) {
    from += assigned[0].length;
    begin();
  }
  return { start: from, end: to, text: text.slice(from, to) };
}

const PLAIN_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;
/** Grouped so that it can be read in one way only: `1,000` could be a one with three decimals. */
const GROUPED_NUMBER = /^-?[1-9]\d{0,2}(?:(?:,\d{3}){2,}(?:\.\d+)?|,\d{3}\.\d+)$/;

/** Words and signs that make another number of the one before them. */
const MAGNITUDE =
  /^(?:hundreds?|thousands?|millions?|billions?|trillions?|dozens?|k|m|mn|bn|mio|mrd|million(?:en)?|tausend|mil|millones|lakhs?|crores?|тысяч.?|миллион.*|млн|тыс)$/iu;
const MAGNITUDE_SIGN = /^[十百千万萬亿億兆만억천백]/u;

/** The number that a word is, in a form in which equal numbers are equal texts. */
function numberIn(word: string): string | undefined {
  const bare = word.replace(/^(-?)[\p{Sc}#]/u, '$1').replace(/[\p{Sc}%]$/u, '');
  if (PLAIN_NUMBER.test(bare)) return decimalForm(bare);
  return GROUPED_NUMBER.test(bare) ? decimalForm(bare.replaceAll(',', '')) : undefined;
}

/** How many seconds a unit of time has. */
const UNIT_SECONDS: readonly (readonly [RegExp, number])[] = [
  [/^(?:s|secs?|seconds?)$/i, 1],
  [/^(?:min|mins|minutes?)$/i, 60],
  [/^(?:h|hrs?|hours?)$/i, 3600],
  [/^(?:d|days?)$/i, 86_400],
];
/** `in an hour` */
const ARTICLE = /^(?:an?|one)$/i;
const WITH_UNIT = /^(\d{1,9})([A-Za-z]+)$/;

function secondsIn(number: string, unit: string): number | undefined {
  const [, seconds] = UNIT_SECONDS.find(([pattern]) => pattern.test(unit)) ?? [];
  return seconds === undefined || !/^\d{1,9}$/.test(number) ? undefined : Number(number) * seconds;
}

/** A text that can be asked for whole words. */
export type WordIndex = {
  /** Whether a text stands here from the beginning of a word to the end of one, character for character. */
  has(value: string): boolean;
  /** The same without regard to the case of A to Z. */
  hasInAnyCase(value: string): boolean;
  /** Whether a number stands here as a word, in this or another notation of the same decimal. */
  hasNumber(literal: string): boolean;
  /** Whether a time of so many seconds stands here: `600`, `10 minutes`, `10min`. */
  hasSeconds(seconds: number): boolean;
  /** The instants that stand here, as they are written. */
  readonly instants: readonly string[];
};

const INSTANT = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** Only ASCII: other letters have forms that are equal in one case and not in the other. */
const folded = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** Reads a text once; all questions about it are then cheap. */
export function indexWords(text: string): WordIndex {
  const edges = new Uint8Array(text.length + 1);
  const numbers = new Set<string>();
  const seconds = new Set<number>();
  const instants: string[] = [];
  const chunks = chunksOf(text);
  const words = chunks.map((chunk) => mark(chunk, text, edges));
  const joined = chunks.map((chunk, at) => at > 0 && goesOn(chunks[at - 1]!, chunk, text));
  for (const [at, chunk] of chunks.entries()) {
    if (!joined[at]) continue;
    edges[chunk.start]! &= ~STARTS;
    edges[chunks[at - 1]!.end]! &= ~ENDS;
  }
  for (const [at, { text: word, end }] of words.entries()) {
    if (INSTANT.test(word)) instants.push(word);
    const [, count, unit] = WITH_UNIT.exec(word) ?? [];
    if (count !== undefined) seconds.add(secondsIn(count, unit!) ?? Number.NaN);
    if (joined[at] || joined[at + 1]) continue;
    const number = numberIn(word);
    const next = words[at + 1]?.text ?? '';
    if (ARTICLE.test(word)) seconds.add(secondsIn('1', next) ?? Number.NaN);
    if (number === undefined || MAGNITUDE_SIGN.test(text.slice(end, end + 1)) || MAGNITUDE.test(next)) continue;
    numbers.add(number);
    seconds.add(secondsIn(word, next) ?? Number.NaN);
  }
  let lower: string | undefined;

  function stands(value: string, within: string): boolean {
    if (value === '') return false;
    for (let at = within.indexOf(value); at >= 0; at = within.indexOf(value, at + 1)) {
      if (edges[at]! & STARTS && edges[at + value.length]! & ENDS) return true;
    }
    return false;
  }

  return {
    has: (value) => stands(value, text),
    hasInAnyCase(value) {
      lower ??= folded(text);
      return stands(folded(value), lower);
    },
    hasNumber: (literal) => numbers.has(decimalForm(literal)),
    hasSeconds: (count) => seconds.has(count) || numbers.has(decimalForm(String(count))),
    instants,
  };
}
