import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { testCall, textOf } from '../../../src/agents/neo/testing/tool-call.ts';
import { parseToolConfig } from '../../../src/agents/neo/tools/settings.ts';
import { pinTools, type SpawnOptions, spawnTools } from '../../../src/agents/neo/tools/start-host.ts';
import { ToolFailure, type ToolSurface, textAnswer } from '../../../src/agents/neo/tools/surface.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { createMarketServer } from './market-server.ts';

const SERVER = fileURLToPath(new URL('./market-server.ts', import.meta.url));

/** The manifest of these tests: the entry that gives the natural tools of the market to the model. */
const CLASSES: Readonly<Record<string, object>> = {
  ...{ get_price: { side_effect_class: 'read' }, simulate_transfer: { side_effect_class: 'read' } },
  ...{ note: { surface: 'natural' }, fail: { surface: 'natural' }, die: { surface: 'natural' } },
  ...{ draw: { surface: 'natural' }, tidy_up: { side_effect_class: 'read' }, transfer_coins: {} },
  ...{ ApproveSpender: {}, wipe_everything: {} },
};
const DECLARED = Object.entries(CLASSES).map(([name, fields]) => ({ name, ...fields }));

type Bench = { folder: string; manifest: string; calls: () => string[]; options: Parameters<typeof spawnTools>[0] };

function bench(t: TestContext, server: object, settings: Record<string, string> = {}): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-tools-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  const manifest = join(folder, 'agent.json');
  const log = join(folder, 'calls.log');
  const stdio = { command: process.execPath, args: [SERVER, log] };
  writeFileSync(
    manifest,
    JSON.stringify({ servers: [{ alias: 'm', version: '3.2.1', ...stdio, tools: DECLARED, ...server }] }),
  );
  return {
    folder,
    manifest,
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    options: {
      config: parseToolConfig({ NEO_MANIFEST: manifest, ...settings }, folder),
      variables: { PATH: process.env.PATH },
      dataDir: folder,
      clock: systemClock,
      log: silentLogger,
    },
  };
}

async function spawned(t: TestContext, { options }: Bench, more: Partial<SpawnOptions> = {}): Promise<ToolSurface> {
  const surface = await spawnTools({ ...options, ...more });
  t.after(() => surface.close());
  return surface;
}

const namesOf = (surface: ToolSurface, limit?: ReadonlySet<string>) => surface.schemas(limit).map(({ name }) => name);
const NATURAL = ['m__die', 'm__draw', 'm__fail', 'm__get_price', 'm__note', 'm__simulate_transfer'];
const delegate = async () => textAnswer('handed over');
const recall = async (query: string | undefined) => `remembered: ${query ?? 'everything'}`;

