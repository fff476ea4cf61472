import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { earliestFree as earliestAmong, type Limit, limitsOf } from './slots.ts';

/** Wakes with exact instants. */
const earliestFree = (taken: readonly number[], limits: readonly Limit[], from: number) =>
  earliestAmong(
    taken.map((at) => ({ at, latest: at })),
    limits,
    from,
  );

const limit = (count: number, spanMs: number): Limit => ({ count, spanMs, name: 'hour' });

/** Whether every span respects its limit, checked from every wake on. */
function keeps(wakes: readonly number[], limits: readonly Limit[]): boolean {
  const sorted = [...wakes].sort((one, other) => one - other);
  return limits.every(({ count, spanMs }) =>
    sorted.every((first) => sorted.filter((wake) => wake >= first && wake < first + spanMs).length <= count),
  );
}

const anyLimits = fc.array(
  fc
    .record({ count: fc.integer({ min: 1, max: 4 }), spanMs: fc.integer({ min: 1, max: 30 }) })
    .map(({ count, spanMs }) => limit(count, spanMs)),
  { minLength: 1, maxLength: 3 },
);

describe('the earliest time under sliding limits', () => {
  test('is the present while the limit is not reached', () => {
    const limits = limitsOf({ wakes_per_hour: 2, min_gap_seconds: 60 });
    assert.deepEqual(earliestFree([], limits, 1000), { at: 1000, limit: undefined });
    assert.deepEqual(earliestFree([0], limits, 60_000), { at: 60_000, limit: undefined });
  });

  test('is when the oldest wake has left the span, with the name of the limit', () => {
    const limits = limitsOf({ wakes_per_hour: 2, wakes_per_day: 3, min_gap_seconds: 60 });
    assert.deepEqual(earliestFree([0], limits, 59_999), { at: 60_000, limit: limits[2] });
    assert.deepEqual(earliestFree([0, 60_000], limits, 120_000), { at: 3_600_000, limit: limits[0] });
    const { at, limit: named } = earliestFree([0, 60_000, 3_600_000], limits, 3_700_000);
    assert.deepEqual([at, named?.name], [86_400_000, 'day']);
  });

  test('leaves the times promised to other wakes free', () => {
    assert.equal(earliestFree([100], [limit(1, 10)], 95).at, 110);
    assert.equal(earliestFree([100], [limit(1, 10)], 90).at, 90);
  });

  test('leaves a reserve for promised wakes that come a little late', () => {
    const promised = [{ at: 100, latest: 105 }];
    assert.equal(earliestAmong(promised, [limit(1, 10)], 100).at, 115);
    assert.equal(earliestAmong(promised, [limit(1, 10)], 90).at, 90);
    assert.equal(earliestAmong(promised, [limit(1, 10)], 91).at, 115);
  });

  test('respects every limit, and no earlier time does', () => {
    fc.assert(
      fc.property(
        anyLimits,
        fc.array(fc.integer({ min: 0, max: 80 }), { maxLength: 12 }),
        fc.integer({ min: 0, max: 80 }),
        (limits, wishes, from) => {
          // The given wakes already respect the limits.
          const taken: number[] = [];
          for (const wish of wishes) {
            if (keeps([...taken, wish], limits)) taken.push(wish);
          }
          taken.sort((one, other) => one - other);
          const { at } = earliestFree(taken, limits, from);
          assert.ok(keeps([...taken, at], limits));
          for (let earlier = from; earlier < at; earlier++)
            assert.ok(!keeps([...taken, earlier], limits), `${earlier} was free`);
        },
      ),
      { numRuns: 400 },
    );
  });

  test('is found for a wake behind a thousand others', () => {
    const limits = limitsOf({ wakes_per_hour: 10 });
    const taken: number[] = [];
    for (let n = 0; n < 1000; n++) taken.push(earliestFree(taken, limits, 0).at);
    assert.equal(taken.at(-1), 99 * 3_600_000);
    assert.ok(keeps(taken, limits));
  });
});
