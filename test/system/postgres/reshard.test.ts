/** Resharding the alarms of a database while replicas create and fire them. */
import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { openEventually } from '../../../src/chronos/store/eventual-store.ts';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import { reshard } from '../../../src/chronos/store/sharding/reshard.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { arrivalFor, createWaiting, eventOf } from '../../contract/store/events.ts';
import {
  agentKey,
  alarmDue,
  attemptOf,
  cancelled,
  claim,
  createClaimed,
  createDue,
  edited,
  everythingOf,
  firedForGood,
  keyOf,
  NO_LIMIT,
  NOW,
  paused,
  triggered,
  withCode,
} from '../../contract/store/fixtures.ts';
import { pause } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ deadlock_timeout: '50ms' });
});
after(() => server.remove());

const options = { clock: systemClock, log: silentLogger };

/** Opened as chronosd opens it. */
async function openReplica(t: TestContext, uri: string): Promise<AlarmStore> {
  const open = (onOutdated: () => void) =>
    openPostgresStore({ ...options, uri, poolSize: 4, onRemoteDue() {}, onOutdated });
  const { store } = await openEventually(open, options);
  t.after(() => store.close());
  return store;
}

/** Retries until the store answers; returns the number of attempts. */
async function stubbornly<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ReveilleError) || error.code !== 'unavailable') throw error;
      await pause(20);
    }
  }
}

const OWNERS = Array.from({ length: 20 }, (_, n) => `owner-${n}`);
/** No claim of these tests reads it. */
const LATER = NOW + 1e9;

/** Alarms in every state, with all their rows. */
async function fill(store: AlarmStore): Promise<void> {
  for (const owner of OWNERS) {
    const one = await createClaimed(store, { owner, idempotencyKey: 'k', payload: '{"n":1.0}' });
    const { fireId, alarmId } = one.occurrence;
    await store.recordTurnReports({
      owner,
      alarmId,
      fireId,
      dueAt: NOW,
      reports: [
        {
          stage: 'turn_started',
          at: NOW + 3,
          outcome: null,
          error: null,
          turnId: null,
          conversationId: null,
          retryAt: null,
          reply: null,
          usage: null,
        },
      ],
      recordedAt: NOW + 5,
    });
    await store.complete([{ key: keyOf(one), attempt: attemptOf(one), settle: firedForGood(fireId) }]);
    for (const change of [paused, cancelled, triggered(LATER + 1), edited({ label: 'words' })]) {
      const { alarm } = await createDue(store, LATER, { owner });
      await store.update(owner, alarm.id, change);
    }
    const waiting = await createWaiting(store, undefined, owner);
    await store.recordEvents(arrivalFor(waiting, [eventOf(1), eventOf(2)], LATER));
    await store.dropEvents(owner, waiting.alarm.id, 1);
    await store.enrollKey(agentKey({ owner }));
  }
}

async function everything(store: AlarmStore) {
  const all = await Promise.all(
    OWNERS.map(async (owner) => {
      const states = (await store.list(owner, { limit: 500 })).filter(({ alarm }) => alarm.label !== 'live');
      const whole = await Promise.all(states.map(({ alarm }) => everythingOf(store, owner, alarm.id)));
      const fireIds = whole.flatMap(({ attempts }) => attempts.map(({ fireId }) => fireId));
      const receipts = await Promise.all(states.map(({ alarm }) => store.turnReportsOf(owner, alarm.id, fireIds)));
      const all = { from: 1, to: 9, maxBytes: 1000 };
      const events = await Promise.all(states.map(({ alarm }) => store.eventsOf(owner, alarm.id, all)));
      assert.deepEqual(events.flat(), [eventOf(2)]);
      return { whole, receipts, keys: await store.keysOf(owner) };
    }),
  );
  assert.equal(all.flatMap(({ whole }) => whole).length, OWNERS.length * 6);
  assert.equal(all.flatMap(({ receipts }) => receipts.flat()).length, OWNERS.length);
  return all;
}

