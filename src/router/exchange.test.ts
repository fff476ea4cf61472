import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { Agent } from 'undici';
import { below, exchange } from './exchange.ts';
import { atEnd, eventually } from './testing/bench.ts';

/** A TCP server that keeps what it receives and does as told with each connection. */
async function startTcp(t: TestContext, onData: (socket: Socket, text: string) => void) {
  let received = '';
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk;
      onData(socket, received);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const agent = new Agent({ connections: 1 });
  atEnd(t, async () => {
    await agent.destroy();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const post = (signal = new AbortController().signal, maxBytes = 1000) =>
    exchange(agent, { method: 'POST', url: below(url, '/chat'), headers: {}, body: 'hello', maxBytes, signal });
  return { server, post, received: () => received };
}

describe('an exchange', () => {
  test('that nobody listens to is unsent', async (t) => {
    const { server, post } = await startTcp(t, () => {});
    await new Promise((resolve) => server.close(resolve));
    assert.equal((await post()).result, 'unsent');
  });

  test('whose connection breaks after the request is unknown', async (t) => {
    const { post } = await startTcp(t, (socket) => socket.destroy());
    assert.equal((await post()).result, 'unknown');
  });

  test('that is aborted while it waits for an answer is unknown', async (t) => {
    const { post, received } = await startTcp(t, () => {});
    const abort = new AbortController();
    const answer = post(abort.signal);
    await eventually('the request is there', () => received().includes('hello'));
    abort.abort(new Error('too long'));
    const outcome = await answer;
    assert.equal(outcome.result, 'unknown');
    assert.equal(outcome.result === 'unknown' && outcome.error.message, 'too long');
  });

  test('that is aborted while it waits for a connection is unsent, and never sent later', async (t) => {
    let current: Socket | undefined;
    const { post, received } = await startTcp(t, (socket) => {
      current = socket;
    });
    const hanging = post();
    await eventually('the first is there', () => received().includes('hello'));
    const abort = new AbortController();
    const queued = post(abort.signal);
    abort.abort(new Error('too long'));
    assert.equal((await queued).result, 'unsent');
    current?.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    assert.equal((await hanging).result, 'answered');
    const last = post();
    await eventually('the last is there', () => received().split('hello').length === 3);
    current?.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    assert.equal((await last).result, 'answered');
  });

  test('whose answer breaks off after the status is answered', async (t) => {
    const { post } = await startTcp(t, (socket) => {
      socket.end('HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\npart');
    });
    const outcome = await post();
    assert.equal(outcome.result, 'answered');
    assert.deepEqual(outcome.result === 'answered' && [outcome.status, outcome.body.toString(), outcome.truncated], [
      202,
      'part',
      true,
    ]);
  });

  test('with garbage for an answer is unknown', async (t) => {
    const { post } = await startTcp(t, (socket) => socket.end('SSH-2.0-OpenSSH\r\n'));
    assert.equal((await post()).result, 'unknown');
  });
});
