import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '../clock/clock.ts';
import { silentLogger } from '../log/log.ts';
import { addressOf, type ConnectionFigures, trackConnections } from './connections.ts';
import { sendOk, serve } from './handlers.ts';
import { type HttpLimits, type RunningServer, startServer } from './server.ts';

const LARGE = 'x'.repeat(32 * 1024 * 1024);

async function started(t: TestContext, limits: Partial<HttpLimits> = {}) {
  const entered: (() => void)[] = [];
  const server = await startServer({
    name: 'testd',
    version: '0',
    host: '127.0.0.1',
    port: 0,
    log: silentLogger,
    clock: systemClock,
    drainMs: 50,
    limits: { lingerMs: 50, ...limits },
    routes(app) {
      app.get('/large', (c) => c.body(LARGE));
      const about = { summary: '', credential: 'none', data: z.unknown() } as const;
      serve(app, { method: 'post', path: '/size', ...about }, (c) => sendOk(c, {}));
      app.get('/slow', () => {
        entered.shift()?.();
        return new Promise<Response>(() => {});
      });
    },
  });
  t.after(() => server.close());
  /** Resolves when the next request for `/slow` has reached its handler. */
  const nextSlow = () => new Promise<void>((resolve) => entered.push(resolve));
  return { server, nextSlow };
}

/** A peer that never closes its end by itself. */
async function peer(t: TestContext, { port }: Pick<RunningServer, 'port'>, bytes = '') {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  const gone = new Promise<void>((resolve) => socket.once('end', resolve).once('close', () => resolve()));
  await once(socket, 'connect');
  if (bytes) socket.write(bytes);
  return Object.assign(socket, { gone, received: () => text });
}

const until = async (figures: () => ConnectionFigures, isSo: (now: ConnectionFigures) => boolean) => {
  while (!isSo(figures())) await pause(10);
};

const answered = async (socket: Socket & { received: () => string }, wanted: string) => {
  while (!socket.received().includes(wanted)) await once(socket, 'data');
};

const GET = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
const SLOW = 'GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n';
const POST = 'POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';

