import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../clock/clock.ts';
import { silentLogger } from '../log/log.ts';
import { bearerMatches, requireBearer } from './bearer.ts';
import { sendOk } from './handlers.ts';
import { type ServerOptions, startServer } from './server.ts';

async function guarded(t: TestContext, options: Partial<ServerOptions>) {
  const server = await startServer({
    name: 'testd',
    version: '0',
    host: '127.0.0.1',
    port: 0,
    log: silentLogger,
    clock: systemClock,
    routes(app) {
      app.use('/thing', requireBearer('0123456789abcdef'));
      app.get('/thing', (c) => sendOk(c, {}));
    },
    ...options,
  });
  t.after(() => server.close());
  return server;
}

test('a bearer token matches only itself', () => {
  assert.ok(bearerMatches('Bearer secret', 'secret'));
  assert.ok(bearerMatches('bearer  secret', 'secret'));
  for (const header of [
    undefined,
    '',
    'secret',
    'Bearer',
    'Bearer ',
    'Bearer secret2',
    'Bearer SECRET',
    'Basic secret',
    'Bearer secret x',
  ]) {
    assert.equal(bearerMatches(header, 'secret'), false, header);
  }
  assert.equal(bearerMatches('Bearer ', ''), false);
  assert.equal(bearerMatches(undefined, ''), false);
});

test('a route with a token answers every wrong credential with the same 401', async (t) => {
  const server = await startServer({
    name: 'testd',
    version: '0',
    host: '127.0.0.1',
    port: 0,
    log: silentLogger,
    clock: systemClock,
    routes(app) {
      app.use('/v1/*', requireBearer('0123456789abcdef'));
      app.get('/v1/thing', (c) => sendOk(c, {}));
      app.use('/dev/*', requireBearer(undefined));
      app.get('/dev/thing', (c) => sendOk(c, {}));
    },
  });
  t.after(() => server.close());
  const get = (path: string, authorization?: string) =>
    fetch(server.url + path, authorization === undefined ? {} : { headers: { authorization } });
  assert.equal((await get('/v1/thing', 'Bearer 0123456789abcdef')).status, 200);
  assert.equal((await get('/dev/thing')).status, 200);
  const texts = new Set<string>();
  for (const header of [undefined, 'Bearer wrong', 'Basic 0123456789abcdef']) {
    for (const path of ['/v1/thing', '/v1/no-such-route']) {
      const response = await get(path, header);
      assert.equal(response.status, 401);
      assert.equal(response.headers.get('www-authenticate'), 'Bearer');
      texts.add(await response.text());
    }
  }
  assert.equal(texts.size, 1);
});

test('wrong tokens are answered with growing delays, a right one at once, and the log has one line with the count', async (t) => {
  const pauses: number[] = [];
  let fireLogTimer = () => {};
  const clock: Clock = {
    ...systemClock,
    after(delayMs, callback) {
      if (delayMs === 60_000) fireLogTimer = callback;
      else {
        pauses.push(delayMs);
        setImmediate(callback);
      }
      return () => {};
    },
  };
  const lines: { count?: number; addresses?: string[] }[] = [];
  const log = Object.assign(Object.create(silentLogger), { warn: (entry: object) => lines.push(entry) });
  const server = await guarded(t, { clock, log });
  const get = (authorization?: string) =>
    fetch(`${server.url}/thing`, { headers: authorization === undefined ? {} : { authorization } });

  for (let tries = 0; tries < 20; tries++) {
    assert.equal((await get('Bearer a-wrong-canary')).status, 401);
    assert.equal((await get()).status, 401);
  }
  assert.deepEqual(pauses.slice(0, 4), [50, 100, 200, 400]);
  assert.deepEqual([pauses.length, pauses.at(-1)], [15, 2000]);
  assert.equal((await get('Bearer 0123456789abcdef')).status, 200);
  assert.equal(pauses.length, 15);
  assert.equal(server.figures().wrongTokens, 20);
  assert.deepEqual(lines, []);
  fireLogTimer();
  assert.deepEqual(lines, [{ count: 20, addresses: ['127.0.0.1'] }]);
});

test('few wrong tokens are delayed at a time, and none after the server closes', async (t) => {
  const clock: Clock = { ...systemClock, after: () => () => {} };
  const server = await guarded(t, { clock });
  const get = () => fetch(`${server.url}/thing`, { headers: { authorization: 'Bearer wrong' } });
  for (let free = 0; free < 5; free++) await get();
  const answers = Array.from({ length: 30 }, get);
  let given = 0;
  for (const answer of answers) void answer.then(() => given++);
  while (given < 22) await new Promise((resolve) => setImmediate(resolve));
  const over = await get();
  assert.deepEqual([over.status, over.headers.get('connection')], [401, 'close']);
  assert.equal(given, 22);
  const closed = server.close();
  for (const answer of answers) assert.equal((await answer).status, 401);
  await closed;
});
