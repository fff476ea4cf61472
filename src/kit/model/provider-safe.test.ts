import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';
import fc from 'fast-check';
import { placesOf, unsafeParts } from '../../../test/support/function-schemas.ts';
import { rounds } from '../../../test/support/random/random.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { exactJson } from '../../wire/json.ts';
import { providerSafe } from './provider-safe.ts';

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

function assertSafe(inputSchema: object): void {
  const { schema } = providerSafe(inputSchema);
  assert.deepEqual(unsafeParts({ name: 'f', parameters: schema }), [], JSON.stringify(inputSchema));
  assert.ok(JSON.stringify(schema).length <= 64 * 1024);
}

/** The place `x` of a schema, and how an argument there is restored; absent if it is omitted. */
function placed(x: object | boolean, more: object = {}) {
  const { schema, restore } = providerSafe(object({ x }, more));
  const place = (schema.properties as Record<string, Record<string, unknown>>).x!;
  return { place, required: schema.required, restored: (value: unknown) => restore({ x: value }) };
}

describe('a place of a foreign schema', () => {
  for (const [name, given, expected] of [
    ['a plain type stays', { type: 'integer', minimum: 1, maximum: 5 }, { type: 'integer', minimum: 1, maximum: 5 }],
    ['a nullable type is the type', { type: ['string', 'null'] }, { type: 'string' }],
    ['null beside a form is dropped', { anyOf: [{ type: 'number' }, { type: 'null' }] }, { type: 'number' }],
    ['null is no value of an enum', { enum: ['a', null] }, { type: 'string', enum: ['a'] }],
    ['a constant is an enum', { const: 'a' }, { type: 'string', enum: ['a'] }],
    [
      'a union of constants is an enum',
      { oneOf: [{ const: 'a' }, { const: 'b' }] },
      { type: 'string', enum: ['a', 'b'] },
    ],
    ['numbers of an enum are texts', { type: 'integer', enum: [1, 2] }, { type: 'string', enum: ['1', '2'] }],
    [
      'a union of scalars is a text',
      { type: ['string', 'number', 'boolean'], description: 'Why.' },
      { type: 'string', description: 'Why. As text: a string, a number or true or false.' },
    ],
    [
      'a format is described',
      { type: 'string', format: 'date-time', description: 'When.' },
      { type: 'string', description: 'When. (format: "date-time")' },
    ],
    ['any value is JSON text', { description: 'It.' }, { type: 'string', description: 'It. JSON text.' }],
    [
      'a map is JSON text',
      { type: 'object', additionalProperties: { type: 'string' } },
      {
        type: 'string',
        description:
          'JSON text of a value that fits this JSON Schema: {"type":"object","additionalProperties":{"type":"string"}}',
      },
    ],
    [
      'a list without items has JSON texts',
      { type: 'array' },
      { type: 'array', items: { type: 'string', description: 'JSON text.' } },
    ],
    [
      'allOf is merged',
      { allOf: [{ type: 'object', properties: { a: { type: 'string' } } }, { required: ['a'] }], description: 'D.' },
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], description: 'D.' },
    ],
  ] as const) {
    test(`${name}`, () => {
      assert.deepEqual(placed(given).place, expected);
    });
  }

  test('a union of objects is JSON text, with the schemas of its references', () => {
    const forms = { anyOf: [{ $ref: '#/$defs/A' }, object({ b: { type: 'boolean' } })] };
    const { place } = placed(forms, { $defs: { A: object({ a: { type: 'string', description: 'An a.' } }) } });
    assert.equal(place.type, 'string');
    assert.match(String(place.description), /"a":\{"type":"string","description":"An a\."\}/);
    assert.match(String(place.description), /"b":\{"type":"boolean"\}/);
  });

  test('a reference is replaced, and a cycle ends with JSON text', () => {
    const tree = object({ value: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/T' } } });
    const { place, restored } = placed({ $ref: '#/$defs/T' }, { $defs: { T: tree } });
    const { value, children } = place.properties as Record<string, Record<string, unknown>>;
    assert.deepEqual(value, { type: 'string' });
    assert.equal((children!.items as Record<string, unknown>).type, 'string');
    const sent = { value: 'a', children: ['{"value":"b","children":[]}'] };
    assert.deepEqual(restored(sent), { x: { value: 'a', children: [{ value: 'b', children: [] }] } });
  });

  test('unusual names of members get safe ones, and their own ones back', () => {
    // An object has its numeric names first.
    const names = ['9', '$filter', '_filter', 'a b', 'a-b', '__proto__', 'é', '', 'x'.repeat(80)];
    const { schema, restore } = providerSafe(
      object(Object.fromEntries(names.map((name) => [name, { type: 'string' }]))),
    );
    const safe = Object.keys(schema.properties as object);
    assert.equal(new Set(safe).size, names.length);
    assert.deepEqual(unsafeParts({ name: 'f', parameters: schema }), []);
    const restored = restore(Object.fromEntries(safe.map((name, index) => [name, `${index}`])));
    assert.deepEqual(Object.entries(restored).toSorted(), names.map((name, index) => [name, `${index}`]).toSorted());
  });
});

