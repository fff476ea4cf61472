import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasValue, sourceAt } from './pointer.ts';

const TEXT = '{"a/b":{"~":[1.0,12345678901234567890]},"state":"open","no":false,"none":null,"":{"":7}}';

test('a pointer finds the source text of a value', () => {
  const cases: [pointer: string, source: string | undefined][] = [
    ['', TEXT],
    ['/a~1b/~0/0', '1.0'],
    ['/a~1b/~0/1', '12345678901234567890'],
    ['/a~1b/~0/2', undefined],
    ['/a~1b/~0/-', undefined],
    ['/state', '"open"'],
    ['/state/0', undefined],
    ['/', '{"":7}'],
    ['//', '7'],
    ['/constructor', undefined],
  ];
  for (const [pointer, source] of cases) assert.equal(sourceAt(TEXT, pointer), source, pointer);
  for (const text of ['', 'open', '{"a":1', '{"a":1,"a":2}', `${'['.repeat(70)}${']'.repeat(70)}`])
    assert.equal(sourceAt(text, '/a'), undefined, text);
});

test('values are compared by type, and numbers by their digits', () => {
  const cases: [pointer: string, equals: string | number | boolean | null | undefined, expected: boolean][] = [
    ['/a~1b/~0/0', 1, true],
    ['/a~1b/~0/0', '1', false],
    ['/a~1b/~0/1', 12345678901234567000, false],
    ['/state', 'open', true],
    ['/state', 'Open', false],
    ['/state', undefined, true],
    ['/no', false, true],
    ['/no', undefined, false],
    ['/none', null, true],
    ['/none', undefined, false],
    ['/missing', null, false],
    ['', undefined, true],
    ['/a~1b', null, false],
  ];
  for (const [pointer, equals, expected] of cases)
    assert.equal(hasValue(TEXT, { pointer, equals }), expected, `${pointer} ${String(equals)}`);
});
