import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import type { Look } from '../screens/render.ts';
import { renderSurface } from './tools.ts';

/** A server that knows no manners but the protocol: two tools, one of which moves money. */
const SERVER = `
import { McpServer } from '${import.meta.resolve('@modelcontextprotocol/server')}';
import { serveStdio } from '${import.meta.resolve('@modelcontextprotocol/server/stdio')}';
serveStdio(() => {
  const server = new McpServer({ name: 's', version: '1.0.0' });
  for (const name of ['look', 'transfer'])
    server.registerTool(name, { description: 'To ' + name + '\\u001b[31m, that is all. And more.' }, () => ({ content: [] }));
  return server;
});`;

/** What the manifest says of them: the model may look. */
const TOOLS = [{ name: 'look', side_effect_class: 'read' }, { name: 'transfer' }];

function manifestIn(folder: string, server: object = {}): string {
  const path = join(folder, 'agent.json');
  const args = ['--input-type=module', '--eval', SERVER];
  writeFileSync(path, JSON.stringify({ servers: [{ alias: 's', command: process.execPath, args, ...server }] }));
  return path;
}

describe('reveille neo tools', () => {
  test('shows what the model can call, what escalates and why, and warnings', async (t) => {
    const home = temporaryFolder(t);
    const path = manifestIn(home, { tools: TOOLS });
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as { servers: object[] };
    manifest.servers.push({ alias: 'gone', command: 'no-such-program' });
    writeFileSync(path, JSON.stringify(manifest));
    // As `reveille up` leaves it while it runs; its executor is the agent's.
    const run = { pid: process.pid, chronos_url: 'http://127.0.0.1:9', router_url: 'http://127.0.0.1:9' };
    const started = { executor_url: 'http://127.0.0.1:9', started_at: '2026-11-22T12:00:00.000Z' };
    writeFileSync(join(home, 'run.json'), JSON.stringify({ ...run, ...started }), { mode: 0o600 });
    const { status, stdout, stderr } = await reveille(home, ['neo', 'tools'], { env: { NEO_MANIFEST: path } });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /core_execute +Hand/);
    assert.match(stdout, /The model can call 3 functions:\n\nFUNCTION +DESCRIPTION\n/);
    assert.match(stdout, /s__look +To look\\u001b\[31m, that is all\.\n/);
    assert.match(stdout, /Through core_execute only:\n\nTOOL +REASON\ns__transfer +its name contains "transfer"\n/);
    assert.match(stdout, /Warning: server "gone"/);
    assert.ok(!stdout.includes('\u001b'), 'a description cannot paint the terminal');
  });

  test('prints the same as GET /tools with --json, and core_execute where there is an executor', async (t) => {
    const home = temporaryFolder(t);
    const env = {
      NEO_MANIFEST: manifestIn(home, { tools: TOOLS }),
      NEO_EXECUTOR_URL: 'http://127.0.0.1:9',
      NEO_EXECUTOR_TOKEN: 'a-token-of-the-executor',
      MATRIX_USER_ID: 'alice',
    };
    const { status, stdout, stderr } = await reveille(home, ['neo', 'tools', '--json'], { env });
    assert.equal(status, 0, stderr);
    const view = JSON.parse(stdout) as { tools: { name: string }[]; escalate: string[] };
    assert.deepEqual(
      view.tools.map(({ name }) => name),
      ['s__look', 'core_execute', 'memory_recall'],
    );
    assert.deepEqual(view.escalate, ['s__transfer']);
  });

  test('fails with every difference when the tools are not those of the manifest', async (t) => {
    const home = temporaryFolder(t);
    const path = manifestIn(home, { tools: [{ name: 'look' }, { name: 'listen' }] });
    const { status, stderr } = await reveille(home, ['neo', 'tools'], { env: { NEO_MANIFEST: path } });
    assert.equal(status, 1);
    assert.match(stderr, /"transfer" is not declared/);
    assert.match(stderr, /"listen" is declared in the manifest, but the server does not have it/);
  });
});

test('what is off is told whole, with what turns it on, however narrow the screen is', () => {
  const why = 'NEO_SEARCH_URL or NEO_SEARCH_KEY is not set; set NEO_SEARCH_URL to the address of a SearXNG';
  const view = { tools: [], escalated: [], escalate: [], warnings: [], off: [{ alias: 'web_search', why }] };
  const lines = renderSurface(view, { width: 60, paint: (_, text) => text } as Look);
  assert.ok(
    lines.every((line) => line.length <= 60),
    lines.join('\n'),
  );
  assert.ok(lines.join(' ').replace(/\s+/g, ' ').includes(why), lines.join('\n'));
});

describe('reveille tools pin', () => {
  test('writes the lock beside the manifest, and says what has changed since', async (t) => {
    const home = temporaryFolder(t);
    const path = manifestIn(home);
    const first = await reveille(home, ['tools', 'pin', 'agent.json'], { cwd: home });
    assert.equal(first.status, 0, first.stderr);
    assert.match(first.stdout, /^Pinned 2 tools in .*agent\.lock\.json:\n {2}new +s\/look\n {2}new +s\/transfer\n$/);
    const again = await reveille(home, ['tools', 'pin', path]);
    assert.match(again.stdout, /no changes/);
    const lock = readFileSync(join(home, 'agent.lock.json'), 'utf8');
    writeFileSync(join(home, 'agent.lock.json'), lock.replace(/"look": ".{64}"/, `"look": "${'0'.repeat(64)}"`));
    const refused = await reveille(home, ['neo', 'tools'], { env: { NEO_MANIFEST: path } });
    assert.equal(refused.status, 1);
    assert.match(
      refused.stderr,
      /"look" differs in description or schema from the pinned definition.*reveille tools pin/,
    );
    const { stdout } = await reveille(home, ['tools', 'pin', path]);
    assert.match(stdout, /changed +s\/look\n$/);
    assert.equal(readFileSync(join(home, 'agent.lock.json'), 'utf8'), lock);
  });

  test('keeps the pins of a server that does not start, and ends with 1', async (t) => {
    const home = temporaryFolder(t);
    const path = manifestIn(home);
    await reveille(home, ['tools', 'pin', path]);
    const lock = readFileSync(join(home, 'agent.lock.json'), 'utf8');
    manifestIn(home, { command: 'no-such-program' });
    const { status, stderr } = await reveille(home, ['tools', 'pin', path]);
    assert.equal(status, 1);
    assert.match(stderr, /Not pinned: server "s"/);
    assert.equal(readFileSync(join(home, 'agent.lock.json'), 'utf8'), lock);
  });

  test('refuses a manifest that is not there, and makes no lock', async (t) => {
    const home = temporaryFolder(t);
    const { status, stderr } = await reveille(home, ['tools', 'pin', join(home, 'none.json')]);
    assert.equal(status, 1);
    assert.match(stderr, /none\.json cannot be read/);
    assert.equal(existsSync(join(home, 'none.lock.json')), false);
  });
});
