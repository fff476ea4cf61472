/** The contract on a Citus cluster with two workers, its tables distributed by `spread`. */
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import pg from 'pg';
import { parseAddress } from '../../../src/chronos/store/postgres/address.ts';
import { migrate } from '../../../src/chronos/store/postgres/migrate.ts';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import { firstBuckets, OWNED_TABLES, SeveralBuckets } from '../../../src/chronos/store/sharding/buckets.ts';
import { reshard } from '../../../src/chronos/store/sharding/reshard.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { CitusCluster, noCitus } from '../../support/postgres/citus.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { completion } from './direct.ts';
import { arrivalFor, createWaiting, eventOf } from './events.ts';
import { claim, createDue, delivered, edited, NOW } from './fixtures.ts';
import type { StoreUnderTest } from './store-under-test.ts';
import { describeStore } from './suite.ts';

const BUCKETS = 4;
const missing = noCitus();

let cluster: CitusCluster;
if (missing === undefined) {
  before(async () => {
    cluster = await CitusCluster.start();
    await reshard({ uri: cluster.uri, buckets: BUCKETS, citus: true, clock: systemClock, log: silentLogger });
  });
  after(() => cluster.close());
}

const tables = Object.keys(OWNED_TABLES);

function openStore(): Promise<AlarmStore> {
  return openPostgresStore({
    uri: cluster.uri,
    clock: systemClock,
    log: silentLogger,
    poolSize: 4,
    onRemoteDue: () => {},
  });
}

async function openUnderTest(): Promise<StoreUnderTest> {
  const instances: AlarmStore[] = [];
  const another = async () => {
    const store = await openStore();
    instances.push(store);
    return store;
  };
  const closeAll = () => Promise.all(instances.splice(0).map((store) => store.close()));
  const buckets = new SeveralBuckets(BUCKETS);
  return {
    store: await another(),
    async reopen() {
      await closeAll();
      return another();
    },
    async die() {
      await cluster.run('UPDATE replicas SET given_up_at = alive_until');
      return another();
    },
    openSecond: another,
    inBucketOf(name, count) {
      const names: string[] = [];
      for (let n = 0; names.length < count; n++) {
        const each = `owner-${String(n).padStart(4, '0')}`;
        if (buckets.of(each) === buckets.of(name)) names.push(each);
      }
      return names;
    },
    async close() {
      await closeAll();
      await cluster.run([...tables, 'replicas'].map((table) => `DELETE FROM ${table}`).join('; '));
    },
  };
}

if (missing === undefined) describeStore('Citus', openUnderTest, { moves: false });
else test('the alarm store on Citus', { skip: missing }, () => {});

/** The condition that every statement about due alarms contains. */
const HOT = [
  'claim_apart',
  'deliver_apart',
  'next_due',
  'states_by_id',
  'write',
  'define',
  'has_fire',
  'record_receipt',
  'receipts_of_fires',
  'events_before',
  'events_of',
  'drop_events',
];

