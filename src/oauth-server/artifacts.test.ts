import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { atEnd, temporaryFolder } from '../../test/support/temporary.ts';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import { randomSecret } from '../kit/identity/secrets.ts';
import { Artifacts } from './artifacts.ts';
import { type ConnectionAdd, Connections } from './connections.ts';
import { RateLimit } from './rates.ts';
import { REGISTRATIONS } from './server.ts';
import { OauthStore } from './store.ts';

const DAY = 86_400_000;

function open(t: TestContext) {
  let ahead = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + ahead,
    monotonic: () => systemClock.monotonic() + ahead,
  };
  const dataDir = temporaryFolder(t);
  const store = new OauthStore({ dataDir, clock });
  atEnd(t, () => store.close());
  const connections = new Connections(store, clock);
  const secret = randomSecret();
  const artifacts = new Artifacts({ store, connections, clock, secret, usedAlready: () => new Error('used') });
  const pass = (ms: number) => {
    ahead += ms;
  };
  const count = (model: string) =>
    (store.sql('SELECT count(*) AS n FROM artifacts WHERE model = ?').get(model) as { n: number }).n;
  return { dataDir, store, connections, artifacts, clock, pass, count };
}

const connection = (id: string, user = 'ada'): ConnectionAdd => ({
  ...{ id, user, clientId: 'https://client.example/c.json', clientName: undefined, redirectHost: 'client.example' },
  ...{ scopes: ['alarms:read'], resources: ['https://r.example/mcp/chronos'], credential: undefined },
});

test('an artifact is found by its id, its session and its typed code, and is unreadable on the disk', async (t) => {
  const { artifacts, dataDir, store } = open(t);
  const sessions = artifacts.of('Session');
  await sessions.upsert('the-secret-id', { jti: 'the-secret-id', uid: 'u1', accountId: 'ada-of-the-test' }, 60);
  assert.equal((await sessions.find('the-secret-id'))?.accountId, 'ada-of-the-test');
  assert.equal((await sessions.findByUid('u1'))?.accountId, 'ada-of-the-test');
  assert.equal(await artifacts.of('RefreshToken').find('the-secret-id'), undefined, 'of another model');
  const devices = artifacts.of('DeviceCode');
  await devices.upsert('d1', { userCode: 'BCDFGHJK' }, 60);
  assert.equal((await devices.findByUserCode('BCDFGHJK'))?.userCode, 'BCDFGHJK');
  store.sql('PRAGMA wal_checkpoint(TRUNCATE)').get();
  const bytes = readFileSync(join(dataDir, 'oauth.db'));
  for (const secret of ['the-secret-id', 'ada-of-the-test', 'BCDFGHJK']) assert.ok(!bytes.includes(secret), secret);
});

test('a code is consumed once, and the second time ends its connection', async (t) => {
  const { artifacts, connections } = open(t);
  await connections.add(connection('g1'));
  const codes = artifacts.of('AuthorizationCode');
  await codes.upsert('c1', { grantId: 'g1' }, 60);
  await artifacts.of('RefreshToken').upsert('r1', { grantId: 'g1' }, 60);
  await codes.consume('c1');
  assert.ok((await codes.find('c1'))?.consumed);
  await assert.rejects(codes.consume('c1'), /used/);
  assert.equal(connections.get('g1'), undefined);
  assert.equal(await artifacts.of('RefreshToken').find('r1'), undefined);
});

test('expired rows are removed, and tables are bounded', async (t) => {
  const { artifacts, pass, count } = open(t);
  const devices = artifacts.of('DeviceCode');
  await Promise.all(Array.from({ length: 1000 }, (_, at) => devices.upsert(`d${at}`, {}, 600)));
  await assert.rejects(devices.upsert('one-more', {}, 600), /too many requests are pending/);
  await devices.upsert('d0', { changed: true }, 600);
  pass(601_000);
  await devices.upsert('one-more', {}, 600);
  assert.equal(count('DeviceCode'), 1);
});

