/**
 * Buckets: migration of an older database while it is in use, and the one bucket that a statement of the hot path
 * touches.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import { deliveryEffect, settleDelivered } from '../../../src/chronos/alarm/settlement.ts';
import { parseAddress } from '../../../src/chronos/store/postgres/address.ts';
import { migrate } from '../../../src/chronos/store/postgres/migrate.ts';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import { SeveralBuckets } from '../../../src/chronos/store/sharding/buckets.ts';
import type { AlarmStore, Claim, Completion } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { arrivalFor, createWaiting, eventOf } from '../../contract/store/events.ts';
import {
  again,
  agentKey,
  alarmDue,
  claim,
  createDue,
  delivered,
  edited,
  NO_LIMIT,
  NOW,
  paused,
  triggered,
  withCode,
} from '../../contract/store/fixtures.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';

const MIGRATIONS = fileURLToPath(new URL('../../../src/chronos/store/postgres/migrations/', import.meta.url));
/** The schemas of the version before buckets, and of 0.1.0. */
const BEFORE = 9;
const RELEASED = 13;

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ deadlock_timeout: '50ms' });
});
after(() => server.remove());

async function open(t: TestContext, uri: string, buckets?: number): Promise<AlarmStore> {
  const options = { uri, clock: systemClock, log: silentLogger, poolSize: 4, onRemoteDue: () => {} };
  const store = await openPostgresStore({ ...options, ...(buckets === undefined ? {} : { buckets }) });
  t.after(() => store.close());
  return store;
}

/** A database as an earlier version left it. */
async function olderDatabase(t: TestContext, schema = BEFORE): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-older-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of readdirSync(MIGRATIONS).filter((file) => Number(file.slice(0, 4)) <= schema))
    copyFileSync(join(MIGRATIONS, name), join(folder, name));
  const database = await server.createDatabase();
  const [address] = parseAddress(server.uri(database));
  await migrate(address!, address!.connection, silentLogger, { folder });
  return database;
}

type OldAlarm = {
  id: string;
  owner?: string;
  status?: string;
  key?: string;
  /** `NULL`: parked. Absent: nothing is owed. */
  due?: number | 'NULL';
  /** The end of its lease. */
  leaseUntil?: number;
  attempt?: number;
};

/** The rows that the previous version wrote for a new alarm, without later states. */
function oldCreate({ id, owner = 'ada', status = 'active', key, due, leaseUntil, attempt = 0 }: OldAlarm): string {
  const leaseColumns = leaseUntil === undefined ? 'NULL, NULL' : `${leaseUntil}, ${leaseUntil - 15_000}`;
  const owed = `
    INSERT INTO occurrences (alarm_revision, fire_id, alarm_id, owner, source, scheduled_for, nominal, due_at, attempt,
      missed_count, fence, lease_until, claimed_at, held_reason, held_until)
    VALUES (3, '${id}@${NOW}', '${id}', '${owner}', 'schedule', ${NOW}, ${NOW}, ${due}, ${attempt}, 0, ${attempt}, ${leaseColumns}, NULL, NULL);`;
  return `
    INSERT INTO owners (owner, open_at_most, stored_alarms, stored_bytes) VALUES ('${owner}', 1, 1, 1040)
    ON CONFLICT (owner) DO UPDATE SET open_at_most = owners.open_at_most + 1, stored_alarms = owners.stored_alarms + 1;
    INSERT INTO alarms (revision, id, owner, kind, label, wake_message, payload, conversation_id, idempotency_key, delay_seconds,
      fire_at, cron_expr, timezone, anchor, jitter_seconds, ends_at, max_fires, max_failures, max_lateness_seconds, urgent, set_by,
      status, failure_count, last_error, created_at, updated_at, last_fired_at, fire_count, scheduled_fires)
    VALUES (3, '${id}', '${owner}', 'once', 'plants', '\\x77c3a4', '{"n":1.0}', NULL, ${key ? `'${key}'` : 'NULL'}, NULL,
      ${NOW}, NULL, NULL, ${NOW}, 0, NULL, NULL, 100, NULL, 0, NULL, '${status}', 0, NULL, ${NOW - 1000}, ${NOW - 500}, NULL, 0, 0)
    ON CONFLICT DO NOTHING;
    ${due === undefined ? '' : owed}`;
}