test('on Citus the tables are on the workers, and a hot statement is one task on one of them', {
  skip: missing,
}, async (t: TestContext) => {
  const { rows } = await cluster.run(`
    SELECT count(DISTINCT colocation_id)::int AS groups, count(*)::int AS tables, min(shard_count)::int AS shards
    FROM citus_tables WHERE distribution_column = 'bucket'`);
  assert.deepEqual(rows, [{ groups: 1, tables: tables.length, shards: BUCKETS }]);

  const sent = new Map<string, { text: string; values: unknown[] }>();
  const query = pg.Client.prototype.query as (...given: unknown[]) => unknown;
  t.mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...given: unknown[]) {
    const config = given[0] as { name?: string; text: string; values?: unknown[] };
    if (config.name) sent.set(config.name.replace('chronos_', ''), { text: config.text, values: config.values ?? [] });
    return query.apply(this, given);
  });
  const { store, close } = await openUnderTest();
  t.after(close);
  const kept = await createDue(store, NOW, { owner: 'ada', kind: 'cron', cronExpr: '@every 1s' });
  await createDue(store, NOW, { owner: 'ada' });
  await store.nextDueAt(new Set());
  await store.update('ada', kept.alarm.id, edited({ label: 'other' }));
  for (const each of await claim(store)) {
    const { owner, alarmId, fireId } = each.occurrence;
    const report = { stage: 'turn_started' as const, at: NOW, outcome: null, error: null, turnId: null };
    const reports = [{ ...report, conversationId: null, retryAt: null, reply: null, usage: null }];
    const recorded = await store.recordTurnReports({ owner, alarmId, fireId, dueAt: NOW, reports, recordedAt: NOW });
    assert.deepEqual(recorded?.fresh, new Set(['turn_started']));
    await store.turnReportsOf(owner, alarmId, [fireId]);
    await store.complete([
      each.alarm.kind === 'once'
        ? completion(each, true, NOW + 1, false)
        : {
            ...delivered(each),
            settle: ({ alarm, occurrences }) => ({
              alarm,
              occurrences: occurrences.map((one) => ({ ...one, dueAt: NOW + 1 })),
            }),
          },
    ]);
  }
  const waiting = await createWaiting(store, undefined, 'ada');
  assert.equal((await store.recordEvents(arrivalFor(waiting, [eventOf(1), eventOf(2)])))?.fresh, 2);
  const range = { from: 1, to: 9, maxBytes: 1000 };
  assert.deepEqual(await store.eventsOf('ada', waiting.alarm.id, range), [eventOf(1), eventOf(2)]);
  await store.dropEvents('ada', waiting.alarm.id, 1);
  t.mock.restoreAll();
  const client = new pg.Client({ connectionString: cluster.uri });
  await client.connect();
  t.after(() => client.end());
  for (const name of HOT) {
    const config = sent.get(name);
    assert.ok(config, `${name} was not sent`);
    const found = await client.query({ text: `EXPLAIN ${config.text}`, values: config.values });
    const plan = found.rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.match(plan, /Task Count: 1\n/, `${name}\n${plan}`);
    assert.doesNotMatch(plan, /Distributed Subplan/, `${name}\n${plan}`);
  }
});

const MIGRATIONS = new URL('../../../src/chronos/store/postgres/migrations/', import.meta.url);

test('tables that Citus distributes already are migrated, and new ones join them', {
  skip: missing ?? (process.env.REVEILLE_TEST_CITUS_URI && 'it needs a cluster of its own'),
}, async (t) => {
  const other = await CitusCluster.start();
  t.after(() => other.close());
  const folder = temporaryFolder(t);
  for (const name of readdirSync(MIGRATIONS))
    if (name < '0017') copyFileSync(new URL(name, MIGRATIONS), join(folder, name));
  const [address] = parseAddress(other.uri);
  await migrate(address!, address!.connection, silentLogger, { folder, firstBuckets: firstBuckets(BUCKETS) });
  const [first, ...others] = tables.filter((name) => name !== 'events' && name !== 'calendar_feeds');
  await other.run(
    `SELECT create_distributed_table('${first}', 'bucket', shard_count := ${BUCKETS}, colocate_with := 'none')`,
  );
  for (const name of others)
    await other.run(`SELECT create_distributed_table('${name}', 'bucket', colocate_with := '${first}')`);
  const store = await openPostgresStore({ uri: other.uri, clock: systemClock, log: silentLogger });
  t.after(() => store.close());
  const waiting = await createWaiting(store);
  assert.equal((await store.recordEvents(arrivalFor(waiting, [eventOf(1), eventOf(2)])))?.fresh, 2);
  const { rows } = await other.run(`
    SELECT count(DISTINCT colocation_id)::int AS groups, count(*)::int AS tables
    FROM citus_tables WHERE distribution_column = 'bucket'`);
  assert.deepEqual(rows, [{ groups: 1, tables: tables.length }]);
});
