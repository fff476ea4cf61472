import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Pool } from 'undici';
import { WakeExchange } from './wake-exchange.ts';
import type { WakeResult } from './waker.ts';

test('a wake that is abandoned while it waits for a connection failed, and is not sent later', async (t) => {
  const bodies: string[] = [];
  const open: ServerResponse[] = [];
  let arrived = () => {};
  const server = createServer(async (request, response) => {
    bodies.push(await text(request));
    open.push(response);
    arrived();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pool = new Pool(url, { connections: 1, pipelining: 1 });
  t.after(async () => {
    await pool.destroy();
    server.closeAllConnections();
    server.close();
  });
  const send = (body: string) => {
    let exchange!: WakeExchange;
    const result = new Promise<WakeResult>((settle) => {
      exchange = new WakeExchange(url, settle, () => {});
      pool.dispatch({ method: 'POST', path: '/', body }, exchange);
    });
    return { exchange, result };
  };
  const arrival = () =>
    new Promise<void>((resolve) => {
      arrived = resolve;
    });

  const firstArrives = arrival();
  const first = send('first');
  await firstArrives;
  const second = send('second');
  second.exchange.abandon(new Error('it took too long'));
  assert.deepEqual(await second.result, {
    outcome: 'failed',
    httpStatus: null,
    error: `the router at ${url} could not be reached (it took too long)`,
    final: false,
  });

  const third = send('third');
  const thirdArrives = arrival();
  open[0]!.end();
  assert.equal((await first.result).outcome, 'delivered');
  await thirdArrives;
  open[1]!.end();
  assert.equal((await third.result).outcome, 'delivered');
  assert.deepEqual(bodies, ['first', 'third']);
});
