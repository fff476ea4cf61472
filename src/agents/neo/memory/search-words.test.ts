import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../../test/support/random/characters.ts';
import { queryWords, searchTextOf } from './text-search.ts';

test('a query is reduced to its significant words, once each', () => {
  assert.deepEqual(queryWords('What about the Lisbon flat, the LISBON one?', 9), ['lisbon', 'flat', 'one']);
  assert.deepEqual(
    queryWords('who are you', 9),
    ['who', 'are', 'you'],
    'nothing but question words: they are all there is',
  );
  assert.deepEqual(queryWords('', 9), []);
  assert.deepEqual(queryWords('""" * NEAR( ^ :-', 9), ['near']);
});

test('a run of Chinese is queried by its pairs and indexed by its characters as well', () => {
  assert.deepEqual(queryWords('喜欢咖啡', 9), ['喜欢', '欢咖', '咖啡']);
  assert.equal(searchTextOf('喜欢ab12茶'), '喜 欢 喜欢 ab12 茶');
});

test('an emoji is a word, with any skin tone', () => {
  assert.deepEqual(queryWords('🍕👍🏽', 9), ['emoji1f355', 'emoji1f44d']);
});

test('every query gives at most this many words, made of letters, digits and marks, each of bounded length', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 400 }), fc.integer({ min: 1, max: 8 }), (query, most) => {
      const words = queryWords(query, most);
      assert.ok(words.length <= most);
      for (const word of words) assert.match(word, /^[\p{L}\p{N}\p{M}]{1,200}$/u);
    }),
    { numRuns: 50 },
  );
  assert.ok(queryWords('x'.repeat(1024 * 1024), 5)[0]!.length <= 128);
});
