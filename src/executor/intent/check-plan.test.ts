import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import type { Intent } from '../../wire/intent.ts';
import type { Rail } from '../../wire/manifest.ts';
import type { RailTool } from '../tools/toolbox.ts';
import { callNodes, checkPlan, fillIdempotencyKeys } from './plan.ts';

type Schema = Readonly<Record<string, unknown>>;

const pay: Schema = {
  type: 'object',
  properties: {
    to: { type: 'string' },
    amount: { type: 'string', pattern: '^\\d+$' },
    key: { type: 'string', maxLength: 80 },
  },
  required: ['to', 'amount', 'key'],
  additionalProperties: false,
};

function toolbox(schemas: Readonly<Record<string, Schema>>, rail?: Rail) {
  const tools = Object.entries(schemas).map(
    ([name, inputSchema]): RailTool => ({
      ...{ name, uri: name, definition: { name, inputSchema }, definitionSha256: '0'.repeat(64) },
      ...{ surface: 'escalate', sideEffectClass: undefined, rail },
    }),
  );
  const find = (name: string) => tools.find((tool) => tool.name === name);
  return { find, absence: (name: string) => `there is no tool ${name}` };
}

const intentOf = (...calls: [tool: string, args: Record<string, unknown>][]): Intent => ({
  verb: 'pay',
  plan: {
    ...{ id: 'all', kind: 'sequence' },
    nodes: calls.map(([tool, args], at) => ({ id: `n${at}`, kind: 'call', tool, args })),
  },
});

const problemsOf = (schema: Schema, args: Record<string, unknown>) =>
  checkPlan(intentOf(['s/t', args]), toolbox({ 's/t': schema })).problems;

test('each call must name a tool, with arguments that it accepts', () => {
  const box = toolbox({ 's/pay': pay }, { idempotency_key: 'key' });
  assert.deepEqual(checkPlan(intentOf(['s/pay', { to: 'bob', amount: '1' }]), box), { problems: [] });
  const { problems } = checkPlan(
    intentOf(['s/pay', { to: 1, amount: '1' }], ['s/play', {}], ['s/pay', { to: 'bob', amount: 'x', memo: 'y' }]),
    box,
  );
  assert.match(problems[0]!, /^plan\.nodes\[0\]\.args does not fit .*args\/to must be string/);
  assert.equal(problems[1], 'plan.nodes[1].tool: there is no tool s/play');
  assert.match(
    problems[2]!,
    /^plan\.nodes\[2\]\.args .*args\/amount must match pattern.*does not accept "memo"; the tool accepts/,
  );
  assert.equal(problems.length, 3);
});

test('only the executor sets the idempotency key', () => {
  const box = toolbox({ 's/pay': pay }, { idempotency_key: 'key' });
  const given = intentOf(['s/pay', { to: 'bob', amount: '1' }], ['s/pay', { to: 'bob', amount: '1' }]);
  const filled = fillIdempotencyKeys(given, 'intent-1', box);
  assert.deepEqual(
    callNodes(filled.plan).map(({ args }) => args.key),
    ['intent-1.n0', 'intent-1.n1'],
  );
  assert.equal(callNodes(given.plan)[0]?.args.key, undefined);
  const meddling = intentOf(['s/pay', { to: 'bob', amount: '1', key: 'mine' }]);
  assert.match(checkPlan(meddling, box).problems.join(), /^plan\.nodes\[0\]\.args must not set "key"/);
  assert.throws(() => fillIdempotencyKeys(meddling, 'intent-1', box), /node n0 must not set "key"/);
  assert.throws(
    () => fillIdempotencyKeys(given, 'i'.repeat(128), box),
    (thrown) => thrown instanceof ReveilleError && /must NOT have more than 80 characters/.test(thrown.message),
  );
});

test('schemas of draft-07, 2019-09 and 2020-12 are applied by their own rules', () => {
  const items = [{ type: 'string' }];
  const pair = { type: 'object', properties: { a: { type: 'array' } } };
  const draft7 = {
    ...pair,
    $schema: 'http://json-schema.org/draft-07/schema#',
    properties: { a: { type: 'array', items } },
  };
  assert.match(problemsOf(draft7, { a: [1] }).join(), /args\/a\/0 must be string/);
  const draft2019 = { ...draft7, $schema: 'https://json-schema.org/draft/2019-09/schema' };
  assert.match(problemsOf(draft2019, { a: [1] }).join(), /args\/a\/0 must be string/);
  const modern = { ...pair, properties: { a: { type: 'array', prefixItems: items } } };
  assert.match(problemsOf(modern, { a: [1] }).join(), /args\/a\/0 must be string/);
  assert.deepEqual(problemsOf(modern, { a: ['x'] }), []);
  assert.match(
    problemsOf(
      { ...pair, properties: { a: { $ref: '#/$defs/x' } }, $defs: { x: { type: 'integer' } } },
      { a: 'x' },
    ).join(),
    /must be integer/,
  );
});

test('an unusable schema refuses the calls of its tool', () => {
  const unusable: Schema[] = [
    { type: 'nonsense' },
    { type: 'object', required: 'a' },
    { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object' },
    { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: { a: { minimum: 'one' } } },
    { type: 'object', properties: { a: { $ref: 'https://schemas.example/a.json' } } },
    { type: 'object', properties: { a: { $ref: 'file:///etc/passwd' } } },
    { type: 'object', properties: { a: { pattern: '(' } } },
    { $async: true, type: 'object', properties: { a: { type: 'integer' } } },
    { type: 'object', properties: { a: { $ref: '#/$defs/b' } }, $defs: { b: { $async: true, type: 'integer' } } },
  ];
  for (const schema of unusable)
    assert.match(problemsOf(schema, { a: 'x' }).join(), /cannot be checked/, JSON.stringify(schema));
});

test('a schema with the $id of another does not replace it', () => {
  const strict = { $id: 'https://servers.example/tool', type: 'object', properties: { a: { type: 'integer' } } };
  const lax = { $id: 'https://servers.example/tool', type: 'object' };
  const box = toolbox({ 's/lax': lax, 's/strict': strict });
  const { problems } = checkPlan(intentOf(['s/lax', { a: 'x' }], ['s/strict', { a: 'x' }]), box);
  assert.match(problems.join(), /^plan\.nodes\[1\]\.args .*must be integer/);
});
