import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { lockOf } from '../../../src/mcp-host/tool-lock.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { reference, startPool, textOf } from './bench.ts';

const FILES = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'));

test('the official files server reads and lists below its root, and refuses other paths in-band', async (t) => {
  const root = temporaryFolder(t);
  const workspace = join(root, 'work space');
  mkdirSync(workspace);
  writeFileSync(join(workspace, 'note.txt'), 'buy milk');
  writeFileSync(join(root, 'secret.txt'), 'not for agents');
  const files = { alias: 'files', command: process.execPath, args: [FILES, reference('WORKSPACE')], required: true };
  const pool = await startPool(t, [files], { variables: { WORKSPACE: workspace } });
  const names = pool.tools().map(({ functionName }) => functionName);
  assert.ok(names.includes('files__read_text_file') && names.includes('files__list_directory'), names.join());
  const read = (path: string) => pool.call('files', 'read_text_file', { path });
  assert.equal(textOf(await read(join(workspace, 'note.txt'))), 'buy milk');
  assert.match(textOf(await pool.call('files', 'list_directory', { path: workspace })), /note\.txt/);
  const refused = await read(join(root, 'secret.txt'));
  assert.equal(refused.isError, true);
  assert.doesNotMatch(textOf(refused), /not for agents/);
  // Its definitions are the same at every start, so it can be pinned.
  const again = await startPool(t, [files], { variables: { WORKSPACE: workspace }, lock: lockOf(pool.tools()) });
  assert.deepEqual(again.warnings(), []);
});
