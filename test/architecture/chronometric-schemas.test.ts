import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { changesThatBreak, type Direction, EQUAL_PATTERNS, type Schema } from '../../schemas/chronometric/additive.ts';
import {
  baseline,
  breaksSince,
  CORRECTIONS,
  changesSince,
  knownToolVersions,
  toolSchemas,
  toolVersions,
} from '../../schemas/chronometric/published.ts';
import { publishedSchemas, toolDefinitions } from '../../src/chronometric/tools/definitions.ts';
import { CHRONOMETRIC_TOOL_VERSIONS } from '../../src/wire/chronometric-vocabulary.ts';

test('the tools of chronometric have only additive changes since v0.1.0, except corrections from the sources', () => {
  assert.deepEqual(breaksSince(baseline(), toolSchemas()), []);
  assert.deepEqual(changesSince(baseline(), toolSchemas()), CORRECTIONS, 'each exception is needed');
});

test('a rewritten pattern accepts the same text', () => {
  const parts = ['', '0', '7', '12', '12H', 'H', '3M', 'M', '5S', 'S', '1.5S', '-1S', ' ', 'P', 'PT'];
  const ends = parts.flatMap((one) => parts.flatMap((two) => parts.map((three) => `${one}${two}${three}`)));
  const texts = ends.flatMap((end) => [`PT${end}`, `P${end}`, `PT${end}\n`, end]);
  for (const [before, after] of EQUAL_PATTERNS) {
    const [was, is] = [new RegExp(String(before)), new RegExp(after)];
    for (const text of texts) assert.equal(is.test(text), was.test(text), text);
    assert.ok(texts.some((text) => is.test(text)));
  }
});

test('each tool has its own version, which changes with its input or output', () => {
  const known = toolVersions(
    {},
    baseline().map((each) => ({ ...each })),
  );
  const now = toolSchemas();
  const digest = (versions: typeof known, tool: keyof typeof CHRONOMETRIC_TOOL_VERSIONS) =>
    versions[tool]![CHRONOMETRIC_TOOL_VERSIONS[tool]];
  for (const { name } of now) {
    const isAsPublished = digest(known, name) === digest(toolVersions({}, now), name);
    assert.equal(CHRONOMETRIC_TOOL_VERSIONS[name] === '0.1.0', isAsPublished, name);
  }
  assert.deepEqual(toolVersions(knownToolVersions(), now), knownToolVersions());
  const changed = now.map((each) =>
    each.name === 'idle_status' ? { ...each, schema: { ...each.schema, minProperties: 2 } } : each,
  );
  assert.throws(() => toolVersions(knownToolVersions(), changed), /idle_status is not what its version 0\.1\.1 was/);
  const reworded = now.map((each) => ({ ...each, schema: { ...each.schema, description: 'in other words' } }));
  assert.deepEqual(toolVersions(knownToolVersions(), reworded), knownToolVersions());
});

test('each schema has its own identity in the line of v0.1.0, a title and a description', () => {
  const schemas = toolSchemas().map(({ schema }) => schema);
  assert.equal(schemas.length, 10);
  assert.equal(new Set(schemas.map(({ $id }) => $id)).size, 10);
  for (const { $id, title, description } of schemas) {
    assert.match(String($id), /^urn:reveille:chronometric:v0\.1\.0:[a-z_]+:(input|output)$/);
    assert.ok(title && description);
  }
});

test('a changed identity is a breaking change', () => {
  const moved = toolSchemas().map((each) => ({ ...each, schema: { ...each.schema, $id: 'urn:elsewhere' } }));
  assert.equal(breaksSince(baseline(), moved).length, 10);
});

test('a removed tool is a breaking change, and an added tool is not', () => {
  const now = toolSchemas();
  assert.deepEqual(breaksSince(now, now.slice(2)), [
    'get_time_context.input: is gone',
    'get_time_context.output: is gone',
  ]);
  assert.deepEqual(breaksSince(now.slice(2), now), []);
});

const nullOrNot = ({ anyOf, ...certain }: Schema): { schema: Schema; isNullable: boolean } => {
  const [schema = certain, ...others] = (anyOf ?? []) as Schema[];
  return { schema, isNullable: others.some(({ type }) => type === 'null') };
};
const propertiesOf = ({ properties = {} }: Schema) => properties as Record<string, Schema>;

/** Compares a place of a listed schema with the published one. */
function assertShown(path: string, listed: Schema, published: Schema): void {
  const { schema, isNullable } = nullOrNot(published);
  assert.equal(listed.type, isNullable ? undefined : schema.type, path);
  assert.deepEqual(listed.enum, schema.enum, path);
  // A member that can be null, and is no object, has no type that a schema with single types could name.
  const members = Object.entries(propertiesOf(schema)).filter(([, member]) => {
    const { schema: value, isNullable: canBeNull } = nullOrNot(member);
    return value.type === 'object' || !canBeNull;
  });
  assert.deepEqual(Object.keys(propertiesOf(listed)), Object.keys(Object.fromEntries(members)), path);
  for (const [name, member] of members) assertShown(`${path}/${name}`, propertiesOf(listed)[name]!, member);
}