test('buckets change under replicas that create and fire alarms: nothing is lost, nothing fires twice', async (t) => {
  const database = await server.createDatabase();
  const uri = server.uri(database);
  const replicas = [await openReplica(t, uri), await openReplica(t, uri)];
  const stale = await openPostgresStore({ ...options, uri, poolSize: 2 });
  t.after(() => stale.close());
  await fill(replicas[0]!);
  const before = await everything(replicas[0]!);

  let ending = false;
  t.after(() => {
    ending = true;
  });
  const acknowledged: { owner: string; id: string }[] = [];
  const applied: string[] = [];
  let longestMs = 0;
  const creating = OWNERS.map(async (owner, n) => {
    for (let round = 0; !ending; round++) {
      const began = performance.now();
      const entry = alarmDue(NOW, { owner, label: 'live', idempotencyKey: `live-${round}` });
      const answer = await stubbornly(() => replicas[(n + round) % 2]!.create(entry, NO_LIMIT));
      assert.ok(answer.result === 'created' || answer.result === 'key_taken', answer.result);
      acknowledged.push({ owner, id: answer.state.alarm.id });
      longestMs = Math.max(longestMs, performance.now() - began);
      await pause(10);
    }
  });
  const fireOnce = async (store: AlarmStore, now: number): Promise<number> => {
    const claims = await stubbornly(() => claim(store, { now, limit: 50 }));
    const entries = claims.map((each) => ({
      key: keyOf(each),
      attempt: attemptOf(each),
      settle: firedForGood(each.occurrence.fireId),
    }));
    const results = await stubbornly(() => store.complete(entries));
    results.forEach((result, index) => {
      if (result === 'applied') applied.push(claims[index]!.occurrence.fireId);
    });
    return claims.length;
  };
  const firing = replicas.map(async (store) => {
    while (!ending) {
      await fireOnce(store, NOW);
      await pause(5);
    }
  });

  const seen: number[] = [];
  for (const buckets of [64, 8, 1, 16]) {
    await pause(300);
    const sofar = acknowledged.length;
    const { was, rows, blockedMs } = await reshard({ ...options, uri, buckets });
    assert.equal(was, seen.at(-1) ?? 1);
    assert.ok(rows >= OWNERS.length * 7, `${rows} rows were copied`);
    t.diagnostic(`from ${was} to ${buckets}: ${rows} rows, tables held for ${Math.round(blockedMs)} ms`);
    seen.push(buckets);
    while (acknowledged.length === sofar) await pause(10);
    assert.deepEqual(await stubbornly(() => everything(replicas[0]!)), before);
  }
  ending = true;
  await Promise.all([...creating, ...firing]);
  // A replica finds its claims whose answer was lost after some seconds.
  const hasFired = async ({ owner, id }: { owner: string; id: string }) =>
    (await stubbornly(() => replicas[1]!.get(owner, id)))?.alarm.status === 'fired';
  let open = acknowledged;
  await eventually('every alarm has fired', async () => {
    while ((await fireOnce(replicas[0]!, NOW + 60_000)) > 0);
    const fired = await Promise.all(open.map(hasFired));
    open = open.filter((_, index) => !fired[index]);
    return open.length === 0;
  });
  t.diagnostic(`${acknowledged.length} acknowledged meanwhile; the longest waited ${Math.round(longestMs)} ms`);

  assert.ok(acknowledged.length > 100);
  assert.equal(new Set(acknowledged.map(({ id }) => id)).size, acknowledged.length);
  for (const { owner, id } of acknowledged) {
    const { state, attempts } = await stubbornly(() => everythingOf(replicas[1]!, owner, id));
    assert.equal(state?.alarm.status, 'fired', id);
    assert.equal(attempts.filter(({ outcome }) => outcome === 'delivered').length, 1, id);
  }
  assert.equal(new Set(applied).size, applied.length);
  const { rows: where } = await server.run(
    `SELECT count(*) FILTER (WHERE bucket <> ('x0' || substr(md5(owner), 1, 7))::bit(32)::int % 16) AS wrong, count(*) AS all FROM alarms`,
    database,
  );
  assert.deepEqual(where, [{ wrong: '0', all: String(acknowledged.length + OWNERS.length * 6) }]);
  const { rows: left } = await server.run(
    `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'chronos%' UNION ALL SELECT tgname FROM pg_trigger`,
    database,
  );
  assert.deepEqual(left, []);

  // A replica that slept through the whole change cannot change anything with its old fencing number.
  await assert.rejects(stale.get('owner-0', acknowledged[0]!.id), withCode('unavailable'));
  await assert.rejects(stale.create(alarmDue(NOW, { owner: 'owner-0' }), NO_LIMIT), withCode('unavailable'));
  await assert.rejects(claim(stale), withCode('unavailable'));
});

test('an unfinished change is restarted, and the tables are as if they had always been so', async (t) => {
  const database = await server.createDatabase();
  const uri = server.uri(database);
  const store = await openReplica(t, uri);
  await fill(store);
  const shape = () =>
    server
      .run(
        `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' UNION ALL
         SELECT relname || array_to_string(reloptions, ',') FROM pg_class WHERE relnamespace = 'public'::regnamespace
         UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1`,
        database,
      )
      .then(({ rows }) => rows);
  await reshard({ ...options, uri, buckets: 4 });
  const before = await shape();
  // Left behind by a killed process.
  await server.run('CREATE SCHEMA chronos_incoming; CREATE TABLE chronos_incoming.alarms (x INT)', database);
  await reshard({ ...options, uri, buckets: 64 });
  assert.deepEqual(await shape(), before);
  assert.deepEqual((await reshard({ ...options, uri, buckets: 64 })).rows, 0);
  await assert.rejects(reshard({ ...options, uri, buckets: 0 }), withCode('invalid_request'));
  await assert.rejects(reshard({ ...options, uri, buckets: 64, citus: true }), withCode('invalid_request'));
});
