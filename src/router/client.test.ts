import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../kit/clock/clock.ts';
import { errorEnvelope, okEnvelope } from '../wire/envelope.ts';
import { ReveilleError } from '../wire/errors.ts';
import { routerKeys } from './client.ts';

const KEY = 'ab'.repeat(32);

async function askOf(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const wakeUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/internal/wake`;
  return routerKeys({ wakeUrl, token: 'the wake token', clock: systemClock });
}

const unavailable = (words: RegExp) => (thrown: unknown) =>
  thrown instanceof ReveilleError && thrown.code === 'unavailable' && thrown.retryable && words.test(thrown.message);

test('the keys are asked of the router that wakes are posted to, under the wake token', async (t) => {
  let seen: unknown[] = [];
  const ask = await askOf(t, (request, response) => {
    seen = [request.method, request.url, request.headers.authorization];
    response.end(okEnvelope({ keys: [KEY] }));
  });
  assert.deepEqual(await ask('a.da'), [KEY]);
  assert.deepEqual(seen, ['GET', '/internal/receipt-keys/a.da', 'Bearer the wake token']);
});

test('a user without a machine has none', async (t) => {
  const ask = await askOf(t, (_, response) => {
    response.writeHead(404).end(errorEnvelope(new ReveilleError('not_found', 'there is no machine for ada')));
  });
  assert.equal(await ask('ada'), undefined);
});

test('every other answer, and none, means that nobody can tell at present', async (t) => {
  const failure = (error: ReveilleError) => (_: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(error.status).end(errorEnvelope(error));
  const cases: [answer: (request: IncomingMessage, response: ServerResponse) => void, words: RegExp][] = [
    [failure(new ReveilleError('unauthorized', 'no')), /CHRONOS_WAKE_TOKEN/],
    [failure(new ReveilleError('internal', 'broken')), /broken/],
    [failure(new ReveilleError('not_found', 'GET /internal/receipt-keys/ada is not a route of router')), /not a route/],
    [(_, response) => void response.end('<html>'), /not an envelope/],
    [(_, response) => void response.end(okEnvelope({ keys: ['short'] })), /the same version/],
    [(_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), /302/],
    [(request) => void request.socket.destroy(), /does not answer/],
  ];
  for (const [answer, words] of cases) await assert.rejects((await askOf(t, answer))('ada'), unavailable(words));
});
