import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { Agent } from 'undici';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { below, exchange, openStream } from './exchange.ts';
import { plainTransport, type Transport } from './plain-transport.ts';

/** A TCP server that records the received text and calls `onData` for each connection. */
async function startTcp(t: TestContext, onData: (socket: Socket, text: string) => void, plain = false) {
  let received = '';
  const awaited: { bodies: number; resolve: () => void }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk;
      onData(socket, received);
      for (const { bodies, resolve } of awaited) if (received.split('hello').length > bodies) resolve();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const agent = plain ? undefined : new Agent({ connections: 1 });
  t.after(async () => {
    await agent?.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport: Transport = agent ?? plainTransport;
  const post = (signal = new AbortController().signal, maxBytes = 1000) =>
    exchange(transport, { method: 'POST', url: below(url, '/chat'), body: 'hello', maxBytes, signal });
  /** Resolves after `bodies` request bodies have arrived. */
  const arrival = (bodies = 1) => new Promise<void>((resolve) => awaited.push({ bodies, resolve }));
  return { server, url, transport, post, arrival, received: () => received };
}

for (const plain of [false, true])
  describe(`an exchange over ${plain ? 'the plain transport' : 'an agent'}`, () => {
    test('to a port without a listener is unsent', async (t) => {
      const { server, post } = await startTcp(t, () => {}, plain);
      await new Promise((resolve) => server.close(resolve));
      assert.equal((await post()).result, 'unsent');
    });

    test('whose connection breaks after the request is unknown', async (t) => {
      const { post } = await startTcp(t, (socket) => socket.destroy(), plain);
      assert.equal((await post()).result, 'unknown');
    });

    test('that is aborted while it waits for an answer is unknown', async (t) => {
      const { post, arrival } = await startTcp(t, () => {}, plain);
      const abort = new AbortController();
      const there = arrival();
      const answer = post(abort.signal);
      await there;
      abort.abort(new Error('too long'));
      const outcome = await answer;
      assert.equal(outcome.result, 'unknown');
      assert.equal(outcome.result === 'unknown' && outcome.error.message, 'too long');
    });

    test('whose answer breaks off after the status is answered', async (t) => {
      const { post } = await startTcp(
        t,
        (socket) => {
          socket.end('HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\npart');
        },
        plain,
      );
      const outcome = await post();
      assert.equal(outcome.result, 'answered');
      assert.deepEqual(outcome.result === 'answered' && [outcome.status, outcome.body.toString(), outcome.truncated], [
        202,
        'part',
        true,
      ]);
    });

    test('with garbage for an answer is unknown', async (t) => {
      const { post } = await startTcp(t, (socket) => socket.end('SSH-2.0-OpenSSH\r\n'), plain);
      assert.equal((await post()).result, 'unknown');
    });

    test('whose time runs out is unknown, and says how long it took', async (t) => {
      // The time runs out after the request has arrived. Before that, the request would be unsent.
      const clock = new ManualClock();
      const { url, transport } = await startTcp(t, () => clock.advance(50), plain);
      const limit = { clock, ms: 50 };
      const outcome = await exchange(transport, { method: 'GET', url: below(url, '/'), maxBytes: 10, limit });
      assert.deepEqual(outcome.result === 'unknown' && outcome.error.message, 'no answer within 50 ms');
    });

    test('keeps at most maxBytes of an answer', async (t) => {
      const { post } = await startTcp(t, (socket) => socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(5000)}`), plain);
      const outcome = await post(undefined, 1000);
      assert.deepEqual(outcome.result === 'answered' && [outcome.body.length, outcome.truncated], [1000, true]);
    });
  });

test('an exchange that is aborted while it waits for a connection is unsent, and never sent later', async (t) => {
  let current: Socket | undefined;
  const { post, arrival } = await startTcp(t, (socket) => {
    current = socket;
  });
  const first = arrival();
  const hanging = post();
  await first;
  const abort = new AbortController();
  const queued = post(abort.signal);
  abort.abort(new Error('too long'));
  assert.equal((await queued).result, 'unsent');
  current?.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  assert.equal((await hanging).result, 'answered');
  const second = arrival(2);
  const last = post();
  await second;
  current?.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  assert.equal((await last).result, 'answered');
});

test('an event stream stays open until its signal aborts; any other answer is refused', async (t) => {
  const answers = ['200 OK\r\ncontent-type: text/event-stream', '200 OK', '404 Not Found'];
  const { url } = await startTcp(t, (socket) => socket.write(`HTTP/1.1 ${answers.shift()}\r\n\r\nevent: x\n\n`), true);
  const over = new AbortController();
  const open = () => openStream(below(url, '/events'), { headers: {}, signal: over.signal });
  const reader = (await open()).getReader();
  assert.equal(Buffer.from((await reader.read()).value!).toString(), 'event: x\n\n');
  await assert.rejects(open(), /answered 200 instead of an event stream/);
  await assert.rejects(open(), /answered 404 instead of an event stream/);
  over.abort(new Error('seen enough'));
  await assert.rejects(reader.read(), /seen enough/);
  await assert.rejects(open(), /seen enough/);
});

test('a broken keep-alive connection is replaced for idempotent methods only', async (t) => {
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok';
  const seen = new Map<Socket, number>();
  const { url } = await startTcp(
    t,
    (socket) => {
      const count = (seen.get(socket) ?? 0) + 1;
      seen.set(socket, count);
      if (count === 1) socket.write(OK);
      else socket.resetAndDestroy();
    },
    true,
  );
  const send = (method: 'GET' | 'POST') => exchange(plainTransport, { method, url: below(url, '/'), maxBytes: 1000 });
  assert.equal((await send('GET')).result, 'answered');
  assert.equal((await send('GET')).result, 'answered');
  assert.deepEqual([...seen.values()], [2, 1]);
  // The server may have received the POST, so it is not repeated.
  assert.equal((await send('POST')).result, 'answered');
  assert.equal((await send('POST')).result, 'unknown');
});
