import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { strengthened } from './cortex.ts';
import { fuse, type RankingInput, recencyOf, scoreOf } from './recall.ts';

const share = fc.double({ min: 0, max: 1, noNaN: true });
const rankingInput: fc.Arbitrary<RankingInput> = fc.record({
  relevance: share,
  salience: share,
  ageMs: fc.integer({ min: -1_000_000, max: 1e12 }),
  superseded: fc.boolean(),
});

test('a more relevant, more salient, more recent or not contradicted memory never scores less', () => {
  fc.assert(
    fc.property(rankingInput, share, fc.nat(), (one, more, younger) => {
      const better = (change: Partial<RankingInput>) => assert.ok(scoreOf({ ...one, ...change }) >= scoreOf(one));
      better({ relevance: Math.max(one.relevance, more) });
      better({ salience: Math.max(one.salience, more) });
      better({ ageMs: one.ageMs - younger });
      better({ superseded: false });
      assert.ok(scoreOf(one) >= 0 && scoreOf(one) <= 1);
    }),
  );
});

test('recency loses half of its weight in a month, and a clock that was set back gives at most the full weight', () => {
  assert.equal(recencyOf(0), 1);
  assert.equal(recencyOf(30 * 86_400_000), 0.5);
  assert.equal(recencyOf(-5), 1);
});

test('the first of all rankings is first, and a better rank in one never lowers it', () => {
  assert.equal(
    fuse([
      ['a', 'b'],
      ['a', 'c'],
    ]).get('a'),
    1,
  );
  const rankings = fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { minLength: 2, maxLength: 20 });
  fc.assert(
    fc.property(rankings, rankings, (one, other) => {
      const before = fuse([one, other]);
      for (const value of before.values()) assert.ok(value > 0 && value <= 1);
      const [first, second, ...rest] = one as [number, number, ...number[]];
      const after = fuse([[second, first, ...rest], other]);
      assert.ok(after.get(second)! >= before.get(second)!);
    }),
  );
});

test('learning again raises salience, but never above 1', () => {
  fc.assert(
    fc.property(share, share, (one, other) => {
      const again = strengthened(one, other);
      assert.ok(again >= Math.max(one, other) && again <= 1);
    }),
  );
});
