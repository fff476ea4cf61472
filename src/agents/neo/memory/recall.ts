/** Recall: combines words, meaning, salience and age into one order. */
import type { Cortex } from './cortex.ts';
import type { StoredMemory } from './memory.ts';
import { fuse, scoreOf } from './ranking.ts';
import type { Semantics } from './semantics.ts';

export type RecallRequest = {
  /** The query, in any words; absent or without words: the most important and newest memories. */
  readonly query?: string | undefined;
  /** The most memories to return; 10 by default. */
  readonly limit?: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
};

/** A memory and its score; scores are comparable within one answer only. */
export type RecalledMemory = StoredMemory & { readonly score: number };

const LIMIT = 10;
/** How many findings of each kind of search are ordered; salience and age can lift a memory from this far below. */
const CANDIDATES = 100;

type Searches = {
  cortex: Pick<Cortex, 'findByText' | 'many' | 'foremost'>;
  semantics: Pick<Semantics, 'near'> | undefined;
};

/** Memories that match a query and how well, from 0 to 1. */
async function relevances(query: string, { cortex, semantics }: Searches): Promise<Map<number, number>> {
  const near = await semantics?.near(query, CANDIDATES);
  const hits = cortex.findByText(query, CANDIDATES);
  if (near !== undefined && near.length > 0) return fuse([hits.map(({ seq }) => seq), near]);
  const best = hits[0]?.score ?? 1;
  // A word in more than half of all memories has no weight in BM25; memories that match only such words are equally
  // relevant.
  return new Map(hits.map(({ seq, score }) => [seq, best > 0 ? Math.max(0, score / best) : 1]));
}

/**
 * The memories for a request, best first.
 *
 * @throws ReveilleError `unavailable` when the file cannot be read
 */
export async function recall(
  { query = '', limit = LIMIT, now }: RecallRequest,
  searches: Searches,
): Promise<RecalledMemory[]> {
  const hasQuery = query.trim() !== '';
  const relevance = hasQuery ? await relevances(query, searches) : undefined;
  const found = relevance ? searches.cortex.many([...relevance.keys()]) : searches.cortex.foremost(CANDIDATES);
  const different = new Map(found.map((memory) => [memory.seq, memory]));
  return [...different.values()]
    .map((memory) => {
      const score = scoreOf({
        relevance: relevance?.get(memory.seq) ?? 1,
        salience: memory.salience,
        ageMs: now - memory.lastSeenAt,
        superseded: memory.supersededBy !== undefined,
      });
      return { ...memory, score };
    })
    .sort((one, other) => other.score - one.score || other.seq - one.seq)
    .slice(0, limit);
}
