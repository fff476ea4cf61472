/**
 * Finding memories by their words, in bounded time however many there are.
 *
 * BM25 costs time for every memory that has one of the words, and a word that is in every tenth memory says next to
 * nothing. So the index is asked first how many memories have each word, with a limit, and the rarest words are
 * searched for, as many as the budget allows. Only when all words are frequent, the newest memories with any of them
 * are looked at instead.
 */
import type { DatabaseSync } from 'node:sqlite';
import { queryWords } from './words.ts';

/** A memory and how well its words fit: greater is better; comparable within one answer only. */
export type TextHit = { readonly seq: number; readonly fit: number };

/** Different words of a query that are looked at. */
const WORDS_MAX = 24;
/** A word that more memories have than this is frequent. */
const FREQUENT = 600;
/** And so is a word that more than this share of them have, unless these are few. */
const FREQUENT_SHARE = 0.2;
const FEW = 20;
/** Memories that are scored for one query, at most. */
const BUDGET = 1500;
/** Of the memories with nothing but frequent words, so many of the newest are looked at. */
const NEWEST = 200;

const quoted = (words: readonly string[]) => words.map((word) => `"${word}"`).join(' OR ');

/** Makes the search over an open connection. */
export function textSearch(db: DatabaseSync) {
  // The limit keeps the question cheap: an exact count of a frequent word would read through all of its memories.
  const having = db.prepare(`
    SELECT count(*) AS n FROM (SELECT 1 FROM memory_text WHERE memory_text MATCH ? LIMIT ?)`);
  // SQLite's BM25 is less than 0, and less is better.
  const ranked = db.prepare(`
    SELECT rowid AS seq, -rank AS fit FROM memory_text WHERE memory_text MATCH ? ORDER BY rank LIMIT ?`);
  const newest = db.prepare(`
    SELECT seq, search FROM memories
    WHERE seq IN (SELECT rowid FROM memory_text WHERE memory_text MATCH ? ORDER BY rowid DESC LIMIT ?)`);
  // The greatest number given, which is what there is but for what was forgotten.
  const given = db.prepare('SELECT max(seq) AS n FROM memories');

  /** The rarest words that the budget allows; none when all are frequent. */
  function telling(words: readonly string[]): string[] {
    const { n } = given.get() as { n: number | null };
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

  /** How many of the words each of the newest memories has that have any. */
  function byFrequentWords(words: readonly string[], limit: number): TextHit[] {
    const asked = new Set(words);
    const rows = newest.all(quoted(words), NEWEST) as { seq: number; search: string }[];
    return rows
      .map(({ seq, search }) => {
        const has = new Set(search.toLowerCase().split(' '));
        return { seq, fit: [...asked].filter((word) => has.has(word)).length + 1 };
      })
      .sort((one, other) => other.fit - one.fit || other.seq - one.seq)
      .slice(0, limit);
  }

  return {
    /** Memories with words of the query, best first. A query without any word finds nothing. */
    find(query: string, limit: number): TextHit[] {
      const words = queryWords(query, WORDS_MAX);
      if (words.length === 0) return [];
      const rare = telling(words);
      return rare.length > 0 ? (ranked.all(quoted(rare), limit) as TextHit[]) : byFrequentWords(words, limit);
    },
  };
}