describe('arguments are restored', () => {
  for (const [name, given, sent, expected] of [
    ['JSON text of a map', { type: 'object', additionalProperties: true }, '{"a":[1,"b"]}', { a: [1, 'b'] }],
    ['a value instead of its JSON text', { type: 'object' }, { a: 1 }, { a: 1 }],
    ['a text that is no JSON, where any value is allowed', {}, 'hello', 'hello'],
    ['JSON text where any value is allowed', {}, '[true,null]', [true, null]],
    ['a string of a string or a number', { type: ['string', 'number'] }, '5', '5'],
    ['a number beside an enum', { anyOf: [{ enum: ['auto'] }, { type: 'number' }] }, '5', 5],
    ['a word of that enum', { anyOf: [{ enum: ['auto'] }, { type: 'number' }] }, 'auto', 'auto'],
    ['a value of an enum of numbers', { enum: [1, 2] }, '2', 2],
    ['a list or a string, as a string', { type: ['array', 'string'] }, 'a b', 'a b'],
    ['a list or a string, as a list', { type: ['array', 'string'] }, '["a"]', ['a']],
    ['a number where a list or a string is expected, as a string', { type: ['array', 'string'] }, '5', '5'],
    ['null that is allowed', { type: ['string', 'null'] }, null, null],
    ['an empty text that is allowed', { type: 'string' }, '', ''],
  ] as const) {
    test(name, () => {
      assert.deepEqual(placed(given).restored(sent), { x: expected });
    });
  }

  for (const [given, sent] of [
    [{ type: 'string' }, null],
    [{ type: 'integer' }, null],
    [{ type: 'integer' }, ''],
    [{ type: 'string', enum: ['a'] }, ''],
    [{ type: 'string', minLength: 1 }, ''],
    [{ type: 'string', format: 'date-time' }, ''],
    [object({ a: { type: 'string' } }), ''],
    [{ type: 'object' }, null],
    [{ type: 'object' }, ''],
  ] as const) {
    test(`${JSON.stringify(sent)} is omitted at an optional place of ${JSON.stringify(given)}, and kept at a required one`, () => {
      assert.deepEqual(placed(given).restored(sent), {});
      const required = placed(given, { required: ['x'] });
      if (sent === null || given.type !== 'object' || 'properties' in given)
        assert.deepEqual(required.restored(sent), { x: sent });
    });
  }

  test('a required place that can be null may be omitted', () => {
    const { required, restored } = placed({ type: ['string', 'null'] }, { required: ['x'] });
    assert.equal(required, undefined);
    assert.deepEqual(restored('a'), { x: 'a' });
    assert.deepEqual(providerSafe(object({ x: { type: ['string', 'null'] } }, { required: ['x'] })).restore({}), {
      x: null,
    });
  });

  test('numbers keep their digits', () => {
    const { restore } = providerSafe(
      object({ x: { type: 'object' }, y: { type: 'array', items: {} }, z: { type: 'number' } }),
    );
    const sent = '{"x":"{\\"id\\":12345678901234567890,\\"is\\":1.50}","y":["0.10000000000000000001"],"z":1.000}';
    const restored = restore(exactJson(sent) as Record<string, unknown>);
    assert.equal(
      JSON.stringify(restored),
      '{"x":{"id":12345678901234567890,"is":1.50},"y":[0.10000000000000000001],"z":1.000}',
    );
  });

  test('a text that is not JSON is refused with its place', () => {
    const { restore } = providerSafe(object({ a: { type: 'array', items: object({ b: { type: 'object' } }) } }));
    for (const [sent, message] of [
      ['{"b":', /^a\[1\]\.b must be JSON text \(/],
      ['['.repeat(200), /^a\[1\]\.b must not nest/],
    ] as const)
      assert.throws(
        () => restore({ a: [{}, { b: sent }] }),
        (thrown) => thrown instanceof ReveilleError && message.test(thrown.message),
      );
  });

  test('arguments that cannot be described are one JSON text', () => {
    for (const schema of [
      { type: 'object', additionalProperties: { type: 'string' } },
      { anyOf: [object({ a: { type: 'string' } }), object({ b: { type: 'string' } })] },
      object(Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`p${index}`, { type: 'string' }]))),
    ]) {
      const safe = providerSafe(schema);
      assert.deepEqual(Object.keys(safe.schema.properties as object), ['arguments']);
      assert.deepEqual(safe.restore({ arguments: '{"a":"b"}' }), { a: 'b' });
      assert.deepEqual(safe.restore({ a: 'b' }), { a: 'b' });
      assert.throws(() => safe.restore({ arguments: '[]' }), /arguments must be the JSON text of an object/);
    }
    assert.deepEqual(providerSafe({}).schema, { type: 'object', properties: {} });
    assert.deepEqual(providerSafe({ type: 'object', properties: {} }).schema, { type: 'object', properties: {} });
  });
});

