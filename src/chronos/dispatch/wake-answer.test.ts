import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Pool } from 'undici';
import { errorEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { DEFERRED_UNTIL_HEADER } from '../../wire/wake.ts';
import { wakeAnswer } from './http-waker.ts';
import type { Deferral, WakeOutcome } from './waker.ts';

test('a wake that is aborted while it waits for a connection has failed, and is not sent later', async (t) => {
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
    let answer!: ReturnType<typeof wakeAnswer>;
    const result = new Promise<WakeOutcome>((settle) => {
      answer = wakeAnswer(url, settle, () => {});
      pool.dispatch({ method: 'POST', path: '/', body }, answer);
    });
    return { answer, result };
  };
  const arrival = () =>
    new Promise<void>((resolve) => {
      arrived = resolve;
    });

  const firstArrives = arrival();
  const first = send('first');
  await firstArrives;
  const second = send('second');
  second.answer.abort(new Error('it took too long'));
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

test('a 429 with an instant is a deferral with its reason; without one it is a refusal', async (t) => {
  const answers: [status: number, header: string | undefined, body: string][] = [];
  const server = createServer((_, response) => {
    const [status, header, body] = answers.shift()!;
    response.writeHead(status, header === undefined ? {} : { [DEFERRED_UNTIL_HEADER]: header }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pool = new Pool(url, { connections: 1 });
  t.after(async () => {
    await pool.destroy();
    server.close();
  });
  const ask = (status: number, header: string | undefined, body: string) => {
    answers.push([status, header, body]);
    return new Promise<WakeOutcome>((settle) => {
      pool.dispatch(
        { method: 'POST', path: '/', body: '' },
        wakeAnswer(url, settle, () => {}),
      );
    });
  };
  const until = '2026-06-15T07:00:00.250Z';
  const body = errorEnvelope(new ReveilleError('rate_limited', 'held back: quiet hours \0 until 07:00'));
  assert.deepEqual(await ask(429, until, body), {
    outcome: 'held',
    until: Date.parse(until),
    reason: 'held back: quiet hours \u{fffd} until 07:00',
  });
  const garbage = (await ask(429, until, `no envelope ${'x'.repeat(5000)}`)) as Deferral;
  assert.deepEqual([garbage.outcome, garbage.reason.length], ['held', 300]);
  for (const [status, header] of [
    [429, undefined],
    [429, 'tomorrow'],
    [429, '2026-02-30T00:00:00Z'],
    [503, until],
    [410, until],
  ] as const)
    assert.equal((await ask(status, header, body)).outcome, 'failed', `${status} ${header}`);
  assert.equal((await ask(202, until, '')).outcome, 'delivered');
});
