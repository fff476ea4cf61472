/** The order of memories. Pure; docs/guides/memory.md explains all numbers. */

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

/** Each repetition raises salience a little, but never above 1. */
export function strengthened(salience: number, again: number): number {
  const base = Math.max(salience, again);
  return base + (1 - base) * 0.1;
}
