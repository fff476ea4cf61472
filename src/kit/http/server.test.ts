import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { z } from 'zod';
import { eventually } from '../../../test/support/eventually.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Clock, systemClock } from '../clock/clock.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { silentLogger } from '../log/log.ts';
import { requireBearer } from './bearer.ts';
import { bodyBytes, readJson } from './body.ts';
import { sendOk, serve } from './handlers.ts';
import { type RunningServer, type ServerOptions, startServer } from './server.ts';

async function started(t: TestContext, options: Partial<ServerOptions> = {}): Promise<RunningServer> {
  const server = await startServer({
    name: 'testd',
    version: '1.2.3',
    host: '127.0.0.1',
    port: 0,
    routes(app) {
      const about = { summary: '', credential: 'none', data: z.unknown() } as const;
      const at = (method: 'post' | 'delete', path: `/${string}`) => ({ method, path, ...about });
      serve(app, at('post', '/echo'), async (c) => sendOk(c, await readJson(c, { raw: ['payload'] }), 201));
      serve(app, at('post', '/size'), (c) => sendOk(c, { bytes: bodyBytes(c).length }));
      serve(app, at('post', '/pause'), (c) => sendOk(c, { paused: true }));
      serve(app, at('delete', '/thing'), (c) => sendOk(c, {}));
    },
    log: silentLogger,
    clock: systemClock,
    drainMs: 2000,
    ...options,
  });
  t.after(() => server.close());
  return server;
}

type Answer = { status: number; headers: Record<string, string | string[] | undefined>; text: string };

/** Unlike `fetch`, this can set `Host`. */
function send(
  server: RunningServer,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer; agent?: Agent } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body, agent } = options;
    const request = httpRequest({ port: server.port, host: '127.0.0.1', path, method, headers, agent: agent ?? false });
    request.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    request.end(body);
  });
}

const post = (server: RunningServer, path: string, body: string | Buffer, type = 'application/json') =>
  send(server, path, { method: 'POST', headers: { 'content-type': type }, body });

function errorOf(answer: Answer): { code: string; message: string; retryable: boolean } {
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  const envelope = JSON.parse(answer.text);
  assert.equal(envelope.ok, false);
  return envelope.error;
}

async function rawSocket(
  t: TestContext,
  server: RunningServer,
): Promise<Socket & { received: () => string; gone: Promise<void> }> {
  const socket = connect(server.port, '127.0.0.1');
  t.after(() => socket.destroy());
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  await once(socket, 'connect');
  // Some of these tests provoke a reset while bytes are still being sent; `gone` settles in any case.
  socket.on('error', () => {});
  const gone = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  return Object.assign(socket, { received: () => text, gone });
}

/** Sends bytes and returns the received text once the server closes the connection. */
async function rawExchange(t: TestContext, server: RunningServer, bytes: string | Buffer): Promise<string> {
  const socket = await rawSocket(t, server);
  socket.write(bytes);
  await socket.gone;
  return socket.received();
}

test('name, health and readiness are answered in the envelope with fixed headers', async (t) => {
  const server = await started(t, { health: () => ({ busy: false, queued: 0 }) });
  const root = await send(server, '/');
  assert.equal(root.text, '{"ok":true,"data":{"name":"testd","version":"1.2.3"}}');
  assert.equal(root.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(root.headers['cache-control'], 'no-store');
  assert.equal(root.headers['x-content-type-options'], 'nosniff');
  assert.equal((await send(server, '/healthz')).text, '{"ok":true,"data":{"status":"ok","busy":false,"queued":0}}');
  assert.equal((await send(server, '/readyz')).status, 200);
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/);
});

test('readiness names every reason, and a check that throws is not ready', async (t) => {
  const reasons = ['the store is locked', 'the disk is full'];
  const notReady = await send(await started(t, { ready: async () => ({ ready: false, reasons }) }), '/readyz');
  assert.equal(notReady.status, 503);
  assert.equal(errorOf(notReady).message, 'testd is not ready: the store is locked; the disk is full');
  const throws = await started(t, {
    ready: () => {
      throw new ReveilleError('unavailable', 'no store');
    },
  });
  assert.equal((await send(throws, '/readyz')).status, 503);
});

