/**
 * Finds memories by their words, in bounded time for any number of memories.
 *
 * Splits texts into words for the index, for memories and queries alike, and normalizes texts to find equal memories.
 *
 * BM25 costs time for every memory with one of the words, and a word of every tenth memory hardly matters. The index
 * first counts the memories of each word, up to a limit. The rarest words within the budget are then searched. Only if
 * all words are frequent, the newest memories with any of them are scored instead.
 */
import type { DatabaseSync } from 'node:sqlite';

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

/** A memory and how well its words match: greater is better; comparable within one answer only. */
export type TextHit = { readonly seq: number; readonly score: number };

/** Different words of a query that are used. */
const WORDS_MAX = 24;
/** A word in more memories than this is frequent. */
const FREQUENT = 600;
/** A word in more than this share of them is frequent too, unless these are few. */
const FREQUENT_SHARE = 0.2;
const FEW = 20;
/** The most memories that are scored for one query. */
const BUDGET = 1500;
/** For a query of frequent words only, how many of the newest memories are scored. */
const NEWEST = 200;

const quoted = (words: readonly string[]) => words.map((word) => `"${word}"`).join(' OR ');

/** Makes the search over an open connection. */
export function textSearch(db: DatabaseSync) {
  // The limit keeps the query cheap: an exact count of a frequent word would read all of its memories.
  const having = db.prepare(`
    SELECT count(*) AS n FROM (SELECT 1 FROM memory_text WHERE memory_text MATCH ? LIMIT ?)`);
  // SQLite's BM25 is less than 0, and less is better.
  const ranked = db.prepare(`
    SELECT rowid AS seq, -rank AS score FROM memory_text WHERE memory_text MATCH ? ORDER BY rank LIMIT ?`);
  const newest = db.prepare(`
    SELECT seq, search FROM memories
    WHERE seq IN (SELECT rowid FROM memory_text WHERE memory_text MATCH ? ORDER BY rowid DESC LIMIT ?)`);
  // The greatest assigned number, an upper bound of the count: it includes forgotten memories.
  const highestNumber = db.prepare('SELECT max(seq) AS n FROM memories');

  /** The rarest words within the budget; none when all are frequent. */
  function selective(words: readonly string[]): string[] {
    const { n } = highestNumber.get() as { n: number | null };
    const limit = Math.floor(Math.min(FREQUENT, Math.max(FEW, (n ?? 0) * FREQUENT_SHARE)));
    const rare = words
      .map((word) => ({ word, memories: (having.get(quoted([word]), limit + 1) as { n: number }).n }))
      .filter(({ memories }) => memories > 0 && memories <= limit)
      .sort((one, other) => one.memories - other.memories);
    let left = BUDGET;
    return rare.flatMap(({ word, memories }) => {
      left -= memories;
      return left >= 0 ? [word] : [];
    });
  }

  /** How many of the words each of the newest matching memories has. */
  function byFrequentWords(words: readonly string[], limit: number): TextHit[] {
    const wordSet = new Set(words);
    const rows = newest.all(quoted(words), NEWEST) as { seq: number; search: string }[];
    return rows
      .map(({ seq, search }) => {
        const has = new Set(search.toLowerCase().split(' '));
        return { seq, score: [...wordSet].filter((word) => has.has(word)).length + 1 };
      })
      .sort((one, other) => other.score - one.score || other.seq - one.seq)
      .slice(0, limit);
  }

  return {
    /** Memories with words of the query, best first. A query without any word finds nothing. */
    find(query: string, limit: number): TextHit[] {
      const words = queryWords(query, WORDS_MAX);
      if (words.length === 0) return [];
      const rare = selective(words);
      return rare.length > 0 ? (ranked.all(quoted(rare), limit) as TextHit[]) : byFrequentWords(words, limit);
    },
  };
}
