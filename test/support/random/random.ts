/** Random choices of tests: each prints its seed, and `REVEILLE_SEED` makes the same choices again. */
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';

/** mulberry32: small, and the same numbers from the same seed on every platform. Uniform in [0, 1). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The seed of a random test: `REVEILLE_SEED`, or a new one. The test's output says which. */
export function seedOf(t: Pick<TestContext, 'diagnostic'>): number {
  const given = process.env.REVEILLE_SEED;
  const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`REVEILLE_SEED must be a whole number (got ${given})`);
  t.diagnostic(`random choices; repeat them with REVEILLE_SEED=${seed}`);
  return seed;
}

/** A whole number from 0 to below `sides`. */
export type Dice = (sides: number) => number;

export function diceFrom(seed: number): Dice {
  const random = randomFrom(seed);
  return (sides) => Math.floor(random() * sides);
}

/** The random choices of a test. */
export const diceOf = (t: Pick<TestContext, 'diagnostic'>): Dice => diceFrom(seedOf(t));

/** Number of repetitions of a random test: few in `npm test`, the full number in `npm run test:rounds`. */
export const rounds = <T = number>(few: T, all: T): T => (process.env.REVEILLE_ROUNDS === 'all' ? all : few);
