/** Several stores on one database: where they must not interfere, and where they cooperate. */
import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { parseAddress } from '../../../src/chronos/store/postgres/address.ts';
import { PrimaryPool } from '../../../src/chronos/store/postgres/pool.ts';
import { statement } from '../../../src/chronos/store/postgres/statement.ts';
import { openPostgresStore, type PostgresStoreOptions } from '../../../src/chronos/store/postgres/store.ts';
import type { AlarmStore, Claim } from '../../../src/chronos/store/store.ts';
import { type Clock, systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import {
  ADA,
  attemptOf,
  claim,
  createDue,
  delivered,
  edited,
  keyOf,
  NOW,
  occurrenceOf,
  triggered,
} from '../../contract/store/fixtures.ts';
import { pause } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { rounds } from '../../support/random/random.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ deadlock_timeout: '20ms' });
});
after(() => server.remove());

const uris: string[] = [];
type OpenOptions = Partial<Pick<PostgresStoreOptions, 'onRemoteDue' | 'clock' | 'prefers'>>;

/** By number of buckets: a database with tables and no rows, the template of the others. */
const templates: string[] = [];

async function templateOf(buckets: number): Promise<string> {
  if (templates[buckets] !== undefined) return templates[buckets];
  const database = await server.createDatabase();
  const store = await openPostgresStore({ uri: server.uri(database), clock: systemClock, log: silentLogger, buckets });
  await store.close();
  templates[buckets] = database;
  return database;
}

async function openStores(t: TestContext, members: readonly OpenOptions[], buckets = 1): Promise<AlarmStore[]> {
  const uri = server.uri(await server.createDatabase(`TEMPLATE ${await templateOf(buckets)}`));
  uris.push(uri);
  const stores: AlarmStore[] = [];
  t.after(() => Promise.all(stores.map((store) => store.close())));
  for (const member of members)
    stores.push(
      await openPostgresStore({ uri, clock: systemClock, log: silentLogger, poolSize: 4, buckets, ...member }),
    );
  return stores;
}

const PREFERENCES: [string, number, OpenOptions['prefers'][]][] = [
  ['1 bucket', 1, ['all', 'all', 'all']],
  ['16 buckets', 16, ['all', 'all', 'all']],
  ['1 bucket, nobody prefers it', 1, [() => false, () => false, () => false]],
  ['16 buckets, shared out', 16, ['rendezvous', 'rendezvous', 'rendezvous']],
  ['16 buckets, nobody prefers any', 16, [() => false, () => false, () => false]],
  ['16 buckets, all prefer the same', 16, [(n) => n < 3, (n) => n < 3, (n) => n < 3]],
  ['16 buckets, preferences change all the time', 16, Array(3).fill(() => Math.random() < 0.5)],
];

for (const [title, buckets, preferences] of PREFERENCES)
  test(`with any stores working on alarms together, each occurrence is delivered once, and the ledger is complete: ${title}`, async (t) => {
    const stores = await openStores(
      t,
      preferences.map((prefers) => ({ prefers: prefers!, onRemoteDue: () => {} })),
      buckets,
    );
    const ALARMS = rounds(144, 300);
    for (let n = 0; n < ALARMS; n += 50) {
      await Promise.all(
        Array.from({ length: Math.min(50, ALARMS - n) }, (_, k) =>
          createDue(stores[k % 3]!, NOW - n - k, { owner: `owner-${(n + k) % 12}` }),
        ),
      );
    }
    const deliveries: string[] = [];
    await Promise.all(
      stores.map(async (store) => {
        for (;;) {
          const next = await store.nextDueAt(new Set());
          if (next === undefined) return;
          const claims = await claim(store, { limit: 17, perOwner: 4, now: NOW + 60 });
          // The rest is in progress in another store, or was changed just now.
          if (claims.length === 0 && next > NOW + 60) return;
          deliveries.push(...claims.map(({ occurrence }) => occurrence.fireId));
          const results = await store.complete(claims.map(delivered));
          assert.ok(results.every((result) => result === 'applied'));
        }
      }),
    );
    assert.equal(deliveries.length, ALARMS);
    assert.equal(new Set(deliveries).size, ALARMS);
    assert.equal(await stores[0]!.nextDueAt(new Set()), undefined);
    const fired = await stores[0]!.list('owner-0', { limit: 500, status: 'fired' });
    assert.equal(fired.length, ALARMS / 12);
    for (const { alarm } of fired)
      assert.equal((await stores[1]!.attempts('owner-0', alarm.id, { limit: 9 })).length, 1);
  });

