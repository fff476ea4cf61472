import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latenessOf, median, medianLateness, percentile } from './statistics.ts';

test('a percentile is a measured value, by nearest rank', () => {
  const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
  assert.equal(percentile(sorted, 0.5), 50);
  assert.equal(percentile(sorted, 0.99), 99);
  assert.equal(percentile(sorted, 1), 100);
  assert.equal(percentile([7], 0.01), 7);
  assert.equal(percentile([], 0.5), null);
});

test('a missing fire counts as later than every arrival', () => {
  assert.equal(percentile([1, 2, 3, 4], 0.5, 4), 4);
  assert.equal(percentile([1, 2, 3, 4], 0.6, 4), null);
  assert.equal(percentile([], 0.5, 3), null);
});

test('a median of an even number is the mean of the middle two', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.equal(median([]), null);
});

test('a median treats null as larger than every value', () => {
  assert.equal(median([1, null, 2]), 2);
  assert.equal(median([null, null, 2]), null);
  assert.equal(median([1, null]), null);
});

test('lateness does not depend on the order of arrival, and counts early and missing fires', () => {
  assert.deepEqual(latenessOf([30, -1, 10, 20], 5, 2), {
    expected: 5,
    missing: 1,
    repeated: 2,
    early: 1,
    p50: 20,
    p90: null,
    p99: null,
    max: null,
  });
});

test('several rounds become one line of medians, with the sum of faults', () => {
  const rounds = [
    [1, 2, 3],
    [4, 5, 6],
    [100, 200, 300],
  ].map((late) => latenessOf(late, 3, 1));
  assert.deepEqual(medianLateness(rounds), {
    expected: 9,
    missing: 0,
    repeated: 3,
    early: 0,
    p50: 5,
    p90: 6,
    p99: 6,
    max: 6,
  });
});
