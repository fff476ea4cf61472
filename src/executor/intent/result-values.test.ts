import assert from 'node:assert/strict';
import { test } from 'node:test';
import { valuesAt } from './result-values.ts';

/** A value in `depth` objects, and a pointer to each of them. */
function nested(depth: number, inner: string) {
  const source = `${'{"a":'.repeat(depth)}${inner}${'}'.repeat(depth)}`;
  return { source, pointers: Array.from({ length: depth }, (_, index) => '/a'.repeat(index)) };
}

test('a number that a double cannot represent is named, at any depth of the value', () => {
  const { source, pointers } = nested(3, '{"list":[1,{"n":1e400},2e400],"b":7}');
  const found = valuesAt(source, [...pointers, '/a/a/a/list/1/n', '/a/a/a/b']);
  const missing =
    'its value cannot be represented exactly: 1e400 cannot be represented exactly; write it with fewer digits, or as text; the tool must return it as text';
  for (const pointer of [...pointers, '/a/a/a/list/1/n']) assert.deepEqual(found.get(pointer), { missing }, pointer);
  assert.deepEqual(found.get('/a/a/a/b'), { json: '7', forbiddenName: undefined });
});

test('references to nested values take no longer because of an inexact number', () => {
  const list = Array(32 * 1024)
    .fill('1234567')
    .join(',');
  const msOf = (last: string) => {
    const { source, pointers } = nested(200, `{"list":[${list}],"n":${last}}`);
    const began = performance.now();
    const found = valuesAt(source, pointers);
    assert.equal(found.size, 200);
    return performance.now() - began;
  };
  msOf('1');
  const [exact, inexact] = [Math.min(msOf('1'), msOf('1')), Math.min(msOf('1e400'), msOf('1e400'))];
  // Reading each value again takes some 40 times as long.
  assert.ok(inexact < 8 * exact + 200, `${inexact} ms after ${exact} ms`);
});
