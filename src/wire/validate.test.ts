import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { ReveilleError } from './errors.ts';
import { RawJson } from './json.ts';
import { parseOrThrow, showValue } from './validate.ts';

function problemOf(schema: z.ZodType, value: unknown): string {
  try {
    parseOrThrow(z.strictObject({ field: schema }), value === undefined ? {} : { field: value });
  } catch (error) {
    assert.ok(error instanceof ReveilleError, String(error));
    return error.message;
  }
  return 'accepted';
}

test('every kind of schema error has a standard message', () => {
  const inner = z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('a') }),
    z.strictObject({ kind: z.literal('b') }),
  ]);
  const cases: [z.ZodType, unknown, string][] = [
    [z.string(), undefined, 'is required'],
    [z.enum(['a', 'b']), undefined, 'is required'],
    [z.union([z.string(), z.number()]), undefined, 'is required'],
    [z.string(), 1, 'must be a string (got 1)'],
    [z.int(), 1.5, 'must be a whole number (got 1.5)'],
    [z.number(), Number.POSITIVE_INFINITY, 'must be a number (got Infinity)'],
    [z.null(), 1, 'must be null (got 1)'],
    [z.record(z.string(), z.string()), 1, 'must be an object (got 1)'],
    [z.instanceof(RawJson), 1, 'must be JSON text (got 1)'],
    [z.string().max(1), 'ab', 'must have at most 1 character (got "ab")'],
    [z.string().length(3), 'ab', 'must have exactly 3 characters (got "ab")'],
    [z.string().length(1), 'ab', 'must have exactly 1 character (got "ab")'],
    [z.array(z.string()).min(2), ['x'], 'must have at least 2 entries (got ["x"])'],
    [z.number().gt(1), 1, 'must be more than 1 (got 1)'],
    [z.int(), 2 ** 53, 'must be at most 9007199254740991 (got 9007199254740992)'],
    [z.number().multipleOf(5), 7, 'must be a multiple of 5 (got 7)'],
    [z.literal('x'), 'y', 'must be "x" (got "y")'],
    [z.enum(['a', 'b']), 'c', 'must be one of a, b (got "c")'],
    [z.string().regex(/^a+$/), 'b', 'must match /^a+$/ (got "b")'],
    [z.string().startsWith('a'), 'b', 'must begin with "a" (got "b")'],
    [z.string().endsWith('a'), 'b', 'must end with "a" (got "b")'],
    [z.string().includes('a'), 'b', 'must contain "a" (got "b")'],
    [z.url(), 'b', 'must be a URL (got "b")'],
    [z.uuid(), 'b', 'must be a UUID (got "b")'],
    [z.iso.datetime(), 'b', 'must be an RFC 3339 instant (got "b")'],
    [z.ipv4(), 'b', 'must be a well-formed ipv4 (got "b")'],
    [z.union([z.string(), z.number()]), true, 'must be a string or must be a number (got true)'],
    [
      z.union([z.strictObject({ a: z.string() }), z.number()]),
      { a: 1 },
      'a must be a string or must be a number (got {"a":1})',
    ],
    [z.union([z.string(), z.null()], { error: 'must be text' }), 1, 'must be text (got 1)'],
    [z.record(z.string().regex(/^a/, 'must begin with a'), z.string()), { b: 'x' }, '.b must begin with a'],
    [z.set(z.string()), new Set([1]), 'must be a string'],
    [z.map(z.object(), z.string()), new Map([[{}, 1]]), 'must be a string'],
    [z.string().refine(() => false), 'x', 'is not allowed (got "x")'],
    [z.never({ error: 'cannot be changed' }).optional(), 'x', 'cannot be changed'],
    [inner, {}, '.kind is required'],
    [inner, { kind: 'c' }, '.kind must be one of a, b (got "c")'],
  ];
  for (const [schema, value, expected] of cases) {
    const wanted = expected.startsWith('.') ? `field${expected}` : `field ${expected}`;
    const message = problemOf(schema, value);
    assert.ok(message.startsWith(wanted), `${message} should be ${wanted}`);
    assert.doesNotMatch(message, /Invalid|Too (big|small)|expected|received|Unrecognized/);
  }
});

test('a value is shown as parsed, and a long one is cut at its end', () => {
  assert.equal(showValue(undefined), 'nothing');
  assert.equal(showValue(Number.POSITIVE_INFINITY), 'Infinity');
  assert.equal(showValue(Number.NaN), 'NaN');
  assert.equal(showValue(1.5), '1.5');
  assert.equal(showValue('a"b'), '"a\\"b"');
  assert.equal(showValue(new RawJson('1.0')), '1.0');
  assert.equal(showValue('x'.repeat(100)), `"${'x'.repeat(59)}… (102 characters)`);
});