const STATES: readonly OldAlarm[] = [
  { id: 'due', due: NOW - 1, key: 'a-key' },
  { id: 'later', due: NOW + 5_000 },
  { id: 'under-way', due: NOW - 2, attempt: 1, leaseUntil: NOW + 1_000 },
  { id: 'run-out', due: NOW - 3, attempt: 1, leaseUntil: NOW - 100 },
  { id: 'paused', due: 'NULL', status: 'paused' },
  { id: 'paused-under-way', due: 'NULL', attempt: 1, leaseUntil: NOW - 50, status: 'paused' },
  { id: 'failed', due: 'NULL', attempt: 9, status: 'failed' },
  { id: 'cancelled', status: 'cancelled', key: 'let-go' },
  { id: 'fired', status: 'fired', key: 'kept' },
];

const OTHERS = `
  INSERT INTO fire_attempts (fire_id, alarm_id, owner, scheduled_for, attempt, started_at, finished_at, outcome, missed_count)
  VALUES ('fired@${NOW}', 'fired', 'ada', ${NOW}, 1, ${NOW}, ${NOW + 9}, 'delivered', 0);
  INSERT INTO fire_receipts (owner, alarm_id, fire_id, stage, at, recorded_at) VALUES ('ada', 'fired', 'fired@${NOW}', 'turn_started', ${NOW}, ${NOW});
  INSERT INTO agent_keys (owner, public_key, label, source, pinned, enrolled_at) VALUES ('ada', '${'ab'.repeat(32)}', 'Ada', 'tofu', true, ${NOW});
  INSERT INTO auth_nonces (nonce, did, expires_at) VALUES ('a-nonce', 'did:key:ada', ${NOW + 9_999});`;

/** All content that must exist afterwards, whatever the number of buckets. */
async function checkStates(store: AlarmStore): Promise<void> {
  const ids = async (status: 'active' | 'paused' | 'fired' | 'cancelled' | 'failed') =>
    (await store.list('ada', { status, limit: 99 }))
      .map(({ alarm }) => alarm.id)
      .filter((id) => !id.startsWith('live-'));
  assert.deepEqual(await ids('active'), ['under-way', 'run-out', 'later', 'due']);
  assert.deepEqual(await ids('paused'), ['paused-under-way', 'paused']);
  assert.deepEqual(await ids('fired'), ['fired']);
  assert.deepEqual(await ids('cancelled'), ['cancelled']);
  assert.deepEqual(await ids('failed'), ['failed']);
  const { alarm } = (await store.get('ada', 'due'))!;
  assert.deepEqual([alarm.wakeMessage, alarm.payload, alarm.updatedAt], ['wä', '{"n":1.0}', NOW - 500]);
  assert.equal((await store.findByKey('ada', 'a-key'))?.alarm.id, 'due');
  assert.equal((await store.findByKey('ada', 'kept'))?.alarm.id, 'fired');
  assert.equal(await store.findByKey('ada', 'let-go'), undefined);
  assert.equal((await store.keysOf('ada'))[0]?.label, 'Ada');
  assert.equal((await store.attempts('ada', 'fired', { limit: 9 })).length, 1);
  assert.equal((await store.turnReportsOf('ada', 'fired', [`fired@${NOW}`])).length, 1);
  assert.equal(await store.takeNonce('a-nonce', 'did:key:ada', NOW), true);

  // No process holds what it left.
  assert.ok((await store.endOrphanedClaims(NOW)) >= 3);
  const claims = await claim(store, { now: NOW, perOwner: 99 });
  const claimed = claims.map(({ alarm: { id }, occurrence }) => [id, occurrence.fence]);
  assert.deepEqual(
    claimed.filter(([id]) => !String(id).startsWith('live-')),
    [
      ['run-out', 2],
      ['under-way', 2],
      ['due', 1],
    ],
  );
  assert.equal((await store.attempts('ada', 'run-out', { limit: 9 }))[0]?.outcome, 'unknown');
  assert.equal((await store.get('ada', 'paused-under-way'))?.occurrences[0]?.claimedAt, null);
  const results = await store.complete(claims.map(delivered));
  assert.ok(results.every((result) => result === 'applied'));

  assert.deepEqual(
    (await claim(store, { now: NOW + 5_000 })).map(({ alarm: { id } }) => id),
    ['later'],
  );
  const old = { before: NOW + 60_000_000, limit: 99 };
  await store.pruneAttempts(old);
  assert.ok((await store.pruneAlarms(old)) >= 5);
  assert.equal(await store.get('ada', 'fired'), undefined);
}

