import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { JsonSyntaxError, readJsonWithPositions } from './strict-json.ts';

test('JSON is parsed as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(0, 1, 3), (text, indent) => {
      const value: unknown = JSON.parse(text);
      // A field with that name is refused; see below.
      fc.pre(!text.includes('__proto__'));
      assert.deepEqual(readJsonWithPositions(JSON.stringify(value, null, indent)).value, value);
    }),
  );
});

test('text that JSON.parse refuses is refused with a position in the text', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"',
    '1',
    '-',
    '01',
    'true',
    'nul',
    ' ',
    '\n',
    '\\',
    '\u0001',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const text = parts.join('');
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      try {
        readJsonWithPositions(text);
        assert.ok(isJson, `accepted ${JSON.stringify(text)}`);
      } catch (thrown) {
        assert.ok(thrown instanceof JsonSyntaxError, String(thrown));
        assert.ok(
          !isJson || /is duplicated/.test(thrown.message),
          `refused ${JSON.stringify(text)}: ${thrown.message}`,
        );
        const { line, column } = thrown.position;
        assert.ok(line >= 1 && line <= text.split('\n').length && column >= 1);
      }
    }),
    { numRuns: 2000 },
  );
});

test('the position of a value is its first character; a missing value has the position of its parent', () => {
  const { positionOf: placeOf } = readJsonWithPositions('{\n  "servers": [\n    { "alias": "a" },\n    7\n  ]\n}\n');
  assert.deepEqual(placeOf(['servers']), { line: 2, column: 14 });
  assert.deepEqual(placeOf(['servers', 0, 'alias']), { line: 3, column: 16 });
  assert.deepEqual(placeOf(['servers', 0, 'command']), { line: 3, column: 5 });
  assert.deepEqual(placeOf(['servers', 1]), { line: 4, column: 5 });
  assert.deepEqual(placeOf(['nothing', 'here']), { line: 1, column: 1 });
});

for (const [text, message, line, column] of [
  ['{\n  "a": 1,\n}', 'a trailing comma before } is not allowed', 3, 1],
  ['[1,\n2,]', 'a trailing comma before ] is not allowed', 2, 3],
  ['{a: 1}', 'a field name must be a string in double quotes', 1, 2],
  ['{"a": 1, "a": 2}', 'the field "a" is duplicated', 1, 10],
  ['{"a" 1}', 'expected a colon after the field name', 1, 6],
  ['[1, 2', 'expected a comma or ]; the text is incomplete', 1, 6],
  ['{} {}', 'unexpected text after the value', 1, 4],
  ["{'a': 1}", 'a field name must be a string in double quotes', 1, 2],
  ['["\\x"]', 'the string has an invalid escape', 1, 2],
  ['{"__proto__": 1}', 'a field must not be named __proto__', 1, 2],
  ['', 'expected a JSON value', 1, 1],
  ['['.repeat(100_000), 'values may be nested at most 64 deep', 1, 65],
] as const) {
  test(`${JSON.stringify(text.slice(0, 20))} is refused: ${message}`, () => {
    assert.throws(() => readJsonWithPositions(text), { name: 'JsonSyntaxError', message, position: { line, column } });
  });
}

test('numbers that would be rounded are refused with their position, only with the option', () => {
  const text = '{"a": [0.1, {"b":\n 12345678901234567890}]}';
  assert.deepEqual(readJsonWithPositions(text).value, { a: [0.1, { b: Number('12345678901234567890') }] });
  assert.throws(() => readJsonWithPositions(text, true), {
    name: 'JsonSyntaxError',
    message: '12345678901234567890 cannot be represented exactly; write it with fewer digits, or as text',
    position: { line: 2, column: 2 },
    path: ['a', 1, 'b'],
  });
  assert.deepEqual(readJsonWithPositions('[1.50, 1e3, -0]', true).value, [1.5, 1000, -0]);
});

test('an error has the path of the value, also after a nested value', () => {
  assert.throws(() => readJsonWithPositions('{"a": [{"b": 1} 2]}'), { path: ['a'] });
  assert.throws(() => readJsonWithPositions('{"a": {"b": 1, "b": 2}}'), { path: ['a'] });
  assert.throws(() => readJsonWithPositions('{"a": [1, [2], x]}'), { path: ['a', 2] });
});
