/** The functions that models get from the shipped manifests, and the calls that servers get. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { unsafeParts } from '../../../../test/support/function-schemas.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import { functionName } from '../../../mcp-host/function-names.ts';
import { digestOf, type ToolDefinition } from '../../../mcp-host/tool-definition.ts';
import { lockPathOf, readKnownTools, readLock } from '../../../mcp-host/tool-lock.ts';
import { testCall, textOf } from '../testing/tool-call.ts';
import { textAnswer } from './surface.ts';
import { createToolSet } from './tool-set.ts';

const AGENTS = join(import.meta.dirname, '..', '..', '..', '..', 'agents');
const MANIFESTS = globSync('*.tools.json', { cwd: AGENTS }).map((name) => name.replace('.tools.json', '.json'));

/** A surface over natural tools, and the arguments that reach their server. */
function surfaceOver(tools: readonly { alias: string; definition: ToolDefinition }[]) {
  const received: string[] = [];
  const natural = tools.map(({ alias, definition }) => ({
    alias,
    tool: definition.name,
    functionName: functionName(alias, definition.name),
    uri: `matrix://tool/mcp/${alias}/${definition.name}@1.0.0`,
    surface: 'natural' as const,
    isPinned: true,
    definition,
  }));
  const host = {
    tools: () => natural,
    call: async (_alias: string, _tool: string, args: Record<string, unknown>) => {
      received.push(JSON.stringify(args));
      return { content: [{ type: 'text', text: 'done' }] };
    },
    warnings: () => [],
    close: async () => {},
  };
  const surface = createToolSet({
    ...{ host, patterns: [], log: silentLogger },
    delegate: async () => textAnswer('handed over'),
    recall: async () => 'remembered',
  });
  return { surface, received };
}

for (const manifest of MANIFESTS)
  test(`every provider accepts all tools of agents/${manifest}, and their definitions stay pinned as the servers send them`, () => {
    const known = readKnownTools(join(AGENTS, manifest))!;
    const tools = Object.entries(known).flatMap(([alias, definitions]) =>
      definitions.map((definition) => ({ alias, definition })),
    );
    const { servers } = readLock(lockPathOf(join(AGENTS, manifest)))!;
    const offered = surfaceOver(tools).surface.schemas();
    assert.equal(offered.length, tools.length + 2);
    assert.equal(new Set(offered.map(({ name }) => name)).size, offered.length);
    assert.deepEqual(
      offered.flatMap((schema) => unsafeParts(schema).map((problem) => `${schema.name}: ${problem}`)),
      [],
    );
    for (const { alias, definition } of tools)
      assert.equal(digestOf(definition), servers[alias]![definition.name], `${alias}/${definition.name}`);
  });

const QUERY: ToolDefinition = {
  name: 'query',
  description: 'd'.repeat(2000),
  inputSchema: {
    type: 'object',
    properties: {
      $filter: { type: 'object', additionalProperties: true },
      limit: { type: ['integer', 'null'] },
      order: { type: 'string', enum: ['up', 'down'] },
    },
  },
};

test('a call reaches the server with arguments of its own schema', async () => {
  const { surface, received } = surfaceOver([{ alias: 's', definition: QUERY }]);
  const answer = await surface.dispatch('s__query', { _filter: '{"id":12345678901234567890}', order: '' }, testCall());
  assert.deepEqual(answer, textAnswer('done'));
  assert.deepEqual(received, ['{"$filter":{"id":12345678901234567890}}']);
});

test('a call with a text that is not JSON is not made, and the answer names its place', async () => {
  const { surface, received } = surfaceOver([{ alias: 's', definition: QUERY }]);
  const answer = await surface.dispatch('s__query', { _filter: 'id = 5' }, testCall());
  assert.equal(answer.isError, true);
  assert.match(textOf(answer), /^_filter must be JSON text/);
  assert.deepEqual(received, []);
});
