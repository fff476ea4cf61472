import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { LinkMode } from './link-mode.ts';
import { TcpProxy } from './tcp-proxy.ts';

/** One end of a connection, with its received text. */
class End {
  readonly socket: Socket;
  heard = '';
  error: NodeJS.ErrnoException | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.heard += text;
    });
    socket.on('error', (error) => {
      this.error = error;
    });
  }

  say(text: string): void {
    this.socket.write(text);
  }

  async hears(text: string): Promise<void> {
    while (this.heard !== text) {
      assert.ok(text.startsWith(this.heard), `heard ${JSON.stringify(this.heard)}, not ${JSON.stringify(text)}`);
      await once(this.socket, 'data');
    }
  }

  async ends(): Promise<void> {
    if (!this.socket.readableEnded) await once(this.socket, 'end');
  }

  async closes(): Promise<void> {
    if (!this.socket.closed) await new Promise((resolve) => this.socket.once('close', resolve));
  }
}

type TestProxy = {
  proxy: TcpProxy;
  /** Connects through the proxy; returns both ends. */
  join: () => Promise<{ client: End; server: End }>;
  /** Connects to the proxy, with or without a server behind it. */
  knock: () => End;
};

async function open(t: TestContext): Promise<TestProxy> {
  const arrivals: End[] = [];
  const listener = createServer({ allowHalfOpen: true }, (socket) => arrivals.push(new End(socket)));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  assert.ok(address !== null && typeof address === 'object');
  const proxy = await TcpProxy.open(address.port);
  const ends: End[] = [];
  t.after(async () => {
    for (const end of [...ends, ...arrivals]) end.socket.destroy();
    await proxy.close();
    await new Promise((resolve) => listener.close(resolve));
  });
  const connectToProxy = () => {
    const client = new End(connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true }));
    ends.push(client);
    return client;
  };
  const join = async () => {
    const arrival = once(listener, 'connection');
    const client = connectToProxy();
    await arrival;
    const server = arrivals.at(-1);
    assert.ok(server);
    return { client, server };
  };
  return { proxy, join, knock: connectToProxy };
}

/** Resolves when the proxy has dropped so many bytes in total. */
async function lost(proxy: TcpProxy, bytes: number): Promise<void> {
  while (proxy.lostBytes < bytes) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(proxy.lostBytes, bytes);
}

async function connectionsAre(proxy: TcpProxy, count: number): Promise<void> {
  while (proxy.connections !== count) await new Promise((resolve) => setImmediate(resolve));
}

test('a passing link carries both directions, closing included, and forgets the connection', async (t) => {
  const { proxy, join } = await open(t);
  const { client, server } = await join();
  client.say('ping');
  await server.hears('ping');
  server.say('pong');
  await client.hears('pong');
  client.socket.end('bye');
  await server.hears('pingbye');
  await server.ends();
  server.socket.end('!');
  await client.hears('pong!');
  await client.ends();
  await connectionsAre(proxy, 0);
  assert.equal(proxy.lostBytes, 0);
});

test('a large amount of data passes complete although the reader is slow', async (t) => {
  const { join } = await open(t);
  const { client, server } = await join();
  server.socket.pause();
  const text = 'x'.repeat(8_000_000);
  client.say(text);
  client.socket.end();
  await new Promise((resolve) => setImmediate(resolve));
  server.socket.resume();
  await server.ends();
  assert.equal(server.heard.length, text.length);
});

test('a link with a delay keeps the order, and delayed data is not overtaken when the delay ends', async (t) => {
  const { proxy, join } = await open(t);
  const { client, server } = await join();
  const began = performance.now();
  proxy.set({ kind: 'delay', ms: 200 });
  client.say('one ');
  await new Promise((resolve) => setTimeout(resolve, 20));
  client.say('two ');
  await new Promise((resolve) => setTimeout(resolve, 20));
  proxy.set({ kind: 'pass' });
  client.say('three');
  await server.hears('one two three');
  assert.ok(performance.now() - began >= 195, `it took ${performance.now() - began} ms`);
});

test('a stalled link delays all data, closing included, and loses nothing', async (t) => {
  const { proxy, join } = await open(t);
  const { client, server } = await join();
  proxy.set({ kind: 'stall' });
  client.socket.end('patience');
  server.say('is rewarded');
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([server.heard, client.heard, server.socket.readableEnded], ['', '', false]);
  proxy.set({ kind: 'pass' });
  await Promise.all([server.hears('patience'), client.hears('is rewarded'), server.ends()]);
  server.socket.end();
  await client.closes();
  await connectionsAre(proxy, 0);
  assert.equal(proxy.lostBytes, 0);
});

