/**
 * Splits texts into words for the text index, for memories and queries alike, and normalizes texts to find equal
 * memories. Pure.
 */

// Normalization for equal memories. It removes only parts without meaning: letter case of plain words, punctuation at
// the edges of words, articles, a few filler words. It keeps numbers, negations, identifiers and the order of words,
// because "Alice manages Bob" and "Bob manages Alice" are two memories. Losing one of them is worse than storing
// something twice. Paraphrases are matched by their claim instead.

const FILLERS = new Set(['the', 'a', 'an', 'really', 'very', 'just', 'also', 'that', 'please']);

const EDGE_PUNCTUATION = '.,;:!?…"\'`´“”„‘’«»()\\[\\]{}、。，；：！？「」『』';
/** A full stop or comma before a digit is part of the number. */
const LEADING = new RegExp(`^(?:[${EDGE_PUNCTUATION}](?!\\p{N}))+`, 'u');
const TRAILING = new RegExp(`[${EDGE_PUNCTUATION}]+$`, 'u');

/**
 * Identifiers, addresses and hashes can differ in letter case alone: words with a digit, or with a capital after a
 * small letter.
 */
const CASE_COUNTS = /\p{N}|\p{Ll}\p{Lu}/u;

function normalizeWord(word: string): string {
  const bare = word.replace(LEADING, '').replace(TRAILING, '');
  return CASE_COUNTS.test(bare) ? bare : bare.toLowerCase().replace(/n[’']t$/, ' not');
}

/** The normalized form of a text: equal forms are one memory. Never empty for a text that is not blank. */
export function normalizeText(text: string): string {
  const words = text.normalize('NFKC').trim().split(/\s+/u);
  const normalized = words
    .map(normalizeWord)
    .filter((word) => word !== '' && !FILLERS.has(word))
    .join(' ');
  return normalized === '' ? words.join(' ') : normalized;
}

const PIECES = /(?<word>[\p{L}\p{N}\p{M}]+)|(?<emoji>\p{Extended_Pictographic}|\p{Regional_Indicator}{2})/gu;
const UNSPACED =
  /(?:\p{Script_Extensions=Han}|\p{Script_Extensions=Hiragana}|\p{Script_Extensions=Katakana}|\p{Script_Extensions=Hangul}|\p{Script_Extensions=Thai}|\p{Script_Extensions=Lao}|\p{Script_Extensions=Khmer}|\p{Script_Extensions=Myanmar})+/gu;

/** No word of any language is longer; a longer identifier is found by its beginning. In UTF-16 units. */
const WORD_MAX = 128;

function emojiToken(emoji: string): string {
  return `emoji${Array.from(emoji, (char) => char.codePointAt(0)!.toString(16)).join('x')}`;
}

/** Characters of a run and, with more than one, the pairs of neighbours. */
function grams(run: string): { single: string[]; pairs: string[] } {
  const single = Array.from(run);
  return { single, pairs: single.slice(1).map((char, at) => single[at]! + char) };
}

/**
 * The words of a text in order, repeated ones too. `forQuery`: a run of characters gives its pairs alone, which are more
 * specific.
 */
function* splitWords(text: string, forQuery: boolean): Generator<string> {
  for (const { groups } of text.toWellFormed().normalize('NFKC').matchAll(PIECES)) {
    if (groups?.emoji !== undefined) {
      yield emojiToken(groups.emoji);
      continue;
    }
    const word = groups!.word!;
    let at = 0;
    for (const run of word.matchAll(UNSPACED)) {
      if (run.index > at) yield word.slice(at, run.index).slice(0, WORD_MAX).toWellFormed();
      at = run.index + run[0].length;
      const { single, pairs } = grams(run[0]);
      if (!forQuery || pairs.length === 0) yield* single;
      yield* pairs;
    }
    if (at < word.length) yield word.slice(at, at + WORD_MAX).toWellFormed();
  }
}

/**
 * Question words and other function words, which do not identify a memory. Frequent words of any language are left out
 * by their count instead.
 */
const QUESTION_WORDS = new Set(
  [
    'a about all am an and any are as at be been but by can could did do does for from had has have',
    'he her his how i if in is it its me my no not of on or our she should so that the their them',
    'then there they this to us was we were what when where which who why will with would you your',
  ].flatMap((line) => line.split(' ')),
);

/** Characters of a query that are read; more would only cost time. */
const QUERY_MAX = 4000;

/** A text for the index: words with blanks between. */
export function searchTextOf(text: string): string {
  return [...splitWords(text, false)].join(' ');
}

/**
 * The different words of a query, in order; question words are left out as long as there are others. Each is made of
 * letters, digits and marks, so that a query of the index can quote it.
 *
 * @param most how many words at most
 */
export function queryWords(query: string, most: number): string[] {
  const found = new Set<string>();
  const isQuestionWord = new Set<string>();
  for (const word of splitWords(query.slice(0, QUERY_MAX), true)) {
    const lower = word.toLowerCase();
    (QUESTION_WORDS.has(lower) ? isQuestionWord : found).add(lower);
    if (found.size === most) break;
  }
  return [...(found.size > 0 ? found : isQuestionWord)].slice(0, most);
}
