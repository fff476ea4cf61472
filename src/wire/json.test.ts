import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ReveilleError } from './errors.ts';
import { encodeJson, parseJsonObject, RawJson, sliceAt } from './json.ts';

const PAYLOADS = [
  '12345678901234567890',
  '1.0',
  '1e400',
  '-0.0',
  '{"b":1,"a":2,"1":3,"0":4}',
  '{ "spaced" : [ 1 , 2 ] }',
  '{"same":1,"same":2}',
  '"\\u0000\\ud83d\\ude00 \\"quoted\\" \\\\ back"',
  '[[[]],{}]',
  'null',
  'true',
  '""',
];

test('a raw member keeps its source text among any other members', () => {
  for (const payload of PAYLOADS) {
    for (const text of [
      `{"payload":${payload}}`,
      `{"a":"}{\\"payload\\":1","payload" : ${payload} ,"z":[1,{"payload":2}]}`,
      `\n{\t"x":[${payload}],\r\n"payload":\n${payload}\n}\n`,
    ]) {
      const { payload: kept } = parseJsonObject(text, ['payload']);
      assert.ok(kept instanceof RawJson);
      assert.equal(kept.text, payload);
    }
  }
});

test('a raw member is written out verbatim', () => {
  for (const payload of PAYLOADS)
    assert.equal(encodeJson({ a: 1, payload: new RawJson(payload), gone: undefined }), `{"a":1,"payload":${payload}}`);
});

test('the last of several equal keys wins, as in JSON.parse, also if a key is written with escapes', () => {
  const { payload } = parseJsonObject('{"payload":1,"pay\\u006coad":2.0}', ['payload']);
  assert.equal((payload as RawJson).text, '2.0');
});

test('encodeJson agrees with JSON.stringify on every JSON value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(encodeJson(value), JSON.stringify(value));
    }),
  );
});

test('sliceAt finds every member of arbitrary objects by its path', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.string(),
      fc.constantFrom(0, 2),
      (object, outer, indent) => {
        const text = JSON.stringify({ [outer]: object }, null, indent);
        for (const key of Object.keys(object)) {
          const slice = sliceAt(text, [outer, key]);
          assert.deepEqual(JSON.parse(slice!), JSON.parse(JSON.stringify(object[key])));
        }
        assert.equal(sliceAt(text, [outer, `${Object.keys(object).join()}absent`]), undefined);
      },
    ),
  );
});

test('text that is not a JSON object is refused with a clear message', () => {
  for (const text of ['', '{', '[]', 'null', '1', '"x"', '{"a":1}x', "{'a':1}", '{"a":01}']) {
    assert.throws(
      () => parseJsonObject(text),
      (error) =>
        error instanceof ReveilleError &&
        error.code === 'invalid_request' &&
        error.message.startsWith('the body must be a JSON object'),
    );
  }
});

test('a member named like a property of every object stays a member', () => {
  const body = parseJsonObject('{"__proto__":{"polluted":true},"payload":{"__proto__":1}}', ['payload']);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.equal((body.payload as RawJson).text, '{"__proto__":1}');
});