/** Schemas as servers should not send them. */
const ZOO: Readonly<Record<string, object>> = {
  'a reference to itself': object({ x: { $ref: '#/properties/x' } }),
  'references in a circle': object(
    { x: { $ref: '#/$defs/a' } },
    { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
  ),
  'references to nothing': object({
    x: { $ref: '#/$defs/none' },
    y: { $ref: 'https://example.com/s' },
    z: { $ref: '#/%zz/~2' },
  }),
  'a root that refers to itself': { $ref: '#' },
  'a root of references': { $ref: '#/$defs/A', $defs: { A: object({ a: {} }) } },
  'keywords of other kinds': { type: 5, properties: [], required: 'x', additionalProperties: 'no', items: 7 },
  'places that are no schemas': object({ a: null, b: 'string', c: 5, d: [], e: true, f: false }),
  'wrong values of keywords': object({
    a: { type: 'file' },
    b: { type: [] },
    c: { type: 'string', enum: {} },
    d: { type: 'string', enum: [] },
    e: { anyOf: [] },
    f: { type: 'integer', minimum: '1', maximum: null },
    g: { type: 'array', items: [{ type: 'string' }], minItems: -1, maxItems: 1.5 },
    h: { type: 'string', description: { text: 'x' } },
    i: { allOf: [{ type: 'string' }, { type: 'number' }] },
    j: { enum: ['', null] },
    k: { enum: ['\ud800', '\ud801', 1, '1', { a: 1 }, [1]] },
    l: { not: {} },
    m: { type: 'null' },
  }),
  'required members that are not listed': object(
    { a: {} },
    { required: ['b', 'a', 'a', 'constructor', '__proto__', 5] },
  ),
  'a long description': object({ a: { type: 'string', description: '𝒳'.repeat(5000) } }),
  'a half of a character': object({
    a: { type: 'string', description: 'a\ud800b' },
    b: { type: 'string', default: '\udfff' },
  }),
  'a large enum': object({
    a: { enum: Array.from({ length: 5000 }, (_, index) => `v${index}`) },
    b: { enum: ['x'.repeat(9000)] },
  }),
  'deep objects': Array.from({ length: 60 }).reduce<object>((inner) => object({ x: inner }), object({})),
  'deep lists': object({ a: Array.from({ length: 60 }).reduce<object>((items) => ({ type: 'array', items }), {}) }),
  'exponential references': object(
    { x: { $ref: '#/$defs/0' } },
    {
      $defs: Object.fromEntries(
        Array.from({ length: 40 }, (_, index) => [
          index,
          { anyOf: [{ $ref: `#/$defs/${index + 1}` }, { allOf: [{ $ref: `#/$defs/${index + 1}` }] }] },
        ]),
      ),
    },
  ),
  'wide objects below each other': object(
    { x: { $ref: '#/$defs/0' } },
    {
      $defs: Object.fromEntries(
        Array.from({ length: 9 }, (_, level) => [
          level,
          object(
            Object.fromEntries(
              Array.from({ length: 9 }, (_, index) => [`p${index}`, { $ref: `#/$defs/${level + 1}` }]),
            ),
          ),
        ]),
      ),
    },
  ),
  'two hundred long descriptions': object(
    Object.fromEntries(
      Array.from({ length: 200 }, (_, index) => [
        `p${index}`,
        { enum: ['a'.repeat(400)], description: 'b'.repeat(1000) },
      ]),
    ),
  ),
};

for (const [name, schema] of Object.entries(ZOO)) test(`${name}: the result is safe`, () => assertSafe(schema));

const anyName = fc.constantFrom(
  'a',
  'b',
  'type',
  'properties',
  '$ref',
  '$filter',
  'a b',
  '__proto__',
  'description',
  '',
);
const scalar = fc.constantFrom<unknown>(null, true, false, 0, 1, -1.5, '', 'a', 'b', '1');
/** Schemas with all keywords that matter, in any combination, some of them wrong. */
const { anySchema } = fc.letrec<{ anySchema: unknown }>((tie) => {
  const self = tie('anySchema');
  const types = fc.constantFrom('string', 'number', 'integer', 'boolean', 'object', 'array', 'null', 'file');
  return {
    anySchema: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.constantFrom<unknown>(
        {},
        true,
        false,
        { type: 'string' },
        { type: 'null' },
        { $ref: '#' },
        { $ref: '#/$defs/a' },
      ),
      fc.record(
        {
          type: fc.oneof(types, fc.uniqueArray(types, { maxLength: 3 })),
          description: fc.oneof(fc.string(), fc.constant('x'.repeat(2000))),
          properties: fc.dictionary(anyName, self, { maxKeys: 3 }),
          required: fc.array(anyName, { maxLength: 3 }),
          additionalProperties: self,
          items: fc.oneof(self, fc.array(self, { maxLength: 2 })),
          enum: fc.array(scalar, { maxLength: 4 }),
          const: scalar,
          anyOf: fc.array(self, { maxLength: 3 }),
          oneOf: fc.array(self, { maxLength: 3 }),
          allOf: fc.array(self, { maxLength: 2 }),
          not: self,
          format: fc.constantFrom('date-time', 'uri'),
          default: scalar,
          minimum: fc.oneof(fc.double(), scalar),
          minItems: fc.oneof(fc.integer(), scalar),
          $defs: fc.record({ a: self }),
          $ref: fc.constantFrom('#/$defs/a', '#', '#/properties/a', 'x', 5),
        },
        { requiredKeys: [] },
      ),
    ),
  };
});