test('loopback names, the bound host and configured hosts pass, on any port unless one is configured', async (t) => {
  const server = await started(t, { allowedHosts: ['Reveille.internal', 'exact.test:8443'] });
  const status = async (host: string) => (await send(server, '/healthz', { headers: { host } })).status;
  for (const host of [
    '127.0.0.1',
    'localhost:1',
    'LOCALHOST',
    '[::1]',
    '[::1]:80',
    'reveille.internal:9',
    'exact.test:8443',
  ]) {
    assert.equal(await status(host), 200, host);
  }
  for (const host of [
    'evil.test',
    'localhost.evil.test',
    '127.0.0.1.evil.test',
    'exact.test',
    'exact.test:1',
    '127.0.0.2',
    'a@b',
  ]) {
    const got = await status(host);
    assert.ok(got === 403 || got === 400, `${host}: ${got}`);
  }
  assert.equal(errorOf(await send(server, '/healthz', { headers: { host: 'evil.test' } })).code, 'forbidden');
  const twice = await rawExchange(
    t,
    server,
    'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\nConnection: close\r\n\r\n',
  );
  assert.match(twice, /^HTTP\/1\.1 40[03] /);
  assert.match(await rawExchange(t, server, 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n'), /^HTTP\/1\.1 400 /);
  const absolute = await rawExchange(
    t,
    server,
    'GET http://evil.test/healthz HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n',
  );
  assert.match(absolute, /^HTTP\/1\.1 403 /);
});

test('a request from a web page is refused unless its origin is listed exactly', async (t) => {
  const server = await started(t, { allowedOrigins: ['http://localhost:3000', 'null'] });
  const status = async (origin: string) => (await send(server, '/healthz', { headers: { origin } })).status;
  assert.equal(await status('http://localhost:3000'), 200);
  for (const origin of [
    'http://localhost:3001',
    'https://localhost:3000',
    'http://localhost:3000.evil.test',
    'null',
    '',
  ]) {
    assert.equal(await status(origin), 403, origin);
  }
});

test('a write with a body must be JSON; a write without a body needs no content type', async (t) => {
  const server = await started(t);
  for (const type of ['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset="utf-8"']) {
    assert.equal((await post(server, '/echo', '{}', type)).status, 201, type);
  }
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/jsonx',
  ]) {
    const answer = await post(server, '/echo', '{}', type);
    assert.equal(answer.status, 400, type);
    assert.ok(errorOf(answer).message.includes(JSON.stringify(type)), errorOf(answer).message);
  }
  const none = await send(server, '/echo', { method: 'POST', body: '{}' });
  assert.match(errorOf(none).message, /content-type must be application\/json in UTF-8 \(got nothing\)/);
  assert.equal((await send(server, '/pause', { method: 'POST' })).status, 200);
  assert.equal((await send(server, '/thing', { method: 'DELETE' })).status, 200);
  assert.equal(
    (await send(server, '/thing', { method: 'DELETE', headers: { 'content-length': '2' }, body: '{}' })).status,
    400,
  );
});

test('JSON keeps its digits, and a body that is not a JSON object is refused with the reason', async (t) => {
  const server = await started(t);
  const body = '{"payload":{"b":12345678901234567890,"1":1.0},"text":"Ünïcode \\u0000"}';
  assert.equal((await post(server, '/echo', body)).text, `{"ok":true,"data":${body}}`);
  const refused: [string | Buffer, RegExp][] = [
    ['', /got nothing/],
    ['[1]', /got an array/],
    ['{"a":', /must be a JSON object \(/],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /must be UTF-8/],
    ['\ufeff{}', /byte order mark/],
  ];
  for (const [wrong, message] of refused) {
    const error = errorOf(await post(server, '/echo', wrong));
    assert.equal(error.code, 'invalid_request');
    assert.match(error.message, message);
  }
});