describe('the tool surface over a server on stdio', () => {
  test('shows natural tools by name, then core_execute and memory_recall where they have a backend', async (t) => {
    const own = bench(t, {});
    assert.deepEqual(namesOf(await spawned(t, own)), NATURAL);
    const whole = await spawned(t, own, { delegate, recall });
    assert.deepEqual(namesOf(whole), [...NATURAL, 'core_execute', 'memory_recall']);
    const schema = whole.schemas().find(({ name }) => name === 'm__get_price');
    assert.equal(schema?.description, 'The price of a thing.');
    assert.deepEqual(schema?.parameters.required, ['thing']);
  });

  test('hides escalated tools and gives the reason; a hint of the server makes the class stricter, never looser', async (t) => {
    const surface = await spawned(t, bench(t, {}), { delegate });
    const { escalate, escalated } = surface.describe();
    assert.deepEqual(escalate, ['m__ApproveSpender', 'm__tidy_up', 'm__transfer_coins', 'm__wipe_everything']);
    const why = Object.fromEntries(escalated.map(({ name, reason }) => [name, reason]));
    assert.match(why.m__transfer_coins ?? '', /contains "transfer"/);
    assert.match(why.m__tidy_up ?? '', /destructive/);
    assert.equal(escalated[2]?.uri, 'matrix://tool/mcp/m/transfer_coins@3.2.1');
  });

  test('a tool that the manifest does not classify is hidden from the model, whatever its name and its server say', async (t) => {
    const surface = await spawned(t, bench(t, { tools: undefined }), { delegate });
    assert.deepEqual(namesOf(surface), ['core_execute']);
    const { escalated } = surface.describe();
    const why = Object.fromEntries(escalated.map(({ name, reason }) => [name, reason]));
    assert.equal(why.m__get_price, 'the manifest calls it neither a read nor natural', 'although it says readOnlyHint');
    assert.match(why.m__simulate_transfer ?? '', /contains "transfer"/);
    const answer = await surface.dispatch('m__get_price', { thing: 'tea' }, testCall());
    assert.match(textOf(answer), /cannot be called directly/);
  });

  test('prefers the manifest to names and hints', async (t) => {
    const names = [...['get_price', 'transfer_coins', 'ApproveSpender', 'simulate_transfer'], 'wipe_everything'];
    const surfaces: Record<string, string> = { get_price: 'escalate', transfer_coins: 'natural', tidy_up: 'natural' };
    const tools = [...names, 'tidy_up', 'note', 'fail', 'die', 'draw'].map((name) => ({
      ...{ name, ...CLASSES[name] },
      ...(surfaces[name] && { surface: surfaces[name] }),
    }));
    const { tools: shown, escalate, warnings } = (await spawned(t, bench(t, { tools }))).describe();
    assert.ok(shown.some(({ name }) => name === 'm__transfer_coins'));
    assert.ok(shown.some(({ name }) => name === 'm__tidy_up'));
    assert.deepEqual(escalate, ['m__ApproveSpender', 'm__get_price', 'm__wipe_everything']);
    assert.match(warnings.join(), /m\/transfer_coins is natural by its manifest although .*is not pinned/);
  });

  test('accepts more patterns from the configuration, and keeps its own', async (t) => {
    const surface = await spawned(t, bench(t, {}, { NEO_ESCALATE_PATTERNS: 'Price, draw' }));
    const { escalate } = surface.describe();
    const before = ['m__ApproveSpender', 'm__tidy_up', 'm__transfer_coins', 'm__wipe_everything'];
    // `"surface": "natural"` in the manifest, as `draw` has it, takes precedence.
    assert.deepEqual(escalate, [...before, 'm__get_price'].sort());
  });

  test('makes calls, and returns failures of a tool to the model', async (t) => {
    const surface = await spawned(t, bench(t, {}));
    const price = await surface.dispatch('m__get_price', { thing: 'tea' }, testCall());
    assert.deepEqual(price, { content: [{ type: 'text', text: 'tea costs 3' }], isError: false });
    assert.deepEqual(await surface.dispatch('m__fail', {}, testCall()), textAnswer('out of stock', true));
    const wrong = await surface.dispatch('m__get_price', { thing: 7 }, testCall());
    assert.equal(wrong.isError, true);
    const picture = await surface.dispatch('m__draw', null, testCall());
    assert.deepEqual(picture.content, [
      { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
      { type: 'text', text: '[a sound, audio/wav, 3 bytes; not shown]' },
    ]);
    for (const args of [[], 'tea', 7, true]) {
      const refused = await surface.dispatch('m__note', args, testCall());
      assert.match(textOf(refused), /must be a JSON object/);
      assert.equal(refused.isError, true);
    }
  });

  test('answers unknown and escalated names in-band, and makes no call for them', async (t) => {
    const own = bench(t, {});
    const surface = await spawned(t, own, { delegate });
    const names = ['transfer_coins', 'm__Get_price', 'm.get_price', '', 'memory_recall', '__proto__', 'constructor'];
    for (const name of names) {
      const answer = await surface.dispatch(name, { thing: 'tea' }, testCall());
      assert.deepEqual(answer, textAnswer(`unknown tool ${JSON.stringify(name)} — it is not available`, true));
    }
    const hidden = await surface.dispatch('m__transfer_coins', {}, testCall());
    assert.equal(hidden.isError, true);
    assert.match(textOf(hidden), /^"m__transfer_coins" moves funds .*use core_execute$/);
    assert.deepEqual(own.calls(), []);
  });

  test('reports an escalated tool when core_execute has no backend', async (t) => {
    const surface = await spawned(t, bench(t, {}));
    const hidden = await surface.dispatch('m__transfer_coins', {}, testCall());
    assert.match(textOf(hidden), /use core_execute, which needs an executor/);
    const core = await surface.dispatch('core_execute', { intent: 'pay' }, testCall());
    assert.match(textOf(core), /unknown tool "core_execute"/);
  });

  test('obeys the list of the active skill, by URI or by name', async (t) => {
    const own = bench(t, {});
    const surface = await spawned(t, own, { recall });
    const limit = new Set(['matrix://tool/mcp/m/get_price@3.2.1', 'm__note', 'm__transfer_coins']);
    assert.deepEqual(namesOf(surface, limit), ['m__get_price', 'm__note', 'memory_recall']);
    const refused = await surface.dispatch('m__draw', {}, { ...testCall(), limit });
    assert.match(textOf(refused), /unknown tool "m__draw" — the skill at work does not list it/);
    assert.equal((await surface.dispatch('m__note', {}, { ...testCall(), limit })).isError, false);
    const escalated = await surface.dispatch('m__transfer_coins', {}, { ...testCall(), limit });
    assert.match(textOf(escalated), /moves funds/);
    assert.deepEqual(own.calls(), ['note']);
  });

  test('distinguishes a call whose server died from one that failed, and continues', async (t) => {
    const surface = await spawned(t, bench(t, {}));
    await assert.rejects(surface.dispatch('m__die', {}, testCall()), (thrown) => {
      assert.ok(thrown instanceof ToolFailure);
      assert.deepEqual([thrown.mayHaveRun, thrown.repeatable], [true, false]);
      return true;
    });
    assert.match(surface.warnings().join(), /"m"/);
    const missing = await surface.dispatch('core_execute', { intent: 'x' }, testCall());
    assert.equal(missing.isError, true);
  });

  test('knows which calls may be repeated', async (t) => {
    const surface = await spawned(t, bench(t, {}), { delegate, recall });
    const twice = ['m__get_price', 'm__note', 'core_execute', 'memory_recall'].map((name) => surface.repeatable(name));
    assert.deepEqual(twice, [true, true, true, true]);
    const once = ['m__draw', 'm__transfer_coins', 'm__unknown'].map((name) => surface.repeatable(name));
    assert.deepEqual(once, [false, false, false]);
  });

  test('aborts with the reason of the signal', async (t) => {
    const surface = await spawned(t, bench(t, {}), { recall: () => new Promise(() => {}) });
    const call = testCall();
    call.abort(new Error('enough'));
    await assert.rejects(surface.dispatch('m__note', {}, call), /enough/);
  });

  test('submits tasks and searches the memory, and refuses invalid arguments', async (t) => {
    const given: string[] = [];
    const surface = await spawned(t, bench(t, {}), {
      recall,
      delegate: async (intent, { callId }) => {
        given.push(`${callId}: ${intent}`);
        return textAnswer('handed over');
      },
    });
    assert.equal(textOf(await surface.dispatch('core_execute', { intent: 'pay Bob' }, testCall('c9'))), 'handed over');
    assert.equal(textOf(await surface.dispatch('memory_recall', { query: ' tea ' }, testCall())), 'remembered: tea');
    assert.equal(textOf(await surface.dispatch('memory_recall', {}, testCall())), 'remembered: everything');
    const wrong: [name: string, args: unknown, words: RegExp][] = [
      ['core_execute', {}, /intent must be a string/],
      ['core_execute', { intent: '  ' }, /it is empty/],
      ['core_execute', { intent: 'x', amount: 3 }, /takes only intent/],
      ['core_execute', { intent: 'x'.repeat(40_000) }, /at most 32768 bytes, it has 40000/],
      ['core_execute', { intent: '\ud800' }, /surrogate/],
      ['core_execute', ['pay'], /must be a JSON object \(got a list\)/],
      ['memory_recall', { query: 7 }, /query must be a string/],
      ['memory_recall', { query: 'x'.repeat(5000) }, /at most 4096/],
    ];
    for (const [name, args, message] of wrong) {
      const answer = await surface.dispatch(name, args, testCall());
      assert.equal(answer.isError, true);
      assert.match(textOf(answer), message);
    }
    assert.deepEqual(given, ['c9: pay Bob']);
  });

  test('a memory that cannot be searched is a failure that may be retried', async (t) => {
    const surface = await spawned(t, bench(t, {}), { recall: () => Promise.reject(new Error('disk full')) });
    await assert.rejects(surface.dispatch('memory_recall', {}, testCall()), {
      name: 'ToolFailure',
      message: /disk full/,
      mayHaveRun: false,
      repeatable: true,
    });
  });

  test('a server that does not start is a warning, and the others work', async (t) => {
    const own = bench(t, {});
    const manifest = JSON.parse(readFileSync(own.manifest, 'utf8')) as { servers: object[] };
    manifest.servers.push({ alias: 'broken', command: 'no-such-program-anywhere' });
    writeFileSync(own.manifest, JSON.stringify(manifest));
    const surface = await spawned(t, own);
    assert.deepEqual(namesOf(surface), NATURAL);
    assert.match(surface.describe().warnings.join(), /"broken".*no-such-program-anywhere/s);
  });

  test('a wrong manifest stops the start with file and line, and starts nothing', async (t) => {
    const own = bench(t, { tools: [{ name: 'get_price', surface: 'naturally' }] });
    await assert.rejects(spawnTools(own.options), { code: 'invalid_request', message: /agent\.json:1:\d+: .*surface/ });
    assert.deepEqual(own.calls(), []);
  });

  test('tools that differ from the pinned ones stop the start; pinning them again permits it', async (t) => {
    const own = bench(t, {});
    const { config } = own.options;
    const pins = { ...own.options, config: { ...config, manifest: { path: own.manifest } } };
    const first = await pinTools(pins);
    assert.equal(first.file, join(own.folder, 'agent.lock.json'));
    assert.ok(first.tools.length === 10 && first.tools.every(({ change }) => change === 'new'));
    const lock = JSON.parse(readFileSync(first.file, 'utf8')) as { servers: { m: Record<string, string> } };
    lock.servers.m.note = '0'.repeat(64);
    lock.servers.m.gone = '1'.repeat(64);
    writeFileSync(first.file, JSON.stringify(lock));
    // The files are compared before a server starts, and the live tools after that.
    await assert.rejects(spawnTools(own.options), { code: 'conflict', message: /"gone" is pinned and not declared/ });
    const { gone: _, ...known } = lock.servers.m;
    writeFileSync(first.file, JSON.stringify({ ...lock, servers: { m: known } }));
    await assert.rejects(spawnTools(own.options), { code: 'conflict', message: /"note" differs in description/ });
    writeFileSync(first.file, JSON.stringify(lock));
    const again = await pinTools(pins);
    const changes = again.tools
      .filter(({ change }) => change !== 'same')
      .map(({ tool, change }) => `${tool} ${change}`);
    assert.deepEqual(changes, ['note changed', 'gone gone']);
    await spawned(t, own);
  });

  test('without a manifest only its own functions exist', async (t) => {
    const own = bench(t, {}, { NEO_MANIFEST: 'none' });
    assert.deepEqual(namesOf(await spawned(t, own, { delegate, recall })), ['core_execute', 'memory_recall']);
  });
});

test('the tool surface over a server on HTTP calls and classifies as over stdio', async (t) => {
  const calls: string[] = [];
  const handler = createMcpHandler(() => createMarketServer((tool) => calls.push(tool)), { legacy: 'stateless' });
  const http = createServer(getRequestListener((request) => handler.fetch(request)));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.after(() => {
    http.close();
    http.closeAllConnections();
  });
  const { port } = http.address() as AddressInfo;
  const link = { transport: 'http', url: `http://127.0.0.1:${port}/mcp`, command: undefined, args: undefined };
  const surface = await spawned(t, bench(t, link), { delegate });
  assert.deepEqual(namesOf(surface), [...NATURAL, 'core_execute']);
  assert.equal(textOf(await surface.dispatch('m__get_price', { thing: 'ink' }, testCall())), 'ink costs 3');
  assert.match(textOf(await surface.dispatch('m__transfer_coins', {}, testCall())), /moves funds/);
  assert.deepEqual(calls, ['get_price']);
  http.close();
  http.closeAllConnections();
  await assert.rejects(surface.dispatch('m__get_price', { thing: 'ink' }, testCall()), { name: 'ToolFailure' });
});
