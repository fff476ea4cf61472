import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillIn, placeholdersOf } from './companion.ts';

const args = { from: 'alice', deep: { list: [{ n: 7 }] }, trick: '$key' };

test('placeholders are replaced by their values, of any type and at any depth', () => {
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

test('only a text that is a placeholder as a whole is replaced; arguments cannot contain placeholders', () => {
  const template = { a: 'pay $args/from', b: '$argsfrom', c: '$keys', d: '$args/trick' };
  assert.deepEqual(fillIn(template, { args, key: 'k' }), {
    args: { a: 'pay $args/from', b: '$argsfrom', c: '$keys', d: '$key' },
  });
});

test('a missing value is named instead of omitted', () => {
  assert.deepEqual(fillIn({ id: '$result/id' }, { args }), { missing: 'there is no value at $result/id' });
  assert.deepEqual(fillIn({ id: '$key' }, { args }), { missing: 'there is no value at $key' });
  assert.deepEqual(fillIn({ id: '$args/toString' }, { args }), { missing: 'there is no value at $args/toString' });
});

test('the placeholders of a template can be listed beforehand', () => {
  assert.deepEqual(placeholdersOf({ a: ['$args/x', 1], b: { c: '$key' }, d: 'text' }), [
    { source: 'args', pointer: '/x' },
    { source: 'key', pointer: '' },
  ]);
});
