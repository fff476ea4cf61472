/**
 * Finds near vectors without reading them all. The signs of a vector, one bit each, are its sketch; the share of equal
 * signs estimates the angle between two vectors (Charikar, STOC 2002). Sketches fit into memory and are compared one by
 * one; the few near vectors are then compared exactly. Pure.
 */

/** Normalizes a vector to length 1, so that a dot product is a cosine. @returns `undefined` when it has no direction */
export function unitVector(numbers: ArrayLike<number>): Float32Array | undefined {
  const vector = Float32Array.from(numbers);
  const length = Math.hypot(...chunkLengths(vector));
  if (!Number.isFinite(length) || length === 0) return undefined;
  for (let at = 0; at < vector.length; at++) vector[at]! /= length;
  return vector;
}

/** `Math.hypot` takes its numbers as arguments, of which thousands are not possible. */
function chunkLengths(vector: Float32Array): number[] {
  const lengths: number[] = [];
  for (let at = 0; at < vector.length; at += 256) lengths.push(Math.hypot(...vector.subarray(at, at + 256)));
  return lengths;
}

/** The cosine of two vectors of length 1, from -1 to 1. */
export function cosineOf(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += one[at]! * other[at]!;
  return sum;
}

/** The number of 32-bit words for the signs of a vector with this many dimensions. */
const wordsFor = (dimensions: number) => Math.ceil(dimensions / 32);

export function sketchOf(vector: Float32Array): Uint32Array {
  const sketch = new Uint32Array(wordsFor(vector.length));
  for (let at = 0; at < vector.length; at++) {
    if (vector[at]! > 0) sketch[at >> 5]! |= 1 << (at & 31);
  }
  return sketch;
}

function ones(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** A growing list of sketches of one space, by the numbers of their memories. */
export class Sketches {
  readonly dimensions: number;
  readonly #width: number;
  #seqs = new Float64Array(64);
  #bits: Uint32Array;
  #count = 0;

  constructor(dimensions: number) {
    this.dimensions = dimensions;
    this.#width = wordsFor(dimensions);
    this.#bits = new Uint32Array(64 * this.#width);
  }

  get count(): number {
    return this.#count;
  }

  add(seq: number, sketch: Uint32Array): void {
    if (this.#count === this.#seqs.length) this.#grow();
    this.#seqs[this.#count] = seq;
    this.#bits.set(sketch, this.#count * this.#width);
    this.#count++;
  }

  /** The `wanted` nearest, plus ties with the last of them as far as the limit allows. In no order. */
  nearest(sketch: Uint32Array, wanted: number): number[] {
    const width = this.#width;
    const distances = new Uint16Array(this.#count);
    const counts = new Uint32Array(width * 32 + 1);
    for (let row = 0; row < this.#count; row++) {
      let distance = 0;
      const base = row * width;
      for (let at = 0; at < width; at++) distance += ones(this.#bits[base + at]! ^ sketch[at]!);
      distances[row] = distance;
      counts[distance]!++;
    }
    let within = 0;
    let limit = 0;
    while (limit < counts.length - 1 && within + counts[limit]! < wanted) within += counts[limit++]!;
    const found: number[] = [];
    let atLimit = wanted - within;
    for (let row = 0; row < this.#count; row++) {
      const distance = distances[row]!;
      if (distance > limit || (distance === limit && atLimit-- <= 0)) continue;
      found.push(this.#seqs[row]!);
    }
    return found;
  }

  #grow(): void {
    const seqs = new Float64Array(this.#seqs.length * 2);
    seqs.set(this.#seqs);
    const bits = new Uint32Array(this.#bits.length * 2);
    bits.set(this.#bits);
    this.#seqs = seqs;
    this.#bits = bits;
  }
}