test('any schema becomes safe', () => {
  fc.assert(
    fc.property(
      anySchema.filter((schema) => typeof schema === 'object'),
      (schema) => assertSafe(schema as object),
    ),
    { numRuns: rounds(500, 50_000) },
  );
});

/** A schema, a value that fits it, and that value as a model sends it at the reduced place. */
type Case = { schema: object; value: unknown; sent: (safe: Record<string, unknown>) => unknown };

const literally = (schema: object, values: fc.Arbitrary<unknown>) =>
  values.map((value): Case => ({ schema, value, sent: () => value }));
const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
const withText = ({ schema, value }: Case): Case => ({ schema, value, sent: () => JSON.stringify(value) });

const scalarCase: fc.Arbitrary<Case> = fc.oneof(
  literally({ type: 'string' }, fc.string()),
  literally({ type: 'string', minLength: 1 }, fc.string({ minLength: 1 })),
  literally({ type: 'integer', minimum: -5 }, fc.integer({ min: -5 })),
  literally(
    { type: 'number' },
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
  ),
  literally({ type: 'boolean' }, fc.boolean()),
  literally({ type: ['boolean', 'null'] }, fc.boolean()),
  fc
    .uniqueArray(fc.constantFrom<unknown>('a', 'b', 1, 2.5, true, false), { minLength: 1 })
    .chain((values) =>
      fc.constantFrom(...values).map((value): Case => ({ schema: { enum: values }, value, sent: () => asText(value) })),
    ),
  fc.oneof(fc.integer(), fc.boolean(), fc.constant('auto')).map(
    (value): Case => ({
      schema: { anyOf: [{ type: 'integer' }, { const: 'auto' }, { type: 'boolean' }] },
      value,
      sent: () => asText(value),
    }),
  ),
);

