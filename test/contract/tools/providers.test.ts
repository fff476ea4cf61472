/**
 * The keywords of JSON Schema that every provider of models accepts in a tool. A provider refuses the whole request for
 * one unknown keyword of one tool, so the list is what all of them share:
 *
 * - Gemini and Vertex AI (the `Schema` of a function declaration) read one `type` for each place, and `enum` of strings
 *   only. They refuse lists of types, `const`, `$ref`, `exclusiveMinimum`, arrays without `items`, and objects without
 *   properties inside others.
 * - OpenAI needs `properties` in each object, also in the arguments of a tool that has none, and with `strict` also
 *   `additionalProperties: false`. Converters for Gemini omit the arguments of a tool without properties, and
 *   `additionalProperties`, so the empty object is allowed as a whole, and `false` everywhere.
 * - Anthropic with `strict` refuses `minimum`, `maximum`, `minLength`, `maxLength` and others. Therefore bounds are in
 *   descriptions, and the servers check them.
 * - Names of tools and of properties have at most 64 characters, descriptions 1,024.
 *
 * The schema of an answer is read by clients, which check answers with it: members are never required and objects stay
 * open, so that later members are no error. Therefore a member of any type, or one that can be null, need not be listed;
 * an object that can be null may be listed without its type. Descriptions are optional there.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { alarmTools, type Schema, type Tool, timeTools } from './tool-sets.ts';

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const LONGEST_DESCRIPTION = 1024;
const KEYWORDS = ['type', 'description', 'enum', 'items', 'properties', 'required', 'additionalProperties'];
const TYPES: readonly unknown[] = ['string', 'integer', 'number', 'boolean', 'array', 'object'];

type Side = 'arguments' | 'answer';

const isDescription = (text: unknown) =>
  typeof text === 'string' && text.trim() !== '' && text.length <= LONGEST_DESCRIPTION;
const isChoice = (choices: unknown) =>
  Array.isArray(choices) && choices.length > 0 && choices.every((each) => typeof each === 'string' && each !== '');

/** The problems of one place, without those of the places in it. */
function problemsAt(schema: Schema, side: Side, isWhole: boolean): string[] {
  const { description, properties, required, items } = schema;
  const canBeNull = side === 'answer' && !isWhole && properties !== undefined;
  const type = schema.type ?? (canBeNull ? 'object' : undefined);
  const names = Object.keys(properties ?? {});
  const rules: [isBroken: boolean, problem: string][] = [
    ...Object.keys(schema).map((keyword): [boolean, string] => [!KEYWORDS.includes(keyword), keyword]),
    [isWhole ? type !== 'object' : !TYPES.includes(type), 'type'],
    ['enum' in schema && !(type === 'string' && isChoice(schema.enum)), 'enum'],
    [(type === 'array') !== (items !== undefined), 'items'],
    [(type === 'object') !== (isWhole ? properties !== undefined : names.length > 0), 'properties'],
    [names.some((name) => !NAME.test(name)), 'a name'],
    ['additionalProperties' in schema && (side === 'answer' || schema.additionalProperties !== false), 'open'],
    [required !== undefined && (side === 'answer' || required.some((name) => !names.includes(name))), 'required'],
    [description !== undefined && !isDescription(description), 'description'],
  ];
  return rules.filter(([isBroken]) => isBroken).map(([, problem]) => problem);
}

/** The places of a schema with a problem: `/reading/next[] enum`. */
function problemsOf(schema: Schema, side: Side, path = ''): string[] {
  const { properties = {}, items } = schema;
  return [
    ...problemsAt(schema, side, path === '').map((problem) => `${path} ${problem}`),
    ...Object.entries(properties).flatMap(([name, member]) => [
      ...(side === 'arguments' && member.description === undefined ? [`${path}/${name} has no description`] : []),
      ...problemsOf(member, side, `${path}/${name}`),
    ]),
    ...(items === undefined ? [] : problemsOf(items, side, `${path}[]`)),
  ];
}

function assertAccepted(tools: readonly Tool[]): void {
  for (const { name, description, inputSchema, outputSchema } of tools) {
    assert.match(name, NAME);
    assert.ok(isDescription(description), `${name}: ${description.length} characters of description`);
    assert.deepEqual(problemsOf(inputSchema, 'arguments'), [], name);
    assert.deepEqual(problemsOf(outputSchema, 'answer'), [], name);
  }
}

test('every provider accepts the five tools of time', () => assertAccepted(timeTools()));

test('every provider accepts the three tools of alarms', () => assertAccepted(alarmTools()));

describe('a schema that some provider refuses is found:', () => {
  const text = { type: 'string', description: 'A text.' };
  const refused: readonly [what: string, member: object][] = [
    ['a list of types', { ...text, type: ['string', 'null'] }],
    ['the type null', { ...text, type: 'null' }],
    ['no type', { description: 'Any JSON.' }],
    ['null as a choice', { ...text, enum: ['a', null] }],
    ['a number as a choice', { type: 'integer', description: 'One.', enum: [1] }],
    ['no choice', { ...text, enum: [] }],
    ['alternatives', { description: 'Either.', anyOf: [text, { type: 'number' }] }],
    ['a constant', { ...text, const: 'a' }],
    ['a reference', { description: 'Elsewhere.', $ref: '#/$defs/other' }],
    ['a format', { ...text, format: 'uuid' }],
    ['a pattern', { ...text, pattern: '^a' }],
    ['a bound', { type: 'integer', description: 'A number.', minimum: 1 }],
    ['a default', { ...text, default: 'a' }],
    ['an array without items', { type: 'array', description: 'A list.' }],
    ['an array of anything', { type: 'array', description: 'A list.', items: {} }],
    ['an object without properties', { type: 'object', description: 'An object.', properties: {} }],
    ['an object of names', { type: 'object', description: 'A map.', additionalProperties: { type: 'string' } }],
    ['a required member that does not exist', { ...text, type: 'object', properties: { text }, required: ['other'] }],
    ['no description', { type: 'string' }],
    ['a long description', { ...text, description: 'x'.repeat(LONGEST_DESCRIPTION + 1) }],
    ['a long name', { ...text, type: 'object', properties: { ['x'.repeat(65)]: text } }],
  ];
  for (const [what, member] of refused)
    test(what, () => {
      const list = { type: 'array', description: 'A list.', items: { type: 'object', properties: { member } } };
      for (const properties of [{ member }, { list }])
        assert.notDeepEqual(problemsOf({ type: 'object', properties } as Schema, 'arguments'), []);
    });

  test('an answer that refuses or requires members, or has some of any type', () => {
    const whole = { type: 'object', properties: { text } };
    const any = { description: 'Any JSON.' };
    for (const change of [{ additionalProperties: false }, { required: ['text'] }, { properties: { any } }])
      assert.notDeepEqual(problemsOf({ ...whole, ...change }, 'answer'), []);
  });

  test('and one that all accept is not', () => {
    const whole = { type: 'object', properties: { text }, required: ['text'], additionalProperties: false };
    assert.deepEqual(problemsOf(whole, 'arguments'), []);
    assert.deepEqual(problemsOf({ type: 'object', properties: {}, additionalProperties: false }, 'arguments'), []);
    const texts = { type: 'array', items: { type: 'string' } };
    const answer = { type: 'object', properties: { texts, result: { description: 'Null.', properties: { text } } } };
    assert.deepEqual(problemsOf(answer, 'answer'), []);
  });
});