test('a body over the limit gets 413, announced or streamed; a body at the limit passes', async (t) => {
  const server = await started(t);
  const limit = 256 * 1024;
  assert.equal((await post(server, '/size', Buffer.alloc(limit, 0x20))).text, `{"ok":true,"data":{"bytes":${limit}}}`);
  const announced = await rawExchange(
    t,
    server,
    `POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${limit + 1}\r\n\r\n`,
  );
  assert.match(announced, /^HTTP\/1\.1 413 /);
  assert.match(announced, /"code":"invalid_request","message":"the body must be at most 262144 bytes"/);
  // An endless chunked body: the answer must come while the sender is still sending.
  const socket = await rawSocket(t, server);
  socket.write(
    'POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`;
  const sendChunks = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', sendChunks);
  sendChunks();
  await socket.gone;
  assert.match(socket.received(), /^HTTP\/1\.1 413 /);
  assert.equal((await send(server, '/healthz')).status, 200);
});

const headOf = (bytes: number, token = '') =>
  `POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${token}Content-Length: ${bytes}\r\n\r\n`;

test('bodies of unproved senders have a budget: its oldest incomplete body is refused, and no other', async (t) => {
  const server = await started(t, { limits: { unprovedBytes: 100_000 } });
  const slow = await rawSocket(t, server);
  slow.write(headOf(200_000) + 'x'.repeat(45_000));
  await eventually('the first body is read', () => server.figures().unprovedBytes === 45_000);
  const event = await rawSocket(t, server);
  event.write(headOf(70_000) + 'x'.repeat(60_000));
  await slow.gone;
  assert.match(slow.received(), /^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n/i);
  event.write('x'.repeat(10_000));
  await eventually('the larger body that began later is answered', () => event.received().includes('{"bytes":70000}'));
  await eventually('answered bodies leave the budget', () => server.figures().unprovedBytes === 0);
});

test('a slow body of an unproved sender gets 408, and one behind a right token has the ordinary time', async (t) => {
  const clock = new ManualClock();
  const token = 'a-token-of-the-tests';
  const server = await started(t, {
    clock,
    limits: { unprovedMs: 5000 },
    routes(app) {
      const about = { summary: '', credential: 'none', data: z.unknown() } as const;
      serve(app, { method: 'post', path: '/size', ...about }, (c) => sendOk(c, { bytes: bodyBytes(c).length }));
      serve(
        app,
        { method: 'post', path: '/guarded', ...about },
        (c) => sendOk(c, { bytes: bodyBytes(c).length }),
        requireBearer(token),
      );
    },
  });
  const slow = await rawSocket(t, server);
  slow.write(`${headOf(10)}x`);
  const proved = await rawSocket(t, server);
  proved.write(`${headOf(10, `Authorization: Bearer ${token}\r\n`).replace('/size', '/guarded')}x`);
  await eventually('the slow body is read', () => server.figures().unprovedBytes === 1);
  await clock.advance(5001);
  await slow.gone;
  assert.match(slow.received(), /^HTTP\/1\.1 408 /);
  proved.write('x'.repeat(9));
  await eventually('the proved body is answered', () => proved.received().includes('{"bytes":10}'));
});

test('the server survives a body that ends early', async (t) => {
  const server = await started(t);
  const socket = await rawSocket(t, server);
  socket.write(
    'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a"',
  );
  socket.destroy();
  await socket.gone;
  assert.equal((await send(server, '/healthz')).status, 200);
});

test('unknown routes and wrong methods get not_found in the envelope', async (t) => {
  const server = await started(t);
  const unknown = await send(server, '/nowhere?secret=1');
  assert.equal(unknown.status, 404);
  assert.deepEqual(errorOf(unknown), {
    code: 'not_found',
    message: 'GET /nowhere is not a route of testd',
    retryable: false,
  });
  assert.equal((await send(server, '/echo', { method: 'PUT' })).status, 404);
  assert.equal((await send(server, '/echo', { method: 'OPTIONS' })).status, 404);
});

test('TRACE, CONNECT and unknown methods get 405 with Allow', async (t) => {
  const server = await started(t);
  const cases: readonly (readonly [method: string, path: string, allow: string])[] = [
    ...['TRACE', 'CONNECT', 'PROPFIND', 'SEARCH', 'BREW', 'get'].map((m) => [m, '/healthz', 'GET, HEAD'] as const),
    ...[['TRACE', '/echo?x=1', 'POST'] as const, ['PURGE', '/thing', 'DELETE'] as const],
    ['TRACE', '/nowhere', 'DELETE, GET, HEAD, POST'],
  ];
  for (const [method, path, allow] of cases) {
    const answer = await rawExchange(t, server, `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 405 Method Not Allowed\r\n/, method);
    // The parser does not keep the target of an unknown method.
    const isKnown = !['BREW', 'get'].includes(method);
    const allowed = /^allow: (.*)\r$/im.exec(answer)?.[1];
    assert.equal(allowed, isKnown ? allow : 'DELETE, GET, HEAD, POST', method);
    assert.match(answer, /"code":"invalid_request","message":"the method .* is not served here; use one of /);
  }
  assert.equal((await send(server, '/healthz')).status, 200);
});

test('a ReveilleError becomes its envelope; any other error becomes internal without its text and is logged', async (t) => {
  const logged: unknown[] = [];
  const log = Object.assign(Object.create(silentLogger), { error: (entry: unknown) => logged.push(entry) });
  const server = await started(t, {
    log,
    routes(app) {
      app.get('/busy', () => {
        throw new ReveilleError('unavailable', 'starting', { retryAfterSeconds: 1.2, status: 504 });
      });
      app.get('/boom', () => {
        throw new Error('SELECT secret FROM users', { cause: new Error('deeper') });
      });
      app.get('/string', () => Promise.reject('just text'));
    },
  });
  const busy = await send(server, '/busy');
  assert.equal(busy.status, 504);
  assert.equal(busy.headers['retry-after'], '2');
  const boom = await send(server, '/boom');
  assert.equal(boom.status, 500);
  assert.deepEqual(errorOf(boom), {
    code: 'internal',
    message: 'internal error; the log of the daemon has the details',
    retryable: true,
  });
  assert.equal((logged.at(-1) as { err: Error }).err.message, 'SELECT secret FROM users');
  assert.equal((await send(server, '/string')).status, 500);
});

test('bytes that are not HTTP get 400, the connection is closed, and the server continues', async (t) => {
  const server = await started(t);
  const garbage = [
    'hello\r\n\r\n',
    Buffer.from('160301020001000000', 'hex'),
    'GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: localhost\r\nX: \u0001\r\n\r\n',
    'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  ];
  for (const bytes of garbage) {
    const answer = await rawExchange(t, server, bytes);
    assert.match(answer, /^HTTP\/1\.1 4\d\d /, String(bytes).slice(0, 60));
    assert.match(answer, /"code":"invalid_request"/);
  }
  const targets = [
    '/%',
    '/%ff%fe',
    '//',
    '//evil.test/x',
    '/a?b=%zz',
    '*',
    '/\u00ff',
    'http://',
    'http://[',
    '/..%2f..',
  ];
  for (const target of targets) {
    const answer = await rawExchange(
      t,
      server,
      `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 4\d\d /, target);
    assert.match(answer, /\{"ok":false,"error":\{"code":"/, target);
  }
  assert.equal((await send(server, '/healthz')).status, 200);
});

test('slow headers and bodies get 408', async (t) => {
  const server = await started(t, { limits: { headersMs: 100, requestMs: 200 } });
  const slowHeaders = await rawExchange(t, server, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
  assert.match(slowHeaders, /^HTTP\/1\.1 408 .*"the request took too long to arrive; send it again","retryable":true/s);
  const slowBody = await rawExchange(
    t,
    server,
    'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  );
  assert.match(slowBody, /^(HTTP\/1\.1 4\d\d |$)/);
  assert.equal((await send(server, '/healthz')).status, 200);
});

test('the error for a taken port has the address and a remedy', async (t) => {
  const server = await started(t);
  await assert.rejects(started(t, { port: server.port }), {
    code: 'unavailable',
    message: `testd cannot listen on 127.0.0.1:${server.port}: another program listens there; stop it or choose another port`,
  });
  await assert.rejects(started(t, { host: '192.0.2.1' }), {
    code: 'unavailable',
    message: /cannot listen on 192\.0\.2\.1:0/,
  });
});

test('close waits for requests in flight, closes idle connections and refuses new ones', async (t) => {
  let entered = 0;
  const bothEntered = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  let late = 0;
  const server = await started(t, {
    routes(app) {
      app.get('/slow', async (c) => {
        if (++entered === 2) bothEntered.resolve();
        await finish.promise;
        return sendOk(c, { done: true });
      });
      app.get('/late', (c) => {
        late++;
        return sendOk(c, {});
      });
    },
  });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  await send(server, '/healthz', { agent });
  const silent = await rawSocket(t, server);
  const pipelining = await rawSocket(t, server);
  pipelining.write('GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const slow = send(server, '/slow', { agent });
  await bothEntered.promise;
  const closed = server.close();
  assert.equal(server.close(), closed);
  await silent.gone;
  await assert.rejects(send(server, '/healthz'), { code: 'ECONNREFUSED' });
  pipelining.write('GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n');
  finish.resolve();
  const answer = await slow;
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.connection, 'close');
  await closed;
  await pipelining.gone;
  assert.match(pipelining.received(), /^HTTP\/1\.1 200 .*"done":true/s);
  assert.equal(late, 0);
});

test('readiness is 503 if the drain begins during the request', async (t) => {
  const requested = Promise.withResolvers<void>();
  const report = Promise.withResolvers<{ ready: boolean }>();
  const server = await started(t, {
    ready() {
      requested.resolve();
      return report.promise;
    },
  });
  const answer = send(server, '/readyz');
  await requested.promise;
  const closed = server.close();
  report.resolve({ ready: true });
  assert.equal(errorOf(await answer).message, 'testd is not ready: it is shutting down');
  await closed;
});

test('an endless request is aborted at the end of the drain', async (t) => {
  const timers: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    after(_, callback) {
      timers.push(callback);
      return () => {};
    },
  };
  const entered = Promise.withResolvers<void>();
  const server = await started(t, {
    clock,
    routes(app) {
      app.get('/forever', () => {
        entered.resolve();
        return new Promise<Response>(() => {});
      });
    },
  });
  const cut = assert.rejects(send(server, '/forever'), { code: 'ECONNRESET' });
  await entered.promise;
  const closed = server.close();
  assert.equal(timers.length, 1);
  timers[0]!();
  await cut;
  await closed;
});

test('a server with byName listens on both loopback addresses, or reports that it cannot', async (t) => {
  const server = await started(t, { byName: true });
  assert.equal(server.localhost, `http://localhost:${server.port}`);
  for (const host of ['127.0.0.1', '[::1]', 'localhost'])
    assert.equal((await fetch(`http://${host}:${server.port}/healthz`)).status, 200, host);
  await assert.rejects(once(createServer().listen(server.port, '::1'), 'listening'), { code: 'EADDRINUSE' });
  await server.close();
  const other = createServer().listen(server.port, '::1');
  t.after(() => other.close());
  await once(other, 'listening');
  const late = await started(t, { byName: true, port: server.port });
  assert.equal(late.localhost, undefined, 'another program has the name');
  assert.equal((await started(t)).localhost, undefined, 'byName is not set');
});
