import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { changesOf, refusalOf, unsafeParts } from './function-schemas.ts';

const PLACE = { type: 'string', enum: ['a', 'b'], description: 'An x.' };
const functionOf = (x: object, more: object = {}, description = 'Does it.') => ({
  ...{ name: 'f', description },
  parameters: { type: 'object', properties: { x }, required: ['x'], additionalProperties: false, ...more },
});
const SAFE = functionOf(PLACE);

describe('a check of a function', () => {
  test('accepts the common subset', () => {
    assert.deepEqual(unsafeParts(SAFE), []);
    for (const provider of ['openai', 'google', 'anthropic'] as const)
      assert.deepEqual(refusalOf(provider, SAFE, true), []);
  });

  for (const [provider, strict, name, refused] of [
    ['openai', false, 'the description', functionOf(PLACE, {}, 'd'.repeat(1025))],
    ['openai', false, 'a list without items', functionOf({ type: 'array' })],
    ['openai', true, 'an optional member', functionOf(PLACE, { required: [] })],
    ['openai', true, 'an open object', functionOf(PLACE, { additionalProperties: undefined })],
    ['openai', true, 'any value', functionOf({})],
    ['google', false, 'two types', functionOf({ type: ['string', 'null'] })],
    ['google', false, 'any value', functionOf({ description: 'x' })],
    ['google', false, 'null in an enum', functionOf({ type: 'string', enum: ['a', null] })],
    ['google', false, 'an enum of numbers', functionOf({ type: 'integer', enum: [1] })],
    ['google', false, 'an object without members', functionOf({ type: 'object' })],
    ['google', false, 'a reference', functionOf({ $ref: '#/$defs/x' })],
    ['anthropic', false, 'a union of arguments', functionOf(PLACE, { anyOf: [] })],
    ['anthropic', false, 'a name of a member', functionOf(PLACE, { properties: { $x: PLACE } })],
  ] as const)
    test(`reports ${name} that ${provider} refuses`, () => {
      assert.notDeepEqual(refusalOf(provider, refused, strict), []);
      if (!strict) assert.notDeepEqual(unsafeParts(refused), []);
    });

  for (const [name, changed] of [
    ['type', functionOf({ ...PLACE, type: 'number' })],
    ['enum', functionOf({ ...PLACE, enum: ['a'] })],
    ['description', functionOf({ ...PLACE, description: 'A y.' })],
    ['bound', functionOf({ ...PLACE, minimum: 1 })],
    ['description of the function', functionOf(PLACE, {}, 'Does that.')],
    ['requirement', functionOf(PLACE, { required: [] })],
    ['member', functionOf(PLACE, { properties: { x: PLACE, y: PLACE } })],
    ['absence of a member', functionOf(PLACE, { properties: {}, required: ['x'] })],
  ] as const)
    test(`reports a changed ${name}`, () => {
      assert.equal(changesOf(SAFE, changed, false).length, 1);
    });

  test('sees through notations of null and of types', () => {
    for (const x of [
      { ...PLACE, type: 'STRING', nullable: true, format: 'enum' },
      { ...PLACE, type: ['string', 'null'], enum: ['a', 'b', null] },
      { description: 'An x.', anyOf: [{ type: 'string', enum: ['a', 'b'] }, { type: 'null' }] },
    ])
      assert.deepEqual(changesOf(SAFE, functionOf(x), true), []);
  });
});
