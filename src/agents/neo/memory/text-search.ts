/**
 * Finds memories by their words, in bounded time for any number of memories.
 *
 * BM25 costs time for every memory with one of the words, and a word of every tenth memory hardly matters. The index
 * first counts the memories of each word, up to a limit. The rarest words within the budget are then searched. Only if
 * all words are frequent, the newest memories with any of them are scored instead.
 */
import type { DatabaseSync } from 'node:sqlite';
import { queryWords } from './search-words.ts';

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