test('a database of an earlier version keeps every alarm in its state, and a replica of that version fails clearly from then on', async (t) => {
  const database = await olderDatabase(t);
  for (const state of STATES) await server.run(oldCreate(state), database);
  await server.run(OTHERS, database);

  const replica = new pg.Client({ connectionString: server.uri(database) });
  await replica.connect();
  t.after(() => replica.end());
  let live = 0;
  const working = (async () => {
    for (;;) {
      const id = `live-${String(++live).padStart(5, '0')}`;
      await replica.query(`BEGIN; ${oldCreate({ id, due: NOW - 10, owner: 'ada' })} COMMIT`);
      // Its claim, and its write after an accepted wake.
      const { rowCount } = await replica.query(`
        UPDATE occurrences SET attempt = attempt + 1, fence = fence + 1, lease_until = ${NOW + 15_000}, claimed_at = ${NOW}
        WHERE alarm_id IN (SELECT alarm_id FROM occurrences WHERE due_at <= ${NOW} AND lease_until IS NULL AND alarm_id = '${id}'
          ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)`);
      assert.equal(rowCount, 1);
      if (live % 2 === 0) continue;
      await replica.query(`
        BEGIN;
        UPDATE alarms SET revision = revision + 1, status = 'fired' WHERE owner = 'ada' AND id = '${id}' AND revision = 3;
        DELETE FROM occurrences WHERE owner = 'ada' AND alarm_id = '${id}' AND fence = 1;
        INSERT INTO fire_attempts (fire_id, alarm_id, owner, scheduled_for, attempt, started_at, finished_at, outcome, missed_count)
        VALUES ('${id}@${NOW}', '${id}', 'ada', ${NOW}, 1, ${NOW}, ${NOW}, 'delivered', 0);
        COMMIT`);
    }
  })();
  // The first of its statements after the migration.
  const failure = assert.rejects(
    working,
    /column .*lease_until.* does not exist|no unique or exclusion constraint|(?:insert into|update|delete from) view/,
  );
  const store = await open(t, server.uri(database));
  await failure;
  const states = (await store.list('ada', { limit: 1000 })).filter(({ alarm }) => alarm.id.startsWith('live-'));
  const underWay = states.filter(({ alarm }) => alarm.status === 'active');
  // The last one may have failed at any of its statements.
  assert.ok(states.length >= live - 1 && underWay.length >= Math.floor((live - 1) / 2));
  await checkStates(store);
});

