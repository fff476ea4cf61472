import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import type { ClientFile } from './clients.ts';
import { applyChanges, planConnect, planUndo } from './plan.ts';

const ENTRIES = {
  servers: { chronos: { command: '/opt/node', args: ['/opt/reveille.mjs', 'mcp'] } },
  hook: ['/opt/node', '/opt/reveille.mjs', 'time', 'hook'],
};
const json = (path: string): ClientFile => ({
  ...{ path, format: 'json' },
  parts: [{ kind: 'servers', field: 'mcpServers', extra: {} }],
});

test('a file that its program writes between reading and writing stays as that program wrote it, and so does the rest', (t) => {
  const folder = temporaryFolder(t);
  const [first, second, third] = ['a.json', 'b.json', 'c.json'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(first, '{"a":1}');
  writeFileSync(third, '{"c":1}');
  const plan = planConnect([json(first), json(second), json(third)], ENTRIES);
  assert.deepEqual(
    plan.map(({ action }) => action),
    ['change', 'create', 'change'],
  );
  writeFileSync(third, '{"c":2}');
  assert.throws(() => applyChanges(plan), { code: 'conflict', message: /c\.json was changed by another program/ });
  assert.deepEqual(
    [first, third].map((path) => readFileSync(path, 'utf8')),
    ['{"a":1}', '{"c":2}'],
  );
  assert.equal(existsSync(second), false);

  // Read anew it goes, and back.
  const files = [json(first), json(second), json(third)];
  applyChanges(planConnect(files, ENTRIES));
  applyChanges(planUndo(files));
  assert.deepEqual(
    [first, third].map((path) => readFileSync(path, 'utf8')),
    ['{"a":1}', '{"c":2}'],
  );
  assert.equal(existsSync(second), false);
});

test('a file that somebody makes meanwhile is not written over', (t) => {
  const path = join(temporaryFolder(t), 'mcp.json');
  const plan = planConnect([json(path)], ENTRIES);
  writeFileSync(path, '{"theirs":1}');
  assert.throws(() => applyChanges(plan), { code: 'conflict', message: /was changed by another program/ });
  assert.equal(readFileSync(path, 'utf8'), '{"theirs":1}');
});

test('a byte order mark and permissions stay', (t) => {
  const path = join(temporaryFolder(t), 'mcp.json');
  writeFileSync(path, '\uFEFF{"a":1}');
  chmodSync(path, 0o604);
  applyChanges(planConnect([json(path)], ENTRIES));
  const text = readFileSync(path, 'utf8');
  assert.ok(text.startsWith('\uFEFF{'));
  assert.equal(statSync(path).mode & 0o777, 0o604);
  applyChanges(planUndo([json(path)]));
  assert.equal(readFileSync(path, 'utf8'), '\uFEFF{"a":1}');
});

test('a backup that is from before something else is not brought back', (t) => {
  const path = join(temporaryFolder(t), 'mcp.json');
  writeFileSync(path, '{"a":1}');
  applyChanges(planConnect([json(path)], ENTRIES));
  // Taken out by hand, changed, and connected again: what was before is what was there then.
  writeFileSync(path, '{"a":2}');
  applyChanges(planConnect([json(path)], ENTRIES));
  applyChanges(planUndo([json(path)]));
  assert.equal(readFileSync(path, 'utf8'), '{"a":2}');
});
