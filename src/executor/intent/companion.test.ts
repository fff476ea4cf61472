import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillIn, placeholdersOf } from './companion.ts';

const args = { from: 'alice', deep: { list: [{ n: 7 }] }, trick: '$key' };

test('placeholders are replaced by what they stand for, whatever its kind and however deep they are', () => {
  const template = {
    who: ['$args/from', '$args/deep/list/0'],
    id: '$result/id',
    key: '$key',
    all: '$args',
    n: 1,
    no: null,
  };
  assert.deepEqual(fillIn(template, { args, result: { id: 9 }, key: 'k' }), {
    args: { who: ['alice', { n: 7 }], id: 9, key: 'k', all: args, n: 1, no: null },
  });
});

test('only a text that is a placeholder from end to end is one, and arguments bring none', () => {
  const template = { a: 'pay $args/from', b: '$argsfrom', c: '$keys', d: '$args/trick' };
  assert.deepEqual(fillIn(template, { args, key: 'k' }), {
    args: { a: 'pay $args/from', b: '$argsfrom', c: '$keys', d: '$key' },
  });
});

test('what is not there is named instead of being left out', () => {
  assert.deepEqual(fillIn({ id: '$result/id' }, { args }), { missing: 'there is nothing at $result/id' });
  assert.deepEqual(fillIn({ id: '$key' }, { args }), { missing: 'there is nothing at $key' });
  assert.deepEqual(fillIn({ id: '$args/toString' }, { args }), { missing: 'there is nothing at $args/toString' });
});

test('the placeholders of a template can be told beforehand', () => {
  assert.deepEqual(placeholdersOf({ a: ['$args/x', 1], b: { c: '$key' }, d: 'text' }), [
    { source: 'args', pointer: '/x' },
    { source: 'key', pointer: '' },
  ]);
});