test('other replicas leave an occurrence to its preferred replica for 50 ms, and no longer', async (t) => {
  const [preferring, waiting] = await openStores(t, [{ prefers: () => true }, { prefers: () => false }], 16);
  assert.ok(preferring && waiting);
  const due = preferring.now();
  await createDue(preferring, due, { owner: 'one' });
  await createDue(preferring, due, { owner: 'other' });
  assert.equal(await preferring.nextDueAt(new Set()), due);
  const turn = await waiting.nextDueAt(new Set());
  assert.equal(turn, due + 50);
  const [first] = await claim(preferring, { now: due, limit: 1 });
  assert.ok(first);
  // Its own knowledge is older than that: it queries again, and claims the result.
  while (waiting.now() < turn) await pause(5);
  assert.equal(await waiting.nextDueAt(new Set()), turn);
  const rest = await claim(waiting, { now: waiting.now() });
  assert.equal(rest.length, 1);
  assert.notEqual(rest[0]!.alarm.owner, first.alarm.owner);
});

test('an edit that a claim did not see has itself seen the claim', async (t) => {
  const [one, other] = await openStores(t, [{}, {}]);
  assert.ok(one && other);
  const ROUNDS = rounds(24, 60);
  const ALARMS = 8;
  let first = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const alarms = await Promise.all(Array.from({ length: ALARMS }, () => createDue(one, NOW)));
    const claimedAtEdit = new Map<string, boolean>();
    const edits = Promise.all(
      alarms.map(({ alarm: { id } }) =>
        other.update(ADA, id, (state) => {
          claimedAtEdit.set(id, state.occurrences[0]!.claimedAt !== null);
          return edited({ label: 'edited' })(state);
        }),
      ),
    );
    for (let turn = round % 12; turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve));
    // An alarm that is being changed at this moment is skipped, and found a moment later.
    const claims: Claim[] = [];
    while (claims.length < ALARMS) claims.push(...(await claim(one)));
    await edits;
    for (const { alarm } of claims.filter(({ alarm: { label } }) => label !== 'edited')) {
      assert.ok(claimedAtEdit.get(alarm.id), 'a claim returned the alarm as it was before an edit that came first');
      first++;
    }
    assert.ok((await one.complete(claims.map(delivered))).every((result) => result === 'applied'));
  }
  t.diagnostic(`${first} of ${ROUNDS * ALARMS} claims came before the edit`);
});

test('outcomes of many occurrences of one alarm, from two stores at once, are all counted', async (t) => {
  const [one, other] = await openStores(t, [{}, {}]);
  assert.ok(one && other);
  const { alarm } = await createDue(one, NOW - 1, { kind: 'cron', cronExpr: '@hourly' });
  for (let n = 0; n < 30; n++) await one.update(ADA, alarm.id, triggered(NOW + n));
  const claims = await claim(one, { now: NOW + 100 });
  assert.equal(claims.length, 31);
  const settleOne = (claimed: (typeof claims)[number], store: AlarmStore) =>
    store.complete([
      {
        key: keyOf(claimed),
        attempt: attemptOf(claimed),
        settle: (state) => ({
          alarm: { ...state.alarm, fireCount: state.alarm.fireCount + 1 },
          occurrences: state.occurrences.filter(({ fireId }) => fireId !== claimed.occurrence.fireId),
        }),
      },
    ]);
  await Promise.all(claims.map((claimed, n) => settleOne(claimed, n % 2 === 0 ? one : other)));
  const state = await one.get(ADA, alarm.id);
  assert.deepEqual([state?.alarm.fireCount, state?.occurrences], [31, []]);
  assert.equal((await one.attempts(ADA, alarm.id, { limit: 100 })).length, 31);
});

test('a batch may remove, move and add occurrences, in one transaction', async (t) => {
  const [store] = await openStores(t, [{}]);
  assert.ok(store);
  const ended = await createDue(store, NOW - 3);
  const series = await createDue(store, NOW - 2, { kind: 'cron', cronExpr: '@hourly' });
  const doubled = await createDue(store, NOW - 1);
  const claims = await claim(store);
  const next = occurrenceOf(series.alarm, NOW + 60_000);
  const settled = [
    [],
    [next],
    [occurrenceOf(doubled.alarm, NOW + 1), occurrenceOf(doubled.alarm, NOW + 2, { source: 'trigger' })],
  ] as const;
  const results = await store.complete(
    claims.map((claimed, n) => ({
      key: keyOf(claimed),
      attempt: attemptOf(claimed),
      settle: ({ alarm }) => ({ alarm: { ...alarm, label: `settled ${n}` }, occurrences: settled[n]! }),
    })),
  );
  assert.deepEqual(results, ['applied', 'applied', 'applied']);
  for (const [n, { alarm }] of [ended, series, doubled].entries()) {
    const state = await store.get(ADA, alarm.id);
    assert.deepEqual(state?.occurrences, settled[n]);
    assert.equal(state?.alarm.label, `settled ${n}`);
  }
});

