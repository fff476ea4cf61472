/**
 * Decisions from a seed. Every part of the world has its own dice, so that one part's throws do not change another's.
 */
import { randomFrom } from '../../support/random/random.ts';

export class Dice {
  readonly #seed: number;
  /** Uniform in [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.#seed = seed;
    this.next = randomFrom(seed);
    // Neighbouring seeds begin alike; a few throws separate them.
    for (let n = 0; n < 4; n++) this.next();
  }

  /** Dice that depend on this one's seed and a name, and not on earlier throws. */
  fork(name: string): Dice {
    let hash = this.#seed ^ 0x9e3779b9;
    for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
    return new Dice(hash ^ (hash >>> 15));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Uniform between two numbers. */
  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** A whole number, both ends included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** Spread over several orders of magnitude: [1, 10) is as likely as [10, 100). */
  magnitude(least: number, most: number): number {
    return least * (most / least) ** this.next();
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.next() * from.length)]!;
  }

  /** Picks by weight; the weights need no fixed sum. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const entries = Object.entries(weights) as [T, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return entries.at(-1)![0];
  }
}
