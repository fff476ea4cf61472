/**
 * Where the words of a text begin and end, so that a value can be told from a part of one: `5` does not stand in `50`, `acct-1` not
 * in `acct-12` or `acct-1.5`, `/a` not in `/a/b`. Where it is open whether something ends, it does not. Pure.
 */
import { decimalForm } from '../../wire/exact-number.ts';

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

/** Digits in groups are one thing: neither `1` nor `000` stands in `1 000`, and `DE89` is not the whole of `DE89 3704`. */
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
const WITH_UNIT = /^(\d{1,9})([A-Za-z]+)$/;

function secondsIn(number: string, unit: string): number | undefined {
  const [, seconds] = UNIT_SECONDS.find(([pattern]) => pattern.test(unit)) ?? [];
  return seconds === undefined || !/^\d{1,9}$/.test(number) ? undefined : Number(number) * seconds;
}

/** A text that can be asked for whole words. */
export type Words = {
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
export function wordsOf(text: string): Words {
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
