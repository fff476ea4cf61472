import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { normalizeText } from './text-search.ts';

const same = (one: string, other: string) => normalizeText(one) === normalizeText(other);

test('letter case, punctuation at the edges, articles and spacing do not make another memory', () => {
  for (const [one, other] of [
    ['The user prefers dark mode.', 'user prefers  DARK mode'],
    ['“The user likes tea”', 'The user likes tea!'],
    ['He doesn’t eat meat', 'he does not eat meat'],
    ['Ｔｈｅ user likes ｔｅａ', 'the user likes tea'],
  ] as const)
    assert.ok(same(one, other), `${one} / ${other}`);
});

test('numbers, negations, word order, identifiers and their letter case do', () => {
  for (const [one, other] of [
    ['The meeting is at 9', 'The meeting is at 10'],
    ['The balance is -5', 'The balance is 5'],
    ['It costs .5', 'It costs 5'],
    ['The user eats meat', 'The user does not eat meat'],
    ['Alice manages Bob', 'Bob manages Alice'],
    ['Flight from Rome', 'Flight to Rome'],
    ['The wallet is 7xKXtg2CW87d', 'The wallet is 7xKXtG2CW87d'],
    ['The user writes C#', 'The user writes C'],
    ['user likes 🍕', 'user likes 🍣'],
  ] as const)
    assert.ok(!same(one, other), `${one} / ${other}`);
});

test('every text that is not blank has a normalized form', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }).filter((text) => text.trim() !== ''),
      (text) => {
        const normalized = normalizeText(text);
        assert.notEqual(normalized, '');
        assert.equal(normalizeText(`  ${text}\n`), normalized);
      },
    ),
  );
});

test('texts with different numbers never have the same form', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer(), (one, other) => {
      fc.pre(one !== other);
      assert.ok(!same(`The user owes ${one} euros.`, `the user owes ${other} Euros`));
    }),
  );
});