test('a database of 0.1.0 keeps every alarm in its state, with its attempts, triggers and claims', async (t) => {
  const database = await olderDatabase(t, RELEASED);
  for (const state of STATES) await server.run(oldCreate(state), database);
  await server.run(OTHERS, database);
  await server.run(oldCreate({ id: 'series', owner: 'bob', key: 'a-key', due: NOW + 60_000 }), database);
  const attempt = (at: number, outcome: string, error = 'NULL') =>
    `('series@${at}', 'series', 'bob', ${at}, 1, ${at + 1}, ${at + 9}, '${outcome}', ${error}, 2, 202, 7, 'asleep')`;
  const triggerAt = (at: number, due: number | 'NULL', held: string) =>
    `(3, 'series@${at}', 'series', 'bob', 'trigger', ${at}, ${at}, ${due}, 1, 0, 4, ${held}, NULL, NULL)`;
  await server.run(
    `UPDATE alarms SET kind = 'cron', fire_at = NULL, cron_expr = '* * * * *', fire_count = 3, scheduled_fires = 3,
       last_fired_at = ${NOW - 100}, failure_count = 2, last_error = '\\x4e554c0a' WHERE id = 'series';
     INSERT INTO fire_attempts (fire_id, alarm_id, owner, scheduled_for, attempt, started_at, finished_at, outcome, error,
       missed_count, http_status, machine_ready_ms, late_because)
     VALUES ${attempt(NOW - 300, 'delivered')}, ${attempt(NOW - 100, 'failed', "'\\x00ff41'::bytea")}, ${attempt(NOW - 200, 'delivered')};
     INSERT INTO occurrences (alarm_revision, fire_id, alarm_id, owner, source, scheduled_for, nominal, due_at, attempt,
       missed_count, fence, lease_until, claimed_at, held_reason, held_until)
     VALUES ${triggerAt(NOW - 50, NOW - 50, 'NULL, NULL')}, ${triggerAt(NOW - 40, 'NULL', `${NOW + 900}, ${NOW - 40}`)}`,
    database,
  );
  const store = await open(t, server.uri(database));
  const { alarm, occurrences } = (await store.get('bob', 'series'))!;
  assert.deepEqual(
    [alarm.status, alarm.fireCount, alarm.failureCount, alarm.lastError, alarm.lastFiredAt, alarm.cronExpr],
    ['active', 3, 2, 'NUL\n', NOW - 100, '* * * * *'],
  );
  assert.deepEqual(
    occurrences.map(({ source, dueAt, fence, claimedAt }) => [source, dueAt, fence, claimedAt]),
    [
      ['trigger', NOW - 50, 4, null],
      ['trigger', null, 4, NOW - 40],
      ['schedule', NOW + 60_000, 0, null],
    ],
  );
  const attempts = await store.attempts('bob', 'series', { limit: 9 });
  assert.deepEqual(
    attempts.map(({ fireId, startedAt, outcome, missedCount, lateBecause }) => [
      fireId,
      startedAt,
      outcome,
      missedCount,
      lateBecause,
    ]),
    [
      [`series@${NOW - 100}`, NOW - 99, 'failed', 2, 'asleep'],
      [`series@${NOW - 200}`, NOW - 199, 'delivered', 2, 'asleep'],
      [`series@${NOW - 300}`, NOW - 299, 'delivered', 2, 'asleep'],
    ],
  );
  assert.equal(await store.pruneAttempts({ before: NOW + 1, limit: 9 }), 2, 'the last attempt is not in the ledger');
  assert.deepEqual(await store.attempts('bob', 'series', { limit: 9 }), attempts.slice(0, 1));
  assert.equal((await store.findByKey('bob', 'a-key'))?.alarm.id, 'series');
  const dated = await store.list('ada', { status: 'fired', limit: 1 });
  assert.equal(dated[0]?.alarm.updatedAt, NOW, 'it ended when it was due at the earliest');
  await store.deleteCancelled('bob', 9);
  await store.update('bob', 'series', paused);
  await checkStates(store);
  assert.deepEqual(
    (await store.get('bob', 'series'))!.occurrences.map(({ fireId }) => fireId),
    [`series@${NOW - 50}`, `series@${NOW}`],
  );
});

test('the same database in many buckets', async (t) => {
  const database = await olderDatabase(t);
  for (const state of STATES) await server.run(oldCreate(state), database);
  await server.run(OTHERS, database);
  const store = await open(t, server.uri(database), 64);
  const { rows } = await server.run('SELECT DISTINCT bucket FROM alarms', database);
  assert.deepEqual(rows, [{ bucket: String(new SeveralBuckets(64).of('ada')) }]);
  await assert.rejects(server.run(oldCreate({ id: 'old', due: NOW }), database), { code: '42P10' });
  await checkStates(store);
});

// Each statement touches the tables of one bucket.

const BUCKETS = 8;
const TABLES = [
  'definitions',
  'progress',
  'owners',
  'ledger',
  'fire_receipts',
  'events',
  'agent_keys',
  'calendar_feeds',
  'auth_nonces',
];

/** Puts each bucket of each table into a partition of its own. */
async function partition(database: string): Promise<void> {
  await server.run('DROP VIEW alarms, occurrences, fire_attempts', database);
  for (const table of TABLES) {
    const parts = Array.from(
      { length: BUCKETS },
      (_, n) => `CREATE TABLE ${table}_of_${n} PARTITION OF ${table} FOR VALUES IN (${n});`,
    );
    await server.run(
      `ALTER TABLE ${table} RENAME TO ${table}_whole;
      CREATE TABLE ${table} (LIKE ${table}_whole INCLUDING ALL) PARTITION BY LIST (bucket);
      DROP TABLE ${table}_whole; ${parts.join('\n')}`,
      database,
    );
  }
}

