import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cosineOf, Sketches, sketchOf, unitVector } from './sketch.ts';

/** Reproducible pseudo-random numbers in [0, 1): Park and Miller's generator. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

test('a vector without a direction is rejected', () => {
  assert.equal(unitVector([0, 0]), undefined);
  assert.equal(unitVector([Number.NaN, 1]), undefined);
  assert.equal(unitVector([Number.POSITIVE_INFINITY, 1]), undefined);
  assert.deepEqual([...unitVector([3, 4])!], [Math.fround(0.6), Math.fround(0.8)]);
  assert.ok(Math.abs(cosineOf(unitVector(Array(3000).fill(1e30))!, unitVector(Array(3000).fill(1))!) - 1) < 1e-4);
});

test('of 2,000 vectors the sketches find the truly nearest among 80 candidates', () => {
  const random = randomFrom(11);
  const dimensions = 257;
  const vectorOf = () => unitVector(Array.from({ length: dimensions }, () => random() + random() + random() - 1.5))!;
  const sketches = new Sketches(dimensions);
  const vectors = Array.from({ length: 2000 }, vectorOf);
  for (const [seq, vector] of vectors.entries()) sketches.add(seq, sketchOf(vector));
  let found = 0;
  for (let seq = 0; seq < 50; seq++) {
    const near = unitVector(vectors[seq]!.map((number) => number + 0.06 * (random() - 0.5)))!;
    const candidates = sketches.nearest(sketchOf(near), 80);
    assert.equal(candidates.length, 80);
    if (candidates.includes(seq)) found++;
  }
  assert.equal(found, 50);
});

test('there are no more candidates than sketches', () => {
  const sketches = new Sketches(8);
  const sketch = sketchOf(unitVector([1, 1, 1, 1, -1, -1, -1, -1])!);
  assert.deepEqual(sketches.nearest(sketch, 5), []);
  sketches.add(7, sketch);
  assert.deepEqual(sketches.nearest(sketch, 5), [7]);
});