test('a flood of registrations ends no connection, and keeps others out for a quarter of an hour at most', async (t) => {
  const { artifacts, connections, pass, count } = open(t);
  const clients = artifacts.of('Client');
  await clients.upsert('of-ada', { client_id: 'of-ada' });
  await connections.add({ ...connection('g1'), clientId: 'of-ada' });
  await connections.used('g1');
  await Promise.all(Array.from({ length: 999 }, (_, at) => clients.upsert(`c${at}`, {})));
  pass(10 * 60_000);
  await assert.rejects(clients.upsert('one-more', {}), /too many requests are pending/);
  pass(6 * 60_000);
  await clients.upsert('one-more', {});
  assert.equal(count('Client'), 2);
  pass(20 * DAY);
  await connections.used('g1');
  pass(20 * DAY);
  await clients.upsert('another', {});
  assert.ok(await clients.find('of-ada'), 'it registered 40 days ago, and is in use');
  assert.equal(await clients.find('one-more'), undefined);
});

test('the last used refresh token works for a minute, and a replay after it ends the grant', async (t) => {
  const { artifacts, connections, pass } = open(t);
  await connections.add(connection('g1'));
  const tokens = artifacts.of('RefreshToken');
  const next = async (used: string, made: string) => {
    await tokens.consume(used);
    pass(1);
    await tokens.upsert(made, { grantId: 'g1' }, 600);
  };
  await tokens.upsert('r1', { grantId: 'g1' }, 600);
  await next('r1', 'r2');
  pass(50_000);
  // The answer with r2 was lost, or another process of the client used r1 at the same time.
  assert.equal((await tokens.find('r1'))?.consumed, undefined);
  await next('r1', 'r3');
  assert.ok(connections.get('g1'));
  pass(11_000);
  assert.ok((await tokens.find('r1'))?.consumed, 'the second use does not extend the time');
  await next('r3', 'r4');
  assert.equal((await tokens.find('r3'))?.consumed, undefined);
  await next('r4', 'r5');
  assert.ok((await tokens.find('r3'))?.consumed, 'a later token was used');
  await assert.rejects(tokens.consume('r3'), /used/);
  assert.equal(connections.get('g1'), undefined);
});

test('of the used refresh tokens of a grant only the newest are kept', async (t) => {
  const { artifacts, count } = open(t);
  const tokens = artifacts.of('RefreshToken');
  for (let at = 0; at < 100; at++) {
    await tokens.upsert(`r${at}`, { grantId: 'g1' }, 600);
    await tokens.consume(`r${at}`);
  }
  assert.ok(count('RefreshToken') <= 34, `${count('RefreshToken')} rows`);
});

test('connections belong to their user, end without use, and are bounded', async (t) => {
  const { connections, artifacts, pass, count } = open(t);
  await connections.add(connection('unused'));
  await connections.add(connection('used'));
  await connections.used('used');
  await artifacts.of('Grant').upsert('used', { accountId: 'ada' }, 365 * 86_400);
  pass(16 * 60_000);
  assert.equal(connections.get('unused'), undefined, 'its code was never redeemed');
  await assert.rejects(connections.revoke('bob', 'used'), /bob has no connected client/);
  pass(29 * DAY);
  await connections.used('used');
  pass(29 * DAY);
  assert.ok(connections.get('used'), 'it was used in between');
  pass(2 * DAY);
  assert.equal(connections.get('used'), undefined);
  for (let at = 0; at < 60; at++) await connections.add(connection(`g${at}`));
  await connections.add(connection('of-bob', 'bob'));
  assert.equal(count('Grant'), 0, 'its grant went with it');
  assert.equal(connections.list('ada').length, 50);
  assert.deepEqual(
    connections.list('bob').map(({ id }) => id),
    ['of-bob'],
  );
});

test('a rate refills steadily, for each key and in total', (t) => {
  const { clock, pass } = open(t);
  const limit = new RateLimit(clock, { ofKey: { burst: 2, perMinute: 60 }, total: { burst: 5, perMinute: 60 } });
  assert.deepEqual([limit.take('a'), limit.take('a'), limit.take('a')], [true, true, false]);
  assert.deepEqual([limit.take('b'), limit.take('c'), limit.take('d'), limit.take('e')], [true, true, true, false]);
  pass(1100);
  assert.deepEqual([limit.take('a'), limit.take(undefined)], [true, false]);
});

test('one address registers few clients, and all together fewer than are stored', (t) => {
  const { clock, pass } = open(t);
  const limit = new RateLimit(clock, REGISTRATIONS);
  const takenIn15Minutes = (key: string | undefined) => {
    let taken = 0;
    for (let minute = 0; minute <= 15; minute++) {
      while (limit.take(key)) taken++;
      pass(60_000);
    }
    return taken;
  };
  assert.ok(takenIn15Minutes('192.0.2.1') <= 26);
  assert.ok(takenIn15Minutes(undefined) < 1000);
});
