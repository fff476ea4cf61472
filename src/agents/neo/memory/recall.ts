/** Recall: combines words, meaning, salience and age into one order. docs/guides/memory.md explains all numbers. */
import type { Cortex } from './cortex.ts';
import type { StoredMemory } from './memory.ts';
import type { Semantics } from './semantics.ts';

/** After this many days without repetition a memory has lost half of its recency. */
const HALF_LIFE_DAYS = 30;
const DAY_MS = 86_400_000;

/** Relevance decides; salience and age only order about equally relevant memories. */
const WEIGHTS = { floor: 0.6, salience: 0.25, recency: 0.15 } as const;

/** A contradicted memory is still found, after the ones that hold. */
const SUPERSEDED = 0.5;

export type RankingInput = {
  /** From 0 to 1, relative to the other findings of the same query. */
  readonly relevance: number;
  readonly salience: number;
  /** Time since the last learning; less than 0 when a clock was set back. */
  readonly ageMs: number;
  readonly superseded: boolean;
};

/** From 1, just learned, towards 0. */
export function recencyOf(ageMs: number): number {
  return 0.5 ** (Math.max(0, ageMs) / DAY_MS / HALF_LIFE_DAYS);
}

/** The order of findings: more relevant, more salient or more recent never scores less. */
export function scoreOf({ relevance, salience, ageMs, superseded }: RankingInput): number {
  const weight = WEIGHTS.floor + WEIGHTS.salience * salience + WEIGHTS.recency * recencyOf(ageMs);
  return relevance * weight * (superseded ? SUPERSEDED : 1);
}

/**
 * Reciprocal rank fusion (Cormack, Clarke, Büttcher, SIGIR 2009) of rankings of the same items. Their k is 60, for
 * thousands of findings; here a few dozen count, and a smaller k separates the first ones better.
 */
const FUSION_K = 20;

/**
 * @param rankings each best first, without repetitions
 * @returns a relevance in (0, 1] for each item; 1 is first in every ranking
 */
export function fuse<Key>(rankings: readonly (readonly Key[])[]): Map<Key, number> {
  const fused = new Map<Key, number>();
  const most = rankings.length / (FUSION_K + 1);
  for (const ranking of rankings) {
    ranking.forEach((key, at) => {
      fused.set(key, (fused.get(key) ?? 0) + 1 / (FUSION_K + at + 1) / most);
    });
  }
  return fused;
}

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

/** The memories for a request, best first. @throws ReveilleError `unavailable` when the file cannot be read */
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
