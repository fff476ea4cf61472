import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../clock/clock.ts';
import { silentLogger } from '../log/log.ts';
import { bearerMatches, requireBearer } from './bearer.ts';
import { sendOk } from './envelope.ts';
import { startServer } from './server.ts';

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

test('a route behind a token answers 401 in the same words whatever was wrong', async (t) => {
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