function deliveredDirectly(claim: Claim): Completion {
  const effect = deliveryEffect(claim.alarm, claim.occurrence, NOW);
  const { fireId } = claim.occurrence;
  const settle = (state: AlarmState) => settleDelivered(state, fireId, NOW);
  return { ...delivered(claim), settle, direct: effect && { claim, effect } };
}

/** These read everything on purpose, at long intervals. */
const OVER_ALL = ['chronos_usage', 'chronos_keys_page', 'chronos_pins'];

/** About replicas, which belong to no bucket. */
const OF_REPLICAS = ['chronos_replica_give_up', 'chronos_replica_leave', 'chronos_replica_forget'];

/** Not about an owner's content, or not sent to a server that has all buckets. */
const NOT_SENT = [...OF_REPLICAS, 'chronos_ping', 'chronos_notify', 'chronos_record_receipt', ...OVER_ALL];

/** The names of all statements of the store. */
function writtenDown(): Set<string> {
  const folder = fileURLToPath(new URL('../../../src/chronos/store/postgres/', import.meta.url));
  const sources = readdirSync(folder).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
  const names = sources.flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/\bstatement\(\s*'(\w+)'/g)].map(
      ([, name]) => `chronos_${name}`,
    ),
  );
  return new Set(names);
}

/** Names of the buckets' tables in a plan. */
function bucketsIn(plan: string): Set<string> {
  return new Set([...plan.matchAll(/"Relation Name": "\w+_of_(\d+)"/g)].map(([, bucket]) => bucket!));
}

