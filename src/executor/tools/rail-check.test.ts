import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { ToolDefinition } from '../../mcp-host/tool-definition.ts';
import { agentManifestSchema, type Rail } from '../../wire/manifest.ts';
import { type Neighbour, railMismatches, railProblems } from './rail-check.ts';

const status = (more: object = {}): Rail['status'] => ({
  ...{ tool: 'status', args: { key: '$key' }, field: '/status', done: ['done'], not_done: ['open'] },
  ...more,
});
const read = { sideEffectClass: 'read', surface: 'natural' } as const;
const neighbours = new Map<string, Neighbour>([
  ['look', read],
  ['status', { sideEffectClass: 'write', surface: 'natural' }],
  ['write', { sideEffectClass: 'write', surface: 'natural' }],
  ['send', { sideEffectClass: 'read', surface: 'escalate' }],
]);
const problems = (rail: Rail, surface: Neighbour['surface'] = 'escalate') =>
  railProblems(rail, neighbours, { surface }).join('\n');

test('a consistent rail has no problems', () => {
  const rail: Rail = {
    ...{ idempotency_key: 'key', amount: '/amount', currency: '/currency' },
    dry_run: { tool: 'look', args: { a: '$args/a' } },
    read_back: { tool: 'look', args: { a: '$result/a' } },
    ...(status() && { status: status() }),
  };
  assert.equal(problems(rail), '');
});

test('companions must exist, need no approval, and only read', () => {
  assert.match(
    problems({ dry_run: { tool: 'nowhere', args: {} } }),
    /names "nowhere", which the manifest does not declare/,
  );
  assert.match(problems({ read_back: { tool: 'send', args: {} } }), /names "send", which needs approval itself/);
  assert.match(problems({ dry_run: { tool: 'write', args: {} } }), /declared write; it must be a read/);
});

test('placeholders must be known when the companion is called', () => {
  assert.match(
    problems({ dry_run: { tool: 'look', args: { a: '$result/a' } } }),
    /uses \$result\/a, which is not known at that time/,
  );
  assert.match(problems({ idempotency_key: 'k', dry_run: { tool: 'look', args: { a: ['$key/a'] } } }), /write \$key/);
  const rail: Rail = { ...(status() && { status: status() }) };
  assert.match(problems(rail), /uses \$key, but rail\.idempotency_key is not set/);
  const both = status({ done: ['x', 'y'], not_done: ['y'] });
  assert.match(
    problems({ idempotency_key: 'k', ...(both && { status: both }) }),
    /lists y under done and under not_done/,
  );
  assert.match(problems({ currency: '/c' }), /without rail\.amount/);
});

test('a rail is checked against the schemas of the tools', () => {
  const tool = (properties: object, required: string[] = []) => ({
    name: 'x',
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
  });
  const beside = new Map([['look', { definition: tool({ a: {}, b: {} }, ['b']), surface: 'natural' as const }]]);
  const mismatches = railMismatches(
    {
      ...{ idempotency_key: 'key', amount: '/sum/value' },
      dry_run: { tool: 'look', args: { a: '$args/gone', c: 1 } },
    },
    tool({ amount: {} }),
    beside,
  );
  assert.deepEqual(mismatches, [
    'rail.idempotency_key names "key", which is not an argument of the tool',
    'rail.amount points to /sum/value, which is not an argument of the tool',
    'rail.dry_run gives c, which look does not take',
    'rail.dry_run does not give b, which look needs',
    'rail.dry_run uses $args/gone, which is not an argument of the tool',
  ]);
  const escalated = new Map([['look', { definition: tool({}), surface: 'escalate' as const }]]);
  const [problem] = railMismatches({ dry_run: { tool: 'look', args: {} } }, tool({}), escalated);
  assert.match(problem!, /needs approval itself/);
  assert.deepEqual(railMismatches({ amount: '/x' }, { name: 'x', inputSchema: { type: 'object' } }, new Map()), []);
});

test('only a tool without approval may be repeatable', () => {
  assert.equal(problems({ repeatable: true }, 'natural'), '');
  assert.match(problems({ repeatable: true }), /rail\.repeatable is set for a tool that needs approval/);
});

test('every tool of a shipped manifest that needs an approval declares its effect, in arguments that the tool has', () => {
  const agents = new URL('../../../agents/', import.meta.url);
  const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, agents), 'utf8'));
  type Known = { servers: Record<string, ToolDefinition[]> };
  let found = 0;
  for (const file of readdirSync(agents).filter((name) => /^[a-z]+\.json$/.test(name))) {
    const known = read(file.replace('.json', '.tools.json')) as Known;
    for (const { alias, tools = [] } of agentManifestSchema.parse(read(file)).servers)
      for (const { name, surface, rail } of tools) {
        if (surface !== 'escalate') continue;
        found++;
        assert.ok(rail?.effect, `${file}: ${alias}/${name} declares no rail.effect`);
        const definition = known.servers[alias]!.find((one) => one.name === name)!;
        const wrong = railMismatches(rail, definition, new Map()).filter((one) => one.startsWith('rail.effect'));
        assert.deepEqual(wrong, [], `${file}: ${alias}/${name}`);
      }
  }
  assert.ok(found >= 20, `${found} tools were looked at`);
});

test('an effect that points to a missing argument is a mismatch', () => {
  const own = { name: 'run', inputSchema: { type: 'object', properties: { command: {} } } } as ToolDefinition;
  const rail: Rail = { effect: [{ role: 'command', at: '/cmd' }] };
  assert.deepEqual(railMismatches(rail, own, new Map()), [
    'rail.effect points to /cmd, which is not an argument of the tool',
  ]);
});
