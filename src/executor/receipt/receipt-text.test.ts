import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { RECEIPT_DEPTH_MAX } from './envelope.ts';
import { readValues } from './receipt-text.ts';

/** Line, column and message of the first unreadable value. */
function refusal(text: string): string | undefined {
  for (const read of readValues(text)) {
    if ('unreadable' in read) return `${read.unreadable.line}:${read.unreadable.column} ${read.unreadable.message}`;
  }
  return undefined;
}

test('output of JSON.stringify is read as the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: anyCharacter }), fc.nat(3), (value, indent) => {
      const reads = [...readValues(JSON.stringify(value, null, indent))];
      assert.deepEqual(reads, [{ value: JSON.parse(JSON.stringify(value)) as unknown, line: 1 }]);
    }),
  );
});

test('text that JSON.parse refuses is refused', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    '\\',
    '0',
    '1',
    '-',
    '.',
    'e',
    'true',
    'null',
    ' ',
    '\n',
  );
  fc.assert(
    fc.property(fc.array(pieces, { minLength: 1, maxLength: 12 }), (parts) => {
      const text = parts.join('');
      const reads = [...readValues(text)];
      if (reads.length !== 1 || 'unreadable' in reads[0]!) return;
      assert.deepEqual(reads[0]!.value, JSON.parse(text));
    }),
    { numRuns: 2000 },
  );
});

test('one text may contain several values, each with its line', () => {
  assert.deepEqual(
    [...readValues('{"a":1}\n\n[2] 3\n')],
    [
      { value: { a: 1 }, line: 1 },
      { value: [2], line: 3 },
      { value: 3, line: 3 },
    ],
  );
  assert.deepEqual([...readValues(' \n')], []);
});

test('ambiguous text is refused with its position', () => {
  assert.equal(refusal('{"a":1,\n "\\u0061":2}'), '2:2 the field "a" is duplicated');
  assert.equal(
    refusal('[12345678901234567890]'),
    '1:2 12345678901234567890 cannot be represented exactly; write it with fewer digits, or as text',
  );
  assert.equal(refusal('[1e400]'), '1:2 1e400 cannot be represented exactly; write it with fewer digits, or as text');
  assert.equal(refusal('["\\ud800"]'), '1:2 a string contains a lone surrogate');
  assert.equal(refusal('{"\\udc00":1}'), '1:2 a string contains a lone surrogate');
  const deep = RECEIPT_DEPTH_MAX;
  assert.equal(refusal('['.repeat(deep) + ']'.repeat(deep)), undefined);
  assert.match(refusal('['.repeat(100_000))!, /^1:257 values may be nested at most 256 deep$/);
});

test('truncated text and other mistakes are named', () => {
  const cut = 'the text is incomplete';
  for (const text of ['{', '{"a"', '{"a":', '{"a":1,', '[', '[1', '"a', '"\\', 'tru', '-']) {
    assert.match(refusal(text)!, new RegExp(`${cut}|expected a JSON value`), text);
  }
  assert.equal(refusal('{"a":1,}'), '1:8 a trailing comma before } is not allowed');
  assert.equal(refusal('[1 2]'), '1:4 expected a comma or ]');
  assert.equal(refusal('"a\u0001"'), '1:3 a string contains an unescaped control character');
  assert.equal(refusal('"\\x"'), '1:1 the string has an invalid escape');
  assert.equal(refusal('01'), '1:1 expected a JSON value');
});

test('member names that are special in JavaScript are ordinary members', () => {
  const [read] = readValues('{"__proto__":{"a":1},"constructor":2}');
  assert.ok(read && 'value' in read);
  assert.deepEqual(Object.keys(read.value as object), ['__proto__', 'constructor']);
});