test('over tables that are partitioned by bucket, each statement plans to touch one partition', async (t) => {
  const database = await server.createDatabase();
  const uri = server.uri(database);
  await (await openPostgresStore({ uri, clock: systemClock, log: silentLogger, buckets: BUCKETS })).close();
  await partition(database);
  const sent = new Map<string, { text: string; values: unknown[] }>();
  const query = pg.Client.prototype.query as (...given: unknown[]) => unknown;
  t.mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...given: unknown[]) {
    const config = given[0] as { name?: string; text: string; values?: unknown[] };
    if (config.name?.startsWith('chronos_')) sent.set(config.name, { text: config.text, values: config.values ?? [] });
    return query.apply(this, given);
  });

  const store = await open(t, uri);
  for (const owner of ['ada', 'bob', 'carl', 'dora', 'emil']) {
    await createDue(store, NOW, { owner, idempotencyKey: 'k' });
    await Promise.all([1, 2, 3].map((n) => store.create(alarmDue(NOW + n, { owner }), NO_LIMIT)));
    const { alarm } = await createDue(store, NOW, { owner });
    await store.create(alarmDue(NOW, { owner, idempotencyKey: 'k' }), NO_LIMIT);
    await store.update(owner, alarm.id, edited({ label: 'other plants' }), { maxBytes: 1e9, maxTriggers: 9 });
    await store.update(owner, alarm.id, triggered(NOW + 1), { maxTriggers: 9 });
    await store.list(owner, { limit: 9 });
    await store.list(owner, { status: 'active', limit: 9 });
    await store.putNonce(`nonce of ${owner}`, 'did:x', NOW, NOW);
    await store.takeNonce(`nonce of ${owner}`, 'did:x', NOW);
    await store.pinFirstKey({
      owner,
      label: owner,
      publicKey: 'ab'.repeat(32),
      source: 'tofu',
      enrolledAt: NOW,
      revokedAt: null,
    });
    await store.keysOf(owner);
    await store.enrollKey(agentKey({ owner }));
    const next = { from: agentKey().publicKey, to: 'cd'.repeat(32), enrolledOnly: false };
    assert.equal(await store.rotateKey({ ...next, owner, now: NOW }), 'rotated');
    await store.revokeKeys(owner, undefined, NOW);
    const moved = await createDue(store, NOW + 1, { owner: `${owner}-old`, idempotencyKey: 'k' });
    await store.update(`${owner}-old`, moved.alarm.id, triggered(NOW + 2));
    const move = { from: `${owner}-old`, to: `${owner}-new`, limits: {}, now: NOW };
    assert.deepEqual(await store.moveAlarms(move), { result: 'moved', moved: 1 });
    await store.search(owner, { text: 'plants', limit: 9 });
    await store.upcoming(owner, { limit: 9 });
    await store.countOpen(owner);
    const again = alarmDue(NOW, { owner, id: alarm.id });
    await assert.rejects(store.create(again, NO_LIMIT), withCode('conflict'));
    assert.equal((await store.create(alarmDue(NOW, { owner }), { maxActive: 1 })).result, 'too_many');
    await store.attempts(owner, alarm.id, { limit: 9 });
    await store.attempts(owner, alarm.id, { limit: 9, before: { startedAt: NOW, fireId: `f@${NOW}`, attempt: 1 } });
  }
  await store.nextDueAt(new Set(['ada', 'bob']));
  const first = await claim(store, { limit: 3 });
  assert.equal(first.length, 3);
  await store.update(first[0]!.alarm.owner, first[0]!.alarm.id, paused);
  assert.deepEqual(await store.complete(first.map(delivered)), ['applied', 'applied', 'applied']);
  const retried = await claim(store, { limit: 3 });
  const retry = (each: Claim) => ({ ...delivered(each), settle: again(each.occurrence.fireId, NOW) });
  await store.complete(retried.map(retry));
  await store.complete((await claim(store, { limit: 3 })).map(retry));
  const all = { now: NOW + 5, perOwner: 9 };
  for (let found = await claim(store, all); found.length > 0; found = await claim(store, all)) {
    const results = await store.complete(found.map(deliveredDirectly));
    assert.ok(results.every((result) => result === 'applied'));
  }
  const { owner, id: alarmId } = first[1]!.alarm;
  const fire = { owner, alarmId, fireId: first[1]!.occurrence.fireId, dueAt: NOW };
  assert.equal(await store.hasFire(fire), true);
  await store.recordTurnReports({ ...fire, reports: [], recordedAt: NOW });
  await store.turnReportsOf(owner, alarmId, [fire.fireId]);
  await store.countDue({ now: NOW, atMost: 9 });
  const following = await store.follow({ owners: new Set(['ada', 'bob']), onChanges() {}, onClosed() {} });
  await following.refresh();
  following.end();
  assert.ok(await store.changesSince(owner, NOW));
  const feed = {
    owner,
    id: '0123456789ab',
    name: 'x',
    digest: 'ab'.repeat(32),
    messages: false,
    createdAt: NOW,
    madeBy: null,
  };
  assert.equal(await store.addFeed(feed, 9), true);
  assert.deepEqual(await store.removeFeed(owner, feed.id), feed);
  const waiting = await createWaiting(store, undefined, owner);
  assert.equal((await store.recordEvents(arrivalFor(waiting, [eventOf(1), eventOf(2)])))?.fresh, 2);
  const range = { from: 1, to: 9, maxBytes: 100 };
  assert.deepEqual(await store.eventsOf(owner, waiting.alarm.id, range), [eventOf(1)]);
  await store.dropEvents(owner, waiting.alarm.id, 1);
  // So many that older ids are trimmed.
  await store.recordEvents(
    arrivalFor(
      waiting,
      Array.from({ length: 600 }, (_, n) => eventOf(n + 10)),
    ),
  );
  assert.equal(await store.hasConversation(owner, 'client c', 'a conversation'), false);
  const old = { before: NOW + 1e9, limit: 9 };
  await Promise.all([
    store.pruneTurnReports(old),
    store.pruneEvents(old),
    store.pruneAttempts(old),
    store.pruneAlarms(old),
  ]);
  t.mock.restoreAll();

  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  t.after(() => client.end());
  let checked = 0;
  for (const [name, { text, values }] of sent) {
    if (OVER_ALL.includes(name)) continue;
    const { rows } = await client.query({ text: `EXPLAIN (FORMAT JSON) ${text}`, values });
    const plan = JSON.stringify(rows[0]['QUERY PLAN'], null, 1);
    const touched = bucketsIn(plan);
    assert.ok(touched.size <= 1, `${name} touches the partitions ${[...touched]}:\n${text}`);
    checked += touched.size;
  }
  assert.ok(checked >= 20, `only ${checked} statements were seen`);
  const escaped = [...writtenDown()].filter((name) => !sent.has(name) && !NOT_SENT.includes(name));
  assert.deepEqual(escaped, [], 'statements that this test does not send: send them, or exempt them with the reason');
});
