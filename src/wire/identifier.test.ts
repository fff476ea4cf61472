import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conversationIdSchema } from './alarm.ts';
import { didSchema, labelSchema, parseDid } from './did.ts';
import { intentIdSchema, nodeIdSchema } from './executor.ts';
import { pathSegment } from './identifier.ts';
import { pathOf } from './route.ts';

const DOTS = ['', '.', '..', '...', '.'.repeat(64)];
const HOSTILE = [...DOTS, '../x', 'a/b', 'a\\b', 'a\0', '%2e%2e', 'a b', 'ü', 'a\n', 'x'.repeat(129)];
const FINE = ['a', '.a', '..a', 'a..', '-', '_', 'alice', '2026-11-24', 'x'.repeat(64)];

test('an id for a path is never empty, only dots, or with characters that are special in paths', () => {
  const schemas = { conversationIdSchema, labelSchema, intentIdSchema, nodeIdSchema };
  for (const [name, schema] of Object.entries(schemas))
    for (const id of HOSTILE) assert.equal(schema.safeParse(id).success, false, `${name} ${JSON.stringify(id)}`);
  for (const id of FINE)
    for (const schema of [conversationIdSchema, labelSchema]) assert.equal(schema.safeParse(id).success, true, id);
  for (const label of HOSTILE) {
    const did = `did:matrix:${label}:${'0'.repeat(16)}`;
    assert.deepEqual([didSchema.safeParse(did).success, parseDid(did)], [false, undefined], did);
  }
  assert.deepEqual(parseDid(`did:matrix:..a:${'0'.repeat(16)}`)?.label, '..a');
});

test('no path is built from a dot segment or an invalid id', () => {
  const route = { method: 'get', path: '/v1/alarms/{id}', summary: '', credential: 'none' } as const;
  const path = (id: string) => pathOf(route as never, { id } as never);
  for (const id of ['', '.', '..', '\ud800']) {
    assert.throws(() => path(id), { code: 'invalid_request', message: /an id in a path must not be empty/ });
    assert.throws(() => pathSegment(id), { code: 'invalid_request' });
  }
  assert.equal(path('a/../b'), '/v1/alarms/a%2F..%2Fb');
});