test('deadlocked transactions are retried until both succeed', async (t) => {
  const database = await server.createDatabase();
  await server.run(
    "CREATE TABLE counters (name TEXT PRIMARY KEY, count INT); INSERT INTO counters VALUES ('a', 0), ('b', 0)",
    database,
  );
  const pool = new PrimaryPool(parseAddress(server.uri(database)), { size: 2, clock: systemClock, log: silentLogger });
  t.after(() => pool.close());
  const add = statement('add', 'UPDATE counters SET count = count + 1 WHERE name = $1');
  const read = statement('read', 'SELECT count FROM counters ORDER BY name');
  let runs = 0;
  const both = (first: string, second: string) =>
    pool.transaction(async (transaction) => {
      runs++;
      await transaction.query(add, [first]);
      await transaction.query(read, []);
      await transaction.query(add, [second]);
    });
  for (let round = 0; round < 10; round++) await Promise.all([both('a', 'b'), both('b', 'a')]);
  assert.deepEqual(await pool.query(read, []), [[20], [20]]);
  t.diagnostic(`${runs} runs for 20 transactions`);
});

test('several stores that see an owner for the first time at the same moment store all of it', async (t) => {
  const stores = await openStores(t, [{}, {}]);
  const at = NOW + 3_600_000;
  for (let n = 0; n < rounds(60, 400); n++) {
    const both = await Promise.all(stores.map((store) => createDue(store, at, { owner: `new-${n}` })));
    assert.equal(new Set(both.map(({ alarm }) => alarm.id)).size, 2);
  }
});

test('a store soon hears of urgent work from another one, but not of its own changes or of distant work', async (t) => {
  const received: number[] = [];
  let wake = () => {};
  const [listener, speaker] = await openStores(t, [
    {
      onRemoteDue(dueAt) {
        received.push(dueAt);
        wake();
      },
    },
    { onRemoteDue: () => {} },
  ]);
  assert.ok(listener && speaker);
  const now = listener.now();
  await createDue(listener, now + 1);
  await createDue(speaker, now + 3_600_000);
  // LISTEN may still be on its way when the first of these is sent.
  for (let n = 0; received.length === 0; n++) {
    await createDue(speaker, now + 1000 + n);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(
    received.every((dueAt) => dueAt >= now + 1000 && dueAt < now + 60_000),
    String(received),
  );

  const { alarm } = await createDue(speaker, now + 3_600_000);
  const hint = new Promise<void>((resolve) => {
    wake = () => {
      if (received.at(-1) === now + 5) resolve();
    };
  });
  await speaker.update(ADA, alarm.id, triggered(now + 5));
  await hint;
});

test('a change by any store changes the change counter of its owner in all stores, and no other counter', async (t) => {
  const stores = await openStores(t, [{ onRemoteDue: () => {} }, { onRemoteDue: () => {} }]);
  const [one, other] = stores as [AlarmStore, AlarmStore];
  const agreed = (what: string, owner: string, but?: string) =>
    eventually(what, async () => {
      const [counter, same] = await Promise.all([one.mark(owner), other.mark(owner)]);
      return counter !== undefined && counter === same && counter !== but ? counter : undefined;
    });
  // Each store that joins counts for every owner: until both have, a counter changes without a change.
  const hasAllStores = (counter: string | undefined) => Number(counter?.split('.')[0]) >= stores.length;
  await eventually(
    'both stores have joined',
    async () => hasAllStores(await one.mark(ADA)) && hasAllStores(await other.mark(ADA)),
  );
  let counter = await agreed('both have the same counter', ADA);
  const bobs = await agreed('of another owner, too', 'bob');
  const state = await createDue(other, NOW - 1000);
  counter = await agreed('an alarm was created', ADA, counter);
  await one.update(ADA, state.alarm.id, edited({ label: 'another' }));
  counter = await agreed('it was edited', ADA, counter);
  const claims = await claim(other);
  counter = await agreed('it is in progress', ADA, counter);
  await other.complete(claims.map(delivered));
  counter = await agreed('it has fired', ADA, counter);
  assert.equal(await one.mark('bob'), bobs);
  // One that comes later counts as far as the others.
  const third = await openPostgresStore({
    uri: uris.at(-1)!,
    clock: systemClock,
    log: silentLogger,
    onRemoteDue: () => {},
  });
  t.after(() => third.close());
  await eventually('the third has the same counter', async () => {
    const counters = await Promise.all([...stores, third].map((store) => store.mark(ADA)));
    return counters[0] !== undefined && new Set(counters).size === 1;
  });
  const silent = await openPostgresStore({
    uri: uris.at(-1)!,
    clock: systemClock,
    log: silentLogger,
    notifications: false,
  });
  t.after(() => silent.close());
  assert.equal(await silent.mark(ADA), undefined, 'without notifications there is no change counter');
});

test("the stores' clocks agree, though the machines' do not", async (t) => {
  const skewed = (ahead: number): Clock => ({ ...systemClock, now: () => systemClock.now() + ahead });
  const stores = await openStores(t, [{}, { clock: skewed(3_600_000) }, { clock: skewed(-86_400_000) }]);
  for (const store of stores) {
    const { rows } = await server.run('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS before');
    const shown = store.now();
    const { rows: later } = await server.run('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS after');
    // Never ahead of the database; behind by at most the time of one answer.
    assert.ok(shown <= Number(later[0].after), `${shown} is after ${later[0].after}`);
    assert.ok(shown > Number(rows[0].before) - 1000, `${shown} is long before ${rows[0].before}`);
  }
});
