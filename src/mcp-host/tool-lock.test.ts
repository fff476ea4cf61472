import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { digestOf, type ToolDefinition } from './tool-definition.ts';
import { lockOf, lockPathOf, pinDifferences, readLock, writeLock } from './tool-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'reveille-lock-'));
after(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'neo.lock.json');

const definition: ToolDefinition = {
  name: 'work',
  description: 'Works.',
  inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'string' } } },
  annotations: { readOnlyHint: true },
};
const pinned = lockOf([{ alias: 'a', definition }]).servers.a!;

test('a lock is stored beside its manifest', () => {
  assert.equal(lockPathOf('/x/agents/neo.json'), '/x/agents/neo.lock.json');
  assert.equal(lockPathOf('manifest'), 'manifest.lock.json');
});

test('a written lock is read back, sorted', () => {
  const lock = lockOf([
    { alias: 'b', definition },
    { alias: 'a', definition: { ...definition, name: 'z' } },
    { alias: 'a', definition },
  ]);
  writeLock(path, lock);
  assert.deepEqual(readLock(path), lock);
  assert.match(
    readFileSync(path, 'utf8'),
    /^\{\n {2}"lock_version": 1,\n {2}"servers": \{\n {4}"a": \{\n {6}"work": "[0-9a-f]{64}",\n {6}"z"/,
  );
});

test('a missing lock counts as none; a broken one is an error with its position', () => {
  assert.equal(readLock(join(folder, 'none.json')), undefined);
  for (const [text, position] of [
    ['{', /:1:2: this is not JSON/],
    ['{"lock_version": 2, "servers": {}}', /:1:18: lock_version must be 1/],
    ['{"lock_version": 1,\n"servers": {"a": {"t": "abc"}}}', /:2:24: servers\.a\.t must be a SHA-256/],
  ] as const) {
    writeFileSync(path, text);
    assert.throws(() => readLock(path), { code: 'invalid_request', message: position });
  }
});

test("the digest does not depend on the order of a server's fields, nor on fields that no model sees", () => {
  const other = {
    title: 'Work!',
    _meta: { x: 1 },
    annotations: { readOnlyHint: true },
    inputSchema: { properties: { b: { type: 'string' }, a: { type: 'number' } }, type: 'object' },
    description: 'Works.',
    name: 'work',
  } as ToolDefinition;
  assert.equal(digestOf(other), digestOf(definition));
  assert.deepEqual(pinDifferences(pinned, [other]), []);
});

test('any change of name, description, schemas or annotations is a difference', () => {
  for (const change of [
    { description: 'Works!' },
    { inputSchema: { type: 'object' } },
    { outputSchema: { type: 'object' } },
    { annotations: { readOnlyHint: false } },
  ]) {
    assert.match(
      pinDifferences(pinned, [{ ...definition, ...change }]).join(),
      /^"work" differs in description or schema/,
    );
  }
  assert.match(pinDifferences(pinned, [definition, { ...definition, name: 'more' }]).join(), /^"more" is not pinned/);
  assert.match(
    pinDifferences(pinned, []).join(),
    /^"work" is pinned, but the server does not have it; run `reveille tools pin`/,
  );
  assert.deepEqual(pinDifferences(undefined, [definition]), []);
});

test('a tool named constructor is as unpinned as any other', () => {
  assert.match(
    pinDifferences(pinned, [definition, { ...definition, name: 'constructor' }]).join(),
    /"constructor" is not pinned/,
  );
});
