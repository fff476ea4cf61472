/** The sources of a plan's values: the submitted text, and the answers of tools during the compilation. Pure. */
import type { ContextPiece } from '../../wire/executor.ts';
import { decimalForm } from '../../wire/json.ts';
import type { CompileRead } from '../receipt/bodies.ts';

/**
 * The author of the text that contains a value; of several, the first in this order. `schema`: the tool accepts no
 * other value or has it as default. The task comes late, because an agent may have written it: the earlier origins are
 * more informative.
 */
export const ORIGINS = ['schema', 'conversation', 'person', 'alarm', 'tool', 'prose', 'read'] as const;
export type OriginKind = (typeof ORIGINS)[number];

export type Origin = {
  readonly kind: OriginKind;
  /** Of a `read`: `<alias>/<tool>` */
  readonly tool?: string;
};

export type Material = {
  readonly prose: string;
  readonly context: readonly ContextPiece[];
  readonly reads: readonly CompileRead[];
  /** The id of the task's conversation; only an argument named `conversation_id` may take its value from here. */
  readonly conversationId?: string | undefined;
};

/** A text, or the texts and numbers of a JSON document in it. */
export type Source = Origin & { readonly words: WordIndex };

/** A line separator: no accepted value contains one, so no value can span two leaves. */
const LEAF_SEPARATOR = '\u2028';

/** Maximum depth of JSON inside JSON strings. */
const JSON_DEPTH_MAX = 3;

/** All texts and numbers of a JSON value, including field names. */
function leavesOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return [value, ...jsonLeaves(value, depth + 1)];
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    ...(Array.isArray(value) ? [] : [name]),
    ...leavesOf(member, depth),
  ]);
}

/** The leaves of a JSON document; none for other texts. Numbers that JavaScript rounds keep their source text. */
function jsonLeaves(text: string, depth = 0): string[] {
  if (depth > JSON_DEPTH_MAX || !/^\s*[[{]/.test(text)) return [];
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

/** Scripts without spaces between words: a run ends where another script begins. */
const UNSPACED =
  '\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Hangul}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}';
/** Characters of these scripts that look like a dash, a bar or a zero; they belong to the surrounding word. */
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

/** `amount=5`: the text after the sign is a word, too. */
const ASSIGNED = /^[A-Za-z_]{1,40}=(?=.)/;

const STARTS = 1;
const ENDS = 2;

type Chunk = { readonly start: number; readonly end: number; readonly text: string };

/** A word without brackets and punctuation around it. */
type Word = Chunk;

/**
 * Grouped digits are one value: `1 000` contains neither `1` nor `000`, and `DE89 3704` does not contain `DE89` as a
 * whole.
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

const continuesNumber = (one: Chunk, other: Chunk, text: string) =>
  GROUP_GAP.test(text.slice(one.end, other.start)) &&
  ((GROUP_BEFORE.test(one.text) && GROUP_AFTER.test(other.text)) ||
    (IBAN_BEFORE.test(one.text) && IBAN_AFTER.test(other.text)));

/** Marks the word boundaries in a chunk and returns the innermost word. */
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
/** Unambiguous grouping: `1,000` could be a one with three decimals. */
const GROUPED_NUMBER = /^-?[1-9]\d{0,2}(?:(?:,\d{3}){2,}(?:\.\d+)?|,\d{3}\.\d+)$/;

/** Words and signs that change the value of the preceding number. */
const MAGNITUDE =
  /^(?:hundreds?|thousands?|millions?|billions?|trillions?|dozens?|k|m|mn|bn|mio|mrd|million(?:en)?|tausend|mil|millones|lakhs?|crores?|тысяч.?|миллион.*|млн|тыс)$/iu;
const MAGNITUDE_SIGN = /^[十百千万萬亿億兆만억천백]/u;

/** The number of a word in canonical form: equal numbers are equal texts. */
function numberIn(word: string): string | undefined {
  const bare = word.replace(/^(-?)[\p{Sc}#]/u, '$1').replace(/[\p{Sc}%]$/u, '');
  if (PLAIN_NUMBER.test(bare)) return decimalForm(bare);
  return GROUPED_NUMBER.test(bare) ? decimalForm(bare.replaceAll(',', '')) : undefined;
}

/** Seconds per unit of time. */
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

/** An index of a text's whole words. */
export type WordIndex = {
  /** Whether the value occurs from the start of a word to the end of a word, character for character. */
  has(value: string): boolean;
  /** The same, ignoring the case of A to Z. */
  hasInAnyCase(value: string): boolean;
  /** Whether the number occurs as a word, in any notation of the same decimal. */
  hasNumber(literal: string): boolean;
  /** Whether a duration of so many seconds occurs: `600`, `10 minutes`, `10min`. */
  hasSeconds(seconds: number): boolean;
  /** The instants in the text, as they are written. */
  readonly instants: readonly string[];
};

const INSTANT = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** ASCII only: some other letters are equal in one case and differ in the other. */
const lowerAscii = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** Parses a text once; the lookups are then cheap. */
export function indexWords(text: string): WordIndex {
  const edges = new Uint8Array(text.length + 1);
  const numbers = new Set<string>();
  const seconds = new Set<number>();
  const instants: string[] = [];
  const chunks = chunksOf(text);
  const words = chunks.map((chunk) => mark(chunk, text, edges));
  const continues = chunks.map((chunk, at) => at > 0 && continuesNumber(chunks[at - 1]!, chunk, text));
  for (const [at, chunk] of chunks.entries()) {
    if (!continues[at]) continue;
    edges[chunk.start]! &= ~STARTS;
    edges[chunks[at - 1]!.end]! &= ~ENDS;
  }
  for (const [at, { text: word, end }] of words.entries()) {
    if (INSTANT.test(word)) instants.push(word);
    const [, count, unit] = WITH_UNIT.exec(word) ?? [];
    if (count !== undefined) seconds.add(secondsIn(count, unit!) ?? Number.NaN);
    if (continues[at] || continues[at + 1]) continue;
    const number = numberIn(word);
    const next = words[at + 1]?.text ?? '';
    if (ARTICLE.test(word)) seconds.add(secondsIn('1', next) ?? Number.NaN);
    if (number === undefined || MAGNITUDE_SIGN.test(text.slice(end, end + 1)) || MAGNITUDE.test(next)) continue;
    numbers.add(number);
    seconds.add(secondsIn(word, next) ?? Number.NaN);
  }
  let lower: string | undefined;

  function occurs(value: string, within: string): boolean {
    if (value === '') return false;
    for (let at = within.indexOf(value); at >= 0; at = within.indexOf(value, at + 1)) {
      if (edges[at]! & STARTS && edges[at + value.length]! & ENDS) return true;
    }
    return false;
  }

  return {
    has: (value) => occurs(value, text),
    hasInAnyCase(value) {
      lower ??= lowerAscii(text);
      return occurs(lowerAscii(value), lower);
    },
    hasNumber: (literal) => numbers.has(decimalForm(literal)),
    hasSeconds: (count) => seconds.has(count) || numbers.has(decimalForm(String(count))),
    instants,
  };
}
