/** The store while PostgreSQL disconnects and comes back. */
import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import type { AlarmStore, CreateResult } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { ADA, alarmDue, claim, createDue, delivered, NO_LIMIT, NOW } from '../../contract/store/fixtures.ts';
import { reservePort } from '../../support/ports.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { promote, startStandby } from '../../support/postgres/standby.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

async function open(t: TestContext, uri: string, onRemoteDue?: (dueAt: number) => void): Promise<AlarmStore> {
  const log = silentLogger;
  const store = await openPostgresStore({
    uri,
    clock: systemClock,
    log,
    poolSize: 4,
    ...(onRemoteDue && { onRemoteDue }),
  });
  t.after(() => store.close());
  return store;
}

/** Creates alarms one after the other in several parallel loops until stopped; records the acknowledged ones. */
function createAllTheTime(store: AlarmStore, loops: number) {
  const acknowledged: string[] = [];
  const refusals: unknown[] = [];
  let stopped = false;
  const loop = async () => {
    while (!stopped) {
      const entry = alarmDue(NOW + 3_600_000);
      try {
        const answer: CreateResult = await store.create(entry, NO_LIMIT);
        assert.equal(answer.result, 'created');
        acknowledged.push(entry.alarm.id);
      } catch (error) {
        refusals.push(error);
        await pause(2);
      }
    }
  };
  const running = Promise.all(Array.from({ length: loops }, loop));
  return {
    acknowledged,
    refusals,
    /** Resolves when this many have been acknowledged. */
    async reach(count: number) {
      while (acknowledged.length < count) await pause(2);
    },
    async refusal() {
      const before = refusals.length;
      while (refusals.length === before) await pause(2);
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}

async function assertAllThere(store: AlarmStore, acknowledged: readonly string[]): Promise<void> {
  const there = new Set<string>();
  for (let before: string | undefined; ; ) {
    const page = await store.list(ADA, { limit: 500, ...(before && { before }) });
    for (const { alarm } of page) there.add(alarm.id);
    before = page.at(-1)?.alarm.id;
    if (!before) break;
  }
  const lost = acknowledged.filter((id) => !there.has(id));
  assert.deepEqual(lost, [], `lost of ${acknowledged.length}`);
}

function assertAllUnavailable(refusals: readonly unknown[]): void {
  for (const refusal of refusals) {
    assert.ok(refusal instanceof ReveilleError, String(refusal));
    assert.deepEqual([refusal.code, refusal.retryable], ['unavailable', true], refusal.message);
  }
}

test('acknowledged alarms survive a power cut, and the store continues by itself', async (t) => {
  const store = await open(t, server.uri(await server.createDatabase()));
  const creates = createAllTheTime(store, 16);
  for (let cut = 0; cut < 3; cut++) {
    await creates.reach(creates.acknowledged.length + 100);
    await server.stop('immediate');
    await creates.refusal();
    await assert.rejects(store.ping(), { code: 'unavailable', retryable: true });
    await assert.rejects(store.nextDueAt(new Set()), { code: 'unavailable', retryable: true });
    await server.start();
    await creates.reach(creates.acknowledged.length + 100);
  }
  await creates.stop();
  assert.ok(creates.refusals.length > 0);
  assertAllUnavailable(creates.refusals);
  await assertAllThere(store, creates.acknowledged);
});

test('occurrences claimed before a power cut can be completed after it', async (t) => {
  const store = await open(t, server.uri(await server.createDatabase()));
  for (let n = 0; n < 10; n++) await createDue(store, NOW - n);
  const claims = await claim(store);
  await server.stop('immediate');
  await assert.rejects(store.complete(claims.map(delivered)), { code: 'unavailable' });
  await server.start();
  assert.deepEqual(
    await store.complete(claims.map(delivered)),
    claims.map(() => 'applied'),
  );
});

test('the store waits for an orderly stopped server just as well', async (t) => {
  const store = await open(t, server.uri(await server.createDatabase()));
  const creates = createAllTheTime(store, 8);
  await creates.reach(50);
  await server.stop('fast');
  await creates.refusal();
  await server.start();
  await creates.reach(creates.acknowledged.length + 50);
  await creates.stop();
  assertAllUnavailable(creates.refusals);
  await assertAllThere(store, creates.acknowledged);
});

test('a primary that silently takes no more writes is detected, and so is its recovery', async (t) => {
  const database = await server.createDatabase();
  const store = await open(t, server.uri(database));
  await createDue(store, NOW);
  const setReadOnly = async (value: string) => {
    await server.run(`ALTER SYSTEM SET default_transaction_read_only = ${value}`).catch(() => undefined);
    await server.run('SELECT pg_reload_conf()');
  };
  await setReadOnly('on');
  const failure = () =>
    store.ping().then(
      () => undefined,
      (error: unknown) => error,
    );
  let error: unknown;
  while (!error) error = await failure();
  assertAllUnavailable([error]);
  // ALTER SYSTEM is a special write, which a read-only transaction may perform.
  await setReadOnly('off');
  while (await failure());
  await createDue(store, NOW);
});

test('connections that an operator cuts are replaced, and only their own queries are affected', async (t) => {
  const database = await server.createDatabase();
  const store = await open(t, server.uri(database));
  const creates = createAllTheTime(store, 4);
  for (let n = 0; n < 5; n++) {
    await creates.reach(creates.acknowledged.length + 40);
    await server.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`);
  }
  await creates.reach(creates.acknowledged.length + 40);
  await creates.stop();
  assertAllUnavailable(creates.refusals);
  await assertAllThere(store, creates.acknowledged);
});

test('no log line about lost connections contains the password', async () => {
  const database = await server.createDatabase();
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => lines.push(line) });
  const onRemoteDue = () => {};
  const store = await openPostgresStore({
    uri: server.uri(database),
    clock: systemClock,
    log,
    poolSize: 4,
    onRemoteDue,
  });
  const creates = createAllTheTime(store, 4);
  await creates.reach(40);
  await server.stop('immediate');
  await creates.refusal();
  await server.start();
  await creates.reach(creates.acknowledged.length + 40);
  await creates.stop();
  await new Promise((resolve) => setImmediate(resolve));
  await server.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`);
  while (!lines.some((line) => line.includes('an idle connection was lost'))) await pause(2);
  await store.close();
  assert.match(lines.join(''), /the connection to PostgreSQL was lost/);
  assert.doesNotMatch(lines.join(''), /an-embedded-password|postgres:\/\//);
  assert.deepEqual(
    lines.filter((line) => line.length > 2000),
    [],
    'has more than the inserted text',
  );
});

test('where the server has few connections left, the store works with them', async (t) => {
  const crowded = await startPostgres({
    max_connections: '8',
    superuser_reserved_connections: '0',
    reserved_connections: '0',
    max_wal_senders: '0',
  });
  t.after(() => crowded.remove());
  const guests = [];
  const store = await openPostgresStore({ uri: crowded.uri(), clock: systemClock, log: silentLogger, poolSize: 4 });
  for (let n = 0; n < 6; n++)
    guests.push(await openPostgresStore({ uri: crowded.uri(), clock: systemClock, log: silentLogger, poolSize: 1 }));
  const loops = createAllTheTime(store, 4);
  const readers = Array.from({ length: 8 }, async () => {
    for (let n = 0; n < 30; n++) await store.list(ADA, { limit: 5 });
  });
  await loops.reach(100);
  await Promise.all(readers);
  await loops.stop();
  assert.deepEqual(loops.refusals, []);
  await Promise.all([store, ...guests].map((each) => each.close()));
});

test('a promoted standby is found, with every acknowledged alarm; the order of the hosts does not matter', async (t) => {
  const primary = await startPostgres();
  t.after(() => primary.remove());
  const database = await primary.createDatabase();
  const standby = await startStandby(primary, { synchronous: true });
  t.after(() => standby.remove());
  const hosts = [await reservePort(), standby.port, primary.port].map((port) => `127.0.0.1:${port}`).join(',');
  const uri = `${primary.uri(database).replace(/127\.0\.0\.1:\d+/, hosts)}?target_session_attrs=read-write`;

  let hinted = () => {};
  const hint = () =>
    new Promise<void>((resolve) => {
      hinted = resolve;
    });
  const store = await open(t, uri);
  const sleeper = await open(t, uri, () => hinted());
  const creates = createAllTheTime(store, 8);
  await creates.reach(200);
  await primary.stop('immediate');
  await creates.refusal();
  // A commit waits for a synchronous standby; the new primary has none yet.
  await promote(standby);
  await standby.run('ALTER SYSTEM RESET synchronous_standby_names');
  await standby.run('SELECT pg_reload_conf()');
  await creates.reach(creates.acknowledged.length + 200);
  await creates.stop();
  assertAllUnavailable(creates.refusals);
  await assertAllThere(store, creates.acknowledged);
  await sleeper.ping();

  // Hints follow to the new primary. They may be missed while the listener moves, so there is more than one.
  const received = hint();
  let arrived = false;
  void received.then(() => {
    arrived = true;
  });
  while (!arrived) {
    await createDue(store, systemClock.now() + 1000);
    await Promise.race([received, pause(2)]);
  }
});
