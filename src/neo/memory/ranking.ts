/** Which memory comes first. Pure; all numbers are explained in docs/memory.md. */

/** After so many days without being learned again a memory has lost half of its weight for being recent. */
const HALF_LIFE_DAYS = 30;
const DAY_MS = 86_400_000;

/** Relevance decides; salience and age only order what is about as relevant. */
const WEIGHTS = { floor: 0.6, salience: 0.25, recency: 0.15 } as const;

/** What a newer memory contradicts is still found, after what holds. */
const SUPERSEDED = 0.5;

export type Standing = {
  /** From 0 to 1, beside the other findings of the same query. */
  readonly relevance: number;
  readonly salience: number;
  /** How long ago it was learned last; less than 0 when a clock was put back. */
  readonly ageMs: number;
  readonly superseded: boolean;
};

/** From 1, just learned, towards 0. */
export function recencyOf(ageMs: number): number {
  return 0.5 ** (Math.max(0, ageMs) / DAY_MS / HALF_LIFE_DAYS);
}

/** The order of findings: more relevant, more salient, more recent is never less. */
export function scoreOf({ relevance, salience, ageMs, superseded }: Standing): number {
  const weight = WEIGHTS.floor + WEIGHTS.salience * salience + WEIGHTS.recency * recencyOf(ageMs);
  return relevance * weight * (superseded ? SUPERSEDED : 1);
}

/**
 * Reciprocal rank fusion (Cormack, Clarke, Büttcher, SIGIR 2009) of rankings of the same things. Their k is 60, for
 * thousands of findings; here a few dozen count, and a smaller k keeps the first ones apart.
 */
const FUSION_K = 20;

/**
 * @param rankings each best first, without repetitions
 * @returns for each thing a relevance in (0, 1]; 1 is first in every ranking
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

/** A memory that is learned again matters a little more each time, and never more than 1. */
export function strengthened(salience: number, again: number): number {
  const base = Math.max(salience, again);
  return base + (1 - base) * 0.1;
}
