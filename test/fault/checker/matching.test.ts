import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { matchWindows, type Window } from './matching.ts';

const fits = ({ from, until }: Window, point: number) => from <= point && point <= until;

/** The largest number of windows that can have their own point, by augmenting paths (after Kuhn). */
function mostByTrying(windows: readonly Window[], points: readonly number[]): number {
  const windowOf = new Map<number, number>();
  const assign = (window: number, tried: Set<number>): boolean =>
    points.some((point, index) => {
      if (tried.has(index) || !fits(windows[window]!, point)) return false;
      tried.add(index);
      const holder = windowOf.get(index);
      if (holder !== undefined && !assign(holder, tried)) return false;
      windowOf.set(index, window);
      return true;
    });
  return windows.filter((_, window) => assign(window, new Set())).length;
}

const instants = fc.integer({ min: 0, max: 30 });
const windows = fc.array(
  fc.tuple(instants, fc.integer({ min: 0, max: 12 })).map(([from, length]) => ({ from, until: from + length })),
  { maxLength: 9 },
);

test('as many windows as possible get their own point inside the window', () => {
  fc.assert(
    fc.property(windows, fc.array(instants, { maxLength: 9 }), (some, points) => {
      const { pointOf, left } = matchWindows(some, points);
      const given = pointOf.filter((point) => point !== undefined);
      assert.ok(pointOf.every((point, window) => point === undefined || fits(some[window]!, points[point]!)));
      assert.equal(given.length, mostByTrying(some, points));
      assert.deepEqual(
        [...given, ...left].sort((one, other) => one - other),
        points.map((_, index) => index),
      );
    }),
    { numRuns: 2_000 },
  );
});

test('a point goes to the window that ends first, and a point outside of all is unmatched', () => {
  const { pointOf, left } = matchWindows(
    [
      { from: 0, until: 10 },
      { from: 0, until: 5 },
    ],
    [4, 8, 11],
  );
  assert.deepEqual([pointOf, left], [[1, 0], [2]]);
});

test('a window of zero width matches only its own time', () => {
  const moment = [{ from: 5, until: 5 }];
  assert.deepEqual(matchWindows(moment, [5]).pointOf, [0]);
  assert.deepEqual(matchWindows(moment, [4, 6]), { pointOf: [undefined], left: [0, 1] });
});