test('a dropping link leaves connections open; they stay silent when it passes again, and new ones work', async (t) => {
  const { proxy, join, knock: connectToProxy } = await open(t);
  const { client, server } = await join();
  proxy.set({ kind: 'drop' });
  client.say('lost');
  server.say('gone');
  await lost(proxy, 8);
  const nowhere = connectToProxy();
  nowhere.say('anybody?');
  await lost(proxy, 16);

  proxy.set({ kind: 'pass' });
  client.say('again');
  await lost(proxy, 21);
  const fresh = await join();
  fresh.client.say('hello');
  await fresh.server.hears('hello');
  assert.deepEqual([client.heard, server.heard, nowhere.heard], ['', '', '']);
  assert.deepEqual([client.socket.closed, server.socket.closed, nowhere.socket.closed], [false, false, false]);
});

test('an end that closes while the link drops is noticed when the link passes again', async (t) => {
  for (const closing of ['client', 'server'] as const) {
    for (const how of ['end', 'resetAndDestroy'] as const) {
      const { proxy, join } = await open(t);
      const ends = await join();
      const stays = closing === 'client' ? ends.server : ends.client;
      proxy.set({ kind: 'drop' });
      ends[closing].say('last words');
      await lost(proxy, 10);
      ends[closing].socket[how]();
      // A pause without data: the other end must receive nothing.
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(stays.socket.closed || stays.socket.readableEnded, false, `${closing} ${how}`);
      proxy.set({ kind: 'pass' });
      await stays.closes();
      assert.equal(stays.error?.code, 'ECONNRESET');
      await connectionsAre(proxy, 0);
    }
  }
});

test("when one end closes a silent connection after the link's repair, the other end is closed too", async (t) => {
  const { proxy, join } = await open(t);
  const { client, server } = await join();
  proxy.set({ kind: 'drop' });
  client.say('lost');
  await lost(proxy, 4);
  proxy.set({ kind: 'pass' });
  client.socket.destroy();
  await server.closes();
  await connectionsAre(proxy, 0);
});

test('a half-open link carries one direction only', async (t) => {
  const directions: [LinkMode, heardByServer: string, heardByClient: string][] = [
    [{ kind: 'half-open', dead: 'there' }, '', 'answer'],
    [{ kind: 'half-open', dead: 'back' }, 'request', ''],
  ];
  for (const [mode, serverText, clientText] of directions) {
    const { proxy, join } = await open(t);
    const { client, server } = await join();
    proxy.set(mode);
    client.say('request');
    server.say('answer');
    await Promise.all([server.hears(serverText), client.hears(clientText)]);
    await lost(proxy, 'requestanswer'.length - serverText.length - clientText.length);
    assert.deepEqual([client.socket.closed, server.socket.closed], [false, false]);
  }
});

test("when the peer has disappeared without notice, only the server's connection is reset", async (t) => {
  const { proxy, join, knock: connectToProxy } = await open(t);
  const { client, server } = await join();
  proxy.set({ kind: 'half-open', dead: 'peer' });
  await server.ends();
  client.say('are you there?');
  await lost(proxy, 14);
  const another = connectToProxy();
  another.say('hello');
  await lost(proxy, 19);
  assert.deepEqual([client.socket.closed, client.socket.readableEnded, another.socket.closed], [false, false, false]);

  proxy.set({ kind: 'pass' });
  await client.closes();
  assert.equal(client.error?.code, 'ECONNRESET');
});

test('a resetting link resets open and new connections', async (t) => {
  const { proxy, join, knock: connectToProxy } = await open(t);
  const { client, server } = await join();
  proxy.set({ kind: 'reset' });
  await Promise.all([client.closes(), server.closes()]);
  assert.deepEqual([client.error?.code, server.error?.code], ['ECONNRESET', 'ECONNRESET']);
  const another = connectToProxy();
  await another.closes();
  proxy.set({ kind: 'pass' });
  const fresh = await join();
  fresh.client.say('hello');
  await fresh.server.hears('hello');
});

test('a connection in its orderly close is reset like any other', async (t) => {
  const { proxy, join } = await open(t);
  const ends = [await join(), await join(), await join()];
  for (const { client, server } of ends) {
    client.socket.end('bye');
    await server.ends();
  }
  // The ends of the other sides are in transit through the proxy when it resets them.
  for (const { server } of ends) server.socket.end('bye');
  await Promise.all(ends.map(({ client }) => client.hears('bye')));
  proxy.set({ kind: 'reset' });
  await Promise.all(ends.flatMap(({ client, server }) => [client.closes(), server.closes()]));
  await connectionsAre(proxy, 0);
});

test("without a listener, the client's connection is reset", async (t) => {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  assert.ok(address !== null && typeof address === 'object');
  await new Promise((resolve) => listener.close(resolve));
  const proxy = await TcpProxy.open(address.port);
  t.after(() => proxy.close());
  const client = new End(connect(proxy.port, '127.0.0.1'));
  await client.closes();
  await connectionsAre(proxy, 0);
});