test('tools/list has the members, types and choices of the published schemas, and closes and requires no answer', () => {
  for (const { name, inputSchema, outputSchema } of toolDefinitions()) {
    const { input, output } = publishedSchemas(name);
    assertShown(`${name} arguments`, inputSchema, input);
    assertShown(`${name} answer`, outputSchema, output);
    assert.deepEqual([inputSchema.required, inputSchema.additionalProperties], [input.required, false], name);
    assert.doesNotMatch(JSON.stringify(outputSchema), /"(required|additionalProperties)":/, name);
  }
});

const THING: Schema = {
  type: 'object',
  title: 'Thing',
  properties: {
    kind: { type: 'string', enum: ['one', 'two'] },
    text: { type: 'string', minLength: 1, maxLength: 10 },
    shape: { type: 'string', pattern: '^a' },
    maybe: { anyOf: [{ type: 'string', maxLength: 5 }, { type: 'null' }] },
    list: { type: 'array', items: { type: 'integer', minimum: 0 } },
  },
  required: ['kind', 'text'],
};

// biome-ignore lint/suspicious/noExplicitAny: changes reach into a schema of any shape
type Loose = Record<string, any>;
type Change = (thing: Loose) => void;

/** The checker's result for a change, by direction. */
function judged(change: Change): Record<Direction, boolean> {
  const after = structuredClone(THING) as Loose;
  change(after);
  const breaks = (direction: Direction) => changesThatBreak(THING, after, direction).length > 0;
  return { input: breaks('input'), output: breaks('output') };
}

const NEITHER = { input: false, output: false };
const BOTH = { input: true, output: true };
const ARGUMENTS_ONLY = { input: true, output: false };
const ANSWERS_ONLY = { input: false, output: true };

const CHANGES: readonly [string, Record<Direction, boolean>, Change][] = [
  ['nothing', NEITHER, () => {}],
  [
    'other descriptions',
    NEITHER,
    (thing) => Object.assign(thing.properties.text, { description: 'new', title: 'new' }),
  ],
  ['a new optional member', NEITHER, (thing) => Object.assign(thing.properties, { more: { type: 'string' } })],
  ['a new enum value', NEITHER, ({ properties }) => properties.kind.enum.push('three')],
  ['a removed member', BOTH, ({ properties }) => delete properties.list],
  [
    'a renamed member',
    BOTH,
    ({ properties }) => {
      properties.caption = properties.text;
      delete properties.text;
    },
  ],
  ['a member of another type', BOTH, ({ properties }) => Object.assign(properties.text, { type: 'number' })],
  ['a removed enum value', BOTH, ({ properties }) => properties.kind.enum.pop()],
  ['a removed enum', BOTH, ({ properties }) => delete properties.kind.enum],
  ['text that becomes an enum', BOTH, ({ properties }) => Object.assign(properties.text, { enum: ['a'] })],
  ['a member that becomes required', ARGUMENTS_ONLY, ({ required }) => required.push('list')],
  [
    'a new member that is required',
    ARGUMENTS_ONLY,
    (thing) => {
      thing.properties.more = { type: 'string' };
      thing.required.push('more');
    },
  ],
  ['a member that becomes optional', ANSWERS_ONLY, ({ required }) => required.pop()],
  ['a longer text', ANSWERS_ONLY, ({ properties }) => Object.assign(properties.text, { maxLength: 20 })],
  ['a shorter text', ARGUMENTS_ONLY, ({ properties }) => Object.assign(properties.text, { maxLength: 5 })],
  ['a removed bound', ANSWERS_ONLY, ({ properties }) => delete properties.text.minLength],
  ['a new bound', ARGUMENTS_ONLY, ({ properties }) => Object.assign(properties.shape, { minLength: 2 })],
  ['another pattern', BOTH, ({ properties }) => Object.assign(properties.shape, { pattern: '^b' })],
  ['a new pattern', ARGUMENTS_ONLY, ({ properties }) => Object.assign(properties.text, { pattern: '^a' })],
  ['a removed pattern', ANSWERS_ONLY, ({ properties }) => delete properties.shape.pattern],
  ['an added null', BOTH, ({ properties }) => Object.assign(properties.text, { type: ['string', 'null'] })],
  ['a removed null', BOTH, ({ properties }) => properties.maybe.anyOf.pop()],
  ['one more alternative', ANSWERS_ONLY, ({ properties }) => properties.maybe.anyOf.push({ type: 'number' })],
  [
    'a change inside an alternative',
    ARGUMENTS_ONLY,
    ({ properties }) => Object.assign(properties.maybe.anyOf[0], { maxLength: 2 }),
  ],
  ['a change inside a list', ARGUMENTS_ONLY, ({ properties }) => Object.assign(properties.list.items, { minimum: 1 })],
  ['refused unknown members', BOTH, (thing) => Object.assign(thing, { additionalProperties: false })],
  ['an unknown keyword', BOTH, (thing) => Object.assign(thing, { patternProperties: {} })],
];

describe('changes that v0.1.x does not allow are found', () => {
  for (const [what, expected, change] of CHANGES) {
    test(what, () => assert.deepEqual(judged(change), expected));
  }
});
