/** Open answers at the MCP endpoints: they count as streams of the user, and end with their token and with the router. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ServerExtension } from '../../../src/mcp-http/servers.ts';
import { eventually } from '../../support/eventually.ts';
import { type McpHttpBench, startMcpHttp } from './mcp-http-bench.ts';

const REVISION = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Servers that report changes of their tools; a subscription to nothing ends at once. */
const CHANGES: ServerExtension = {
  scopesOf: ({ method }) => (method === 'subscriptions/listen' ? ['alarms:read'] : undefined),
  extend: (server) => server.registerCapabilities({ tools: { listChanged: true } }),
};

/** Subscribes to changes, and stays. */
async function listen(t: TestContext, bench: McpHttpBench, bearer: string) {
  const gone = new AbortController();
  t.after(() => gone.abort());
  const response = await fetch(`${bench.url}/mcp/chronos`, {
    method: 'POST',
    signal: gone.signal,
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-protocol-version': REVISION, 'mcp-method': 'subscriptions/listen' },
      authorization: `Bearer ${bearer}`,
    },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen' },
      params: { _meta: META, notifications: { toolsListChanged: true } },
    }),
  });
  const seen = { status: response.status, text: '', hasEnded: false };
  const read = async () => {
    for await (const chunk of response.body!) seen.text += Buffer.from(chunk).toString();
  };
  void read()
    .catch(() => {})
    .finally(() => {
      seen.hasEnded = true;
    });
  return { seen, leave: () => gone.abort() };
}

/** A signal must not be lost with the objects that made it. */
function collectGarbage() {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

const streamsOf = (bench: McpHttpBench) => bench.router.public.figures().streams;

test('a stream is counted while it is open, and the most of one user are limited', async (t) => {
  const bench = await startMcpHttp(t, { ROUTER_PUBLIC_STREAMS_PER_USER: '2' }, [CHANGES]);
  const bearer = await bench.token();
  const streams = [await listen(t, bench, bearer), await listen(t, bench, bearer)];
  for (const { seen } of streams) {
    assert.equal(seen.status, 200);
    await eventually('it is acknowledged', () => seen.text.includes('notifications/subscriptions/acknowledged'));
  }
  assert.equal(streamsOf(bench), 2);
  collectGarbage();
  assert.equal((await listen(t, bench, bearer)).seen.status, 429);
  assert.equal((await bench.call('tools/list', {}, { bearer })).status, 200, 'other requests are not affected');
  streams[0]!.leave();
  await eventually('its place is free', () => streamsOf(bench) === 1);
  assert.equal((await listen(t, bench, bearer)).seen.status, 200);
  assert.equal((await bench.call('tools/list', {}, { bearer })).status, 200);
  await eventually('no request is under way', () => streamsOf(bench) === 2);
});

test('a stream ends soon after its token has expired', async (t) => {
  const bench = await startMcpHttp(t, {}, [CHANGES]);
  const { seen } = await listen(t, bench, await bench.token({ exp: Math.floor(Date.now() / 1000) + 1 }));
  assert.equal(seen.status, 200);
  assert.equal(seen.hasEnded, false);
  await eventually('it has ended', () => seen.hasEnded, 15_000);
  await eventually('it is counted no more', () => streamsOf(bench) === 0);
});

test('a stream ends soon after its token was revoked', async (t) => {
  let isRevoked = false;
  const bench = await startMcpHttp(t, {}, [CHANGES], () => isRevoked);
  const { seen } = await listen(t, bench, await bench.token());
  assert.equal(seen.status, 200);
  collectGarbage();
  isRevoked = true;
  await eventually('it has ended', () => seen.hasEnded, 15_000);
  assert.equal((await bench.call('tools/list', {}, { bearer: await bench.token() })).status, 401);
  assert.equal(bench.figures().revoked, 1);
});

test('the router closes although streams are open', async (t) => {
  const bench = await startMcpHttp(t, {}, [CHANGES]);
  const { seen } = await listen(t, bench, await bench.token());
  assert.equal(seen.status, 200);
  const before = Date.now();
  await bench.router.close();
  assert.ok(Date.now() - before < 4000, `${Date.now() - before} ms`);
  await eventually('it has ended', () => seen.hasEnded);
});

test('a message of an extension needs the scopes that the extension names', async (t) => {
  const bench = await startMcpHttp(t, {}, [CHANGES]);
  const { seen } = await listen(t, bench, await bench.token({ scope: 'alarms:write' }));
  assert.equal(seen.status, 403);
});