test('a connection that the peer keeps half open is closed', async (t) => {
  const { server } = await started(t, { headersMs: 200, requestMs: 300, bodyBytes: 10 });
  const peers = await Promise.all([
    peer(t, server),
    peer(t, server, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: '),
    peer(t, server, `${POST}Content-Length: 9\r\n\r\n{`),
    peer(t, server, `${POST}Content-Length: 1000000\r\n\r\n{`),
    peer(t, server, `${POST}Transfer-Encoding: chunked\r\n\r\n20\r\n${'x'.repeat(32)}\r\n`),
    peer(t, server, 'no HTTP at all\r\n\r\n'),
    peer(t, server, GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')),
    peer(t, server, GET.replace('localhost', 'evil.test')),
  ]);
  const closed = await peer(t, server, GET);
  closed.end();
  const unheard = await peer(t, server, SLOW);
  unheard.end();
  await Promise.all(peers.slice(0, 7).map((socket) => socket.gone));
  await until(server.figures, ({ open }) => open <= 1);
  assert.ok(server.figures().closed.half_closed > 0);
  assert.equal(server.figures().closed.overdue > 0, true);
  // The request refused for its Host was otherwise valid, so its connection may be reused.
  assert.equal(server.figures().open, 1);
});

test('an answer that the client does not read is aborted', async (t) => {
  const { server } = await started(t, { stallMs: 200 });
  const socket = connect(server.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  socket.pause();
  socket.write('GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await until(server.figures, ({ open, closed }) => open === 0 && closed.not_reading === 1);
});

test('no limit on connections ends a long request', async (t) => {
  // Long enough that a busy computer reads the request in time, short beside the wait for the idle connection below.
  const short = 500;
  const limits = { stallMs: short, keepAliveMs: short, headersMs: short, requestMs: short };
  const { server, nextSlow } = await started(t, { ...limits, lingerMs: 20 });
  const entered = nextSlow();
  const waiting = await peer(t, server, SLOW);
  await entered;
  const idle = await peer(t, server, GET);
  await idle.gone;
  await until(server.figures, ({ open }) => open === 1);
  assert.equal(waiting.readableEnded, false);
});

test('a new connection evicts the least active one: half closed, silent, longest idle, slow body', async (t) => {
  const { server, nextSlow } = await started(t, { connections: 4 });
  const entered = nextSlow();
  const busy = await peer(t, server, SLOW);
  await entered;
  const body = await peer(t, server, `${POST}Content-Length: 9\r\n\r\n{`);
  const first = await peer(t, server, GET);
  await answered(first, '"ok":true');
  const second = await peer(t, server);
  await until(server.figures, ({ open }) => open === 4);
  // The silent one, then the idle ones with served requests, then the slow body.
  for (const victim of [second, first, body]) {
    const next = await peer(t, server, SLOW);
    await victim.gone;
    await until(server.figures, ({ open }) => open === 4);
    assert.equal(next.readableEnded, false);
  }
  assert.equal(server.figures().closed.evicted, 3);
  assert.equal(busy.readableEnded, false);
});

test('if every connection is busy, another one is refused, and the busy ones continue', async (t) => {
  const { server, nextSlow } = await started(t, { connections: 2 });
  const entered = [nextSlow(), nextSlow()];
  const busy = [await peer(t, server, SLOW), await peer(t, server, SLOW)];
  await Promise.all(entered);
  const refused = await peer(t, server, GET);
  await refused.gone;
  assert.equal(refused.received(), '');
  assert.equal(server.figures().closed.refused, 1);
  assert.deepEqual(
    busy.map((socket) => socket.readableEnded),
    [false, false],
  );
});

test('an address over its limit evicts its own connections', async (t) => {
  const bare = createServer();
  const limits = { connections: 10, connectionsPerAddress: 2, pipelined: 8, lingerMs: 50, stallMs: 1000 };
  const connections = trackConnections(bare, limits, () => false);
  bare.listen(0, '127.0.0.1');
  await once(bare, 'listening');
  t.after(() => {
    connections.destroyAll();
    bare.close();
  });
  const { port } = bare.address() as AddressInfo;
  const first = await peer(t, { port });
  await until(connections.figures, ({ open }) => open === 1);
  await peer(t, { port });
  await until(connections.figures, ({ open }) => open === 2);
  await peer(t, { port });
  await first.gone;
  await until(connections.figures, ({ closed }) => closed.evicted === 1);
  assert.equal(connections.figures().open, 2);
});

test('an IPv6 /64 network counts as one address', () => {
  const of = (remoteAddress: string) => addressOf({ remoteAddress } as Socket);
  assert.equal(of('::ffff:192.0.2.7'), '192.0.2.7');
  assert.equal(of('2001:db8:1:2:3:4:5:6'), of('2001:db8:1:2::9'));
  assert.notEqual(of('2001:db8:1:2::9'), of('2001:db8:1:3::9'));
  assert.equal(of('2001:db8::1'), of('2001:db8:0:0:ffff::'));
  assert.equal(of('::1'), '::1');
});

test('a connection with too many requests at once is closed', async (t) => {
  const { server } = await started(t, { pipelined: 8 });
  const socket = await peer(t, server, SLOW.repeat(9));
  await socket.gone;
  assert.equal(server.figures().closed.pipelining, 1);
});

test('a request with an Upgrade header is answered as an ordinary request', async (t) => {
  const { server } = await started(t);
  const upgrading = GET.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  const socket = await peer(t, server, upgrading);
  await answered(socket, '"ok":true');
  const tunnel = await peer(t, server, 'CONNECT evil.test:443 HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await tunnel.gone;
  await until(server.figures, ({ open }) => open === 1);
});
