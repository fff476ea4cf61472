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

async function readKeysOf(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const wakeUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/internal/wake`;
  return routerKeys({ wakeUrl, token: 'the wake token', clock: systemClock });
}

const unavailable = (pattern: RegExp) => (thrown: unknown) =>
  thrown instanceof ReveilleError && thrown.code === 'unavailable' && thrown.retryable && pattern.test(thrown.message);

test('the keys are requested from the router that receives wakes, with the wake token', async (t) => {
  let seen: unknown[] = [];
  const readKeys = await readKeysOf(t, (request, response) => {
    seen = [request.method, request.url, request.headers.authorization];
    response.end(okEnvelope({ keys: [KEY] }));
  });
  assert.deepEqual(await readKeys('a.da'), [KEY]);
  assert.deepEqual(seen, ['GET', '/internal/receipt-keys/a.da', 'Bearer the wake token']);
});

test('a user without a machine has no keys', async (t) => {
  const readKeys = await readKeysOf(t, (_, response) => {
    response.writeHead(404).end(errorEnvelope(new ReveilleError('not_found', 'there is no machine for ada')));
  });
  assert.equal(await readKeys('ada'), undefined);
});

test('every other answer, and no answer, means that the keys are unavailable now', async (t) => {
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
  for (const [answer, pattern] of cases)
    await assert.rejects((await readKeysOf(t, answer))('ada'), unavailable(pattern));
});
