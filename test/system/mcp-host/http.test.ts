import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { reference, startPool, textOf, type WrittenServer } from './bench.ts';
import { type HttpServer, startHostileHttp, startTameHttp } from './http-servers.ts';

const over = ({ url }: HttpServer, more: object = {}): WrittenServer => ({
  alias: 'web',
  transport: 'http',
  url,
  ...more,
});

describe('a server over HTTP', () => {
  for (const legacy of ['stateless', 'reject'] as const) {
    const era = legacy === 'reject' ? 'the 2026 revision only' : 'both revisions';
    test(`that speaks ${era} is used like any other`, async (t) => {
      const pool = await startPool(t, [over(await startTameHttp(t, { legacy }))]);
      assert.deepEqual(pool.warnings(), []);
      assert.equal(pool.tools()[0]!.uri, 'matrix://tool/mcp/web/draw@1.2.3');
      assert.equal(textOf(await pool.call('web', 'echo', { text: 'hi' })), 'hi');
      assert.deepEqual((await pool.call('web', 'draw', {})).structuredContent, { width: 1 });
      assert.equal((await pool.call('web', 'fail', {})).isError, true);
    });
  }

  test('gets its headers, and no error contains them', async (t) => {
    const seen: IncomingMessage[] = [];
    const server = await startTameHttp(t, { seen });
    const variables = { WEB_TOKEN: 'web-token-of-the-tests' };
    const headers = { Authorization: `Bearer ${reference('WEB_TOKEN')}` };
    await startPool(t, [over(server, { headers })], { variables });
    assert.ok(seen.length > 0);
    for (const request of seen) assert.equal(request.headers.authorization, 'Bearer web-token-of-the-tests');
  });

  test('that is missing is a warning, and is used when it comes', async (t) => {
    const server = await startTameHttp(t, { port: await reservePort() });
    await server.stop();
    const pool = await startPool(t, [over(server)]);
    assert.match(pool.warnings().join(), /server "web" did not start: .*ECONNREFUSED/);
    await startTameHttp(t, { port: server.port });
    await eventually('it exists', () => pool.tools().length > 0);
    assert.deepEqual(pool.warnings(), []);
  });

  test('that disconnects is detected, and used again when it is back', async (t) => {
    const server = await startTameHttp(t, { port: await reservePort() });
    const pool = await startPool(t, [over(server)], { healthIntervalMs: 50 });
    await server.stop();
    await eventually('it is detected', () => pool.servers()[0]!.state === 'down');
    await assert.rejects(pool.call('web', 'echo', { text: '' }), { reason: 'connection', mayHaveRun: false });
    await startTameHttp(t, { port: server.port });
    await eventually('it answers again', () => pool.servers()[0]!.state === 'ready');
    assert.equal(textOf(await pool.call('web', 'echo', { text: 'hi' })), 'hi');
  });

  test('that refuses a call has not run it; one that breaks down may have', async (t) => {
    for (const [status, mayHaveRun] of [
      [403, false],
      [408, true],
      [503, true],
    ] as const) {
      const server = await startHostileHttp(t, (response) => response.writeHead(status).end('no'));
      const pool = await startPool(t, [over(server)]);
      await assert.rejects(pool.call('web', 'work', {}), {
        reason: 'connection',
        mayHaveRun,
        message: new RegExp(`${status}`),
      });
    }
  });

  test('that dies during an answer fails the call long before its timeout', async (t) => {
    const server: HttpServer = await startHostileHttp(t, (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': still there\n\n', () => void server.stop());
    });
    const pool = await startPool(t, [over(server)], { callTimeoutMs: 3_600_000 });
    await assert.rejects(pool.call('web', 'work', {}), { reason: 'connection', mayHaveRun: true });
  });

  test('that sends too much is disconnected', async (t) => {
    for (const type of ['application/json', 'text/event-stream']) {
      const server = await startHostileHttp(t, (response) => {
        response.writeHead(200, { 'content-type': type });
        const flood = () => {
          while (!response.destroyed && response.write('data: xxxxxxxxxxxxxxx'.repeat(4096)));
          if (!response.destroyed) response.once('drain', flood);
        };
        flood();
      });
      const pool = await startPool(t, [over(server)]);
      await assert.rejects(pool.call('web', 'work', {}), { reason: 'connection', message: /more than \d+ bytes/ });
    }
  });

  test('is not followed to another origin', async (t) => {
    const foreignRequests: IncomingMessage[] = [];
    const foreignServer = await startTameHttp(t, { seen: foreignRequests });
    const server = await startHostileHttp(t, (response) =>
      response.writeHead(307, { location: foreignServer.url }).end(),
    );
    const pool = await startPool(t, [over(server)]);
    await assert.rejects(pool.call('web', 'work', {}), { reason: 'connection' });
    assert.equal(foreignRequests.length, 0);
  });

  test('that has forgotten the session gets a new connection', async (t) => {
    let calls = 0;
    const server = await startHostileHttp(t, (response, id) => {
      if (++calls === 1) return void response.writeHead(404).end();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } }));
    });
    const pool = await startPool(t, [over(server)]);
    await assert.rejects(pool.call('web', 'work', {}), { mayHaveRun: false, retryable: true });
    await eventually('it answers again', () => pool.servers()[0]!.state === 'ready' && pool.servers()[0]!.restarts > 0);
    assert.equal(textOf(await pool.call('web', 'work', {})), 'done');
  });
});