const { anyCase } = fc.letrec<{ anyCase: Case }>((tie) => {
  const self = tie('anyCase');
  const named = fc.uniqueArray(fc.tuple(anyName, self, fc.boolean(), fc.boolean()), {
    minLength: 1,
    maxLength: 4,
    selector: ([name]) => name,
  });
  const record = named.map((members): Case => {
    const present = members.filter(([, , required, given]) => required || given);
    return {
      schema: object(Object.fromEntries(members.map(([name, { schema }]) => [name, schema])), {
        required: members.flatMap(([name, , required]) => (required ? [name] : [])),
        additionalProperties: false,
      }),
      value: Object.fromEntries(present.map(([name, { value }]) => [name, value])),
      sent({ properties }) {
        const places = Object.entries(properties as Record<string, Record<string, unknown>>);
        const places_ = members.map(([, member], index) => [member, places[index]!] as const);
        return Object.fromEntries(
          places_.flatMap(([member, [safe, place]], index) => {
            const [, , required, given] = members[index]!;
            return required || given ? [[safe, member.sent(place)]] : [];
          }),
        );
      },
    };
  });
  const list = fc.tuple(self, fc.nat(3)).map(
    ([{ schema, value, sent }, length]): Case => ({
      schema: { type: 'array', items: schema },
      value: Array.from({ length }, () => value),
      sent: ({ items }) => Array.from({ length }, () => sent(items as Record<string, unknown>)),
    }),
  );
  return {
    anyCase: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      scalarCase,
      record,
      list,
      self.map((inner): Case => ({ ...inner, schema: { anyOf: [inner.schema, { type: 'null' }] } })),
      self.map((inner): Case => ({ ...inner, schema: { allOf: [inner.schema] } })),
      fc.jsonValue({ maxDepth: 2 }).map((value) => withText({ schema: {}, value, sent: () => undefined })),
      fc.dictionary(fc.string(), fc.string()).map((value) =>
        withText({
          schema: { type: 'object', additionalProperties: { type: 'string' } },
          value,
          sent: () => undefined,
        }),
      ),
      fc.constantFrom({ a: 'x' }, { b: 1 }).map((value) =>
        withText({
          schema: {
            oneOf: [
              object({ a: { type: 'string' } }, { required: ['a'] }),
              object({ b: { type: 'number' } }, { required: ['b'] }),
            ],
          },
          value,
          sent: () => undefined,
        }),
      ),
    ),
  };
});

const accepts = (schema: object, value: unknown) => new AjvJsonSchemaValidator().getValidator(schema as never)(value);

test('arguments of the reduced schema are restored to those of the original', () => {
  fc.assert(
    fc.property(anyCase, ({ schema, value, sent }) => {
      const original = object({ x: schema }, { required: ['x'] });
      fc.pre(accepts(original, { x: value }).valid);
      const { schema: safe, restore } = providerSafe(original);
      assertSafe(original);
      // Deeper places are JSON text as a whole.
      const place = (safe.properties as Record<string, Record<string, unknown>>).x!;
      fc.pre([...placesOf(place)].every(({ level }) => level < 4));
      const args = { x: sent(place) };
      assert.ok(accepts(safe, args).valid, `${JSON.stringify(args)} ${JSON.stringify(safe)}`);
      const restored = restore(args);
      assert.equal(JSON.stringify(restored), JSON.stringify({ x: value }), JSON.stringify(safe));
      assert.ok(accepts(original, restored).valid);
    }),
    { numRuns: rounds(200, 5000) },
  );
});

test('a schema that nests too deep for the stack is a text', () => {
  let items: object = { type: 'string' };
  for (let level = 0; level < 20_000; level++) items = { type: 'array', items };
  const { schema, restore } = providerSafe(object({ x: items }));
  assert.deepEqual(Object.keys(schema.properties as object), ['arguments']);
  assert.deepEqual(restore({ arguments: '{"x":[]}' }), { x: [] });
});

test('a schema that merges many members many times is not followed to its end', () => {
  const properties = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`p${at}`, { type: 'string' }]));
  const x = { allOf: Array.from({ length: 700 }, () => ({ $ref: '#/$defs/large' })) };
  const { schema } = providerSafe(object({ x }, { $defs: { large: { properties } } }));
  assert.equal((schema.properties as { x: { type: string } }).x.type, 'string');
});
