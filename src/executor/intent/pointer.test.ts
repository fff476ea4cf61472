import assert from 'node:assert/strict';
import { test } from 'node:test';
import { valueAt } from './pointer.ts';

test('the examples of RFC 6901, section 5, give the values of the RFC', () => {
  const document = {
    foo: ['bar', 'baz'],
    ...{ '': 0, 'a/b': 1, 'c%d': 2, 'e^f': 3, 'g|h': 4, 'i\\j': 5, 'k"l': 6, ' ': 7, 'm~n': 8 },
  };
  assert.equal(valueAt(document, ''), document);
  assert.deepEqual(valueAt(document, '/foo'), ['bar', 'baz']);
  const leaves = ['/foo/0', '/', '/a~1b', '/c%d', '/e^f', '/g|h', '/i\\j', '/k"l', '/ ', '/m~0n'];
  assert.deepEqual(
    leaves.map((pointer) => valueAt(document, pointer)),
    ['bar', 0, 1, 2, 3, 4, 5, 6, 7, 8],
  );
});

test('values outside the JSON are not found', () => {
  for (const pointer of [
    '/constructor',
    '/__proto__',
    '/a/length',
    '/a/-',
    '/a/00',
    '/a/2',
    '/s/0',
    '/s/length',
    'a',
    '/n/x',
  ])
    assert.equal(valueAt({ a: [1, 2], s: 'text', n: null }, pointer), undefined, pointer);
  assert.equal(valueAt(undefined, '/a'), undefined);
  assert.equal(valueAt({ '~1': 'right', '/': 'wrong' }, '/~01'), 'right');
});
