/** The refusals of a move, and the operations from which each side is closed meanwhile. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseAddress } from '../../../src/chronos/store/postgres/address.ts';
import { migrate } from '../../../src/chronos/store/postgres/migrate.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { move } from '../../../src/chronos/store/transfer/move.ts';
import { survey } from '../../../src/chronos/store/transfer/survey.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { openDatabase } from '../../../src/kit/sqlite/open.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { agentKey, createDue, NOW } from '../../contract/store/fixtures.ts';
import { reservePort } from '../../support/ports.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { contentsOf, fill, fillMany } from './contents.ts';
import { filledWorkbench, openPostgres, openSqlite, using, workbench } from './workbench.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

type Filling = typeof fill;
const aFew: Filling = (store) => fillMany(store, 3);
const aHundred: Filling = (store) => fillMany(store, 100);
const manyBatches: Filling = (store) => fillMany(store, 6000);
const everythingAndMore: Filling = async (store) => {
  await fill(store);
  await fillMany(store, 100);
};
const shared = { clock: systemClock, log: silentLogger };

/** The error of a rejected promise. */
async function refusalOf(promise: Promise<unknown>): Promise<ReveilleError> {
  const error = await promise.then(
    () => assert.fail('it was not refused'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ReveilleError, String(error));
  assert.doesNotMatch(error.message, /an-embedded-password|postgres:\/\/|\n/);
  return error;
}

/** Cuts a move off when the copy is complete and about to be compared. */
async function moveUpToComparing(bench: { move: Awaited<ReturnType<typeof workbench>>['move'] }): Promise<void> {
  const cut = bench.move(({ phase }) => {
    if (phase === 'comparing') throw new Error('cut off');
  });
  await assert.rejects(cut, /cut off/);
}

test('a file that a running process owns is not moved, and the process is named', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  const program = `
    import { openSqliteStore } from ${JSON.stringify(import.meta.resolve('../../../src/chronos/store/sqlite/store.ts'))};
    import { systemClock } from ${JSON.stringify(import.meta.resolve('../../../src/kit/clock/clock.ts'))};
    import { silentLogger } from ${JSON.stringify(import.meta.resolve('../../../src/kit/log/log.ts'))};
    const store = openSqliteStore({ path: process.argv[1], clock: systemClock, log: silentLogger });
    console.log('open');
    // A store that nobody holds any more is collected, and its file let go.
    setInterval(() => store.now(), 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program, bench.path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => owner.kill('SIGKILL'));
  await once(owner.stdout, 'data');
  const { code, message } = await refusalOf(bench.move());
  assert.equal(code, 'unavailable');
  assert.match(
    message,
    new RegExp(`in use by process ${owner.pid}; stop that with Ctrl-C where it runs, or "kill ${owner.pid}"`),
  );
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  assert.equal((await bench.move()).outcome, 'moved');
});

test("a missing file is not created, and another program's is left unchanged", async (t) => {
  const bench = await workbench(t, server);
  const missing = await refusalOf(bench.move());
  assert.equal(missing.code, 'not_found');
  assert.match(missing.message, /contains no alarms; name the chronos\.db/);
  writeFileSync(bench.path, 'garbage '.repeat(1000));
  assert.match((await refusalOf(bench.move())).message, /is damaged .* left untouched/);
});

test('nothing is merged into a database in use', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  const kinds: ((store: Awaited<ReturnType<typeof openPostgres>>) => Promise<unknown>)[] = [
    (store) => createDue(store, NOW),
    (store) => store.enrollKey(agentKey()),
  ];
  for (const put of kinds) {
    const database = await server.createDatabase();
    const uri = server.uri(database);
    await using(await openPostgres(uri), put);
    const { code, message } = await refusalOf(move({ from: bench.path, to: uri, ...shared }));
    assert.equal(code, 'conflict');
    assert.match(message, /contains alarms or keys already, and data is not merged; move into an empty database/);
    // Neither side is any the worse for it.
    await using(await openPostgres(uri), (store) => createDue(store, NOW));
    await using(openSqlite(bench.path), (store) => createDue(store, NOW));
    await server.dropDatabase(database);
  }
});

test('a move has the same database requirements as chronosd', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  const into = (to: string) => refusalOf(move({ from: bench.path, to, ...shared }));
  const guest = await server.createDatabase();
  await server.run(`CREATE ROLE guest LOGIN PASSWORD 'guest'; GRANT CONNECT ON DATABASE ${guest} TO guest`);
  assert.match((await into(server.uri(guest, 'guest', 'guest'))).message, /may not create tables in .*grant it CREATE/);
  const latin = await server.createDatabase(`ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
  assert.match((await into(server.uri(latin))).message, /stores text as LATIN1/);
  const newer = await server.createDatabase();
  await using(await openPostgres(server.uri(newer)), async () => undefined);
  await server.run(
    "INSERT INTO chronos_migrations SELECT max(version) + 1, 'later', 'x', 0 FROM chronos_migrations",
    newer,
  );
  assert.match((await into(server.uri(newer))).message, /was written by a newer Reveille/);
  assert.match((await into(server.uri(bench.database, 'reveille', 'wrong'))).message, /password authentication failed/);
  assert.match((await into(`postgres://u:p@127.0.0.1:${await reservePort()}/db`)).message, /cannot be reached \(/);
  assert.match((await into(server.uri('no_such_database'))).message, /create the database/);
  // None of these has closed the file.
  await using(openSqlite(bench.path), (store) => createDue(store, NOW));
});

test('a chronosd that is connected to the empty database stops the move; without it, the move continues', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  const named = `${bench.uri}?application_name=mine`;
  const other = await openPostgres(named);
  assert.match((await refusalOf(move({ from: bench.path, to: named, ...shared }))).message, /a chronosd is connected/);
  await other.close();
  const replica = await openPostgres(bench.uri);
  t.after(() => replica.close());
  const { code, message } = await refusalOf(bench.move());
  assert.equal(code, 'conflict');
  assert.match(
    message,
    /a chronosd is connected to .*; stop every chronosd that uses this database, and run this again/,
  );
  // As if nothing had been tried.
  await using(await openPostgres(bench.uri), async () => undefined);
  await using(openSqlite(bench.path), async () => undefined);
  await replica.close();
  assert.equal((await bench.move()).outcome, 'moved');
});

test('while the move is not finished neither side starts, and each names the next step', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  await moveUpToComparing(bench);
  const fromFile = await refusalOf(Promise.try(() => openSqlite(bench.path)));
  assert.equal(fromFile.code, 'conflict');
  assert.match(
    fromFile.message,
    /the move of the alarms of .*chronos\.db to PostgreSQL \(127\.0\.0\.1:\d+\/\w+\) is not finished; finish it with .*"reveille migrate --abandon"$/,
  );
  const fromDatabase = await refusalOf(openPostgres(bench.uri));
  assert.deepEqual([fromDatabase.code, fromDatabase.retryable], ['conflict', false]);
  assert.match(fromDatabase.message, /a move into the database .* is not finished; run "reveille migrate/);

  await bench.move();
  const moved = await refusalOf(Promise.try(() => openSqlite(bench.path)));
  assert.match(
    moved.message,
    /moved to PostgreSQL \(.*\) on \d{4}-\d\d-\d\dT.*Z; set CHRONOS_POSTGRES_URI to that database, or restore/,
  );
});

test('an unfinished move goes into no other database, and its database accepts no other file', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  const other = await filledWorkbench(t, server, aFew);
  await moveUpToComparing(bench);
  const elsewhere = await refusalOf(move({ from: bench.path, to: other.uri, ...shared }));
  assert.match(elsewhere.message, /a move of .* is not finished; continue with that database, or give it up first/);
  const intruder = await refusalOf(move({ from: other.path, to: bench.uri, ...shared }));
  assert.match(intruder.message, /a move of another SQLite file into .* is not finished/);
  assert.equal((await bench.move()).outcome, 'moved');
  const late = await refusalOf(move({ from: other.path, to: bench.uri, ...shared }));
  assert.match(late.message, /has been in use since alarms moved into it on .*data is not merged/);
  const gone = await refusalOf(move({ from: bench.path, to: other.uri, ...shared }));
  assert.match(gone.message, /moved to .* on .*; they are not in /);
  assert.equal((await other.move()).outcome, 'moved');
});

test('of two processes that move a file and a copy of it, the later one continues and the other stops', async (t) => {
  const bench = await filledWorkbench(t, server, manyBatches);
  const wanted = await using(openSqlite(bench.path), (store) => contentsOf(store, ['owner-0', 'owner-49']));
  await assert.rejects(
    bench.move((step) => {
      if (step.phase === 'copying') throw new Error('cut off');
    }),
  );
  const copy = `${bench.path}.copy`;
  copyFileSync(bench.path, copy);
  let second: Promise<unknown> | undefined;
  const asOutcome = (error: unknown) => error;
  const first = bench.move((step) => {
    // Either may end first, and be refused before the test awaits it.
    if (step.phase === 'copying') second ??= move({ from: copy, to: bench.uri, ...shared }).catch(asOutcome);
  });
  const outcomes = [await first.catch(asOutcome), await second!];
  for (const outcome of outcomes.filter((each) => each instanceof Error)) {
    assert.ok(outcome instanceof ReveilleError && outcome.code === 'conflict', String(outcome));
    assert.match(outcome.message, /another process moves alarms into .*, or gave this move up/);
  }
  assert.ok(
    outcomes.some((outcome) => !(outcome instanceof Error)),
    'one of them ends',
  );
  const { outcome } = await bench.move();
  assert.ok(outcome === 'moved' || outcome === 'already');
  const found = await using(await openPostgres(bench.uri), (store) => contentsOf(store, ['owner-0', 'owner-49']));
  assert.deepEqual(found, wanted);
});

/** Views show the moved rows. A damage is done to the table of one, which a comment names. */
const damages: Record<string, string> = {
  'a changed text': `UPDATE definitions /* alarms */ SET wake_message = wake_message || 'x' WHERE owner = 'owner-7' AND id = (SELECT max(id) FROM definitions WHERE owner = 'owner-7')`,
  'an instant that is one millisecond off': `UPDATE occurrences SET due_at = due_at + 1 WHERE fire_id = (SELECT max(fire_id) FROM occurrences)`,
  'a row that is missing': `DELETE FROM agent_keys WHERE public_key = (SELECT min(public_key) FROM agent_keys)`,
  'a row too many': `INSERT INTO owners (owner, open_at_most) VALUES ('zzz', 1)`,
  'a null where there was a text': `UPDATE progress /* fire_attempts */ SET last_attempt_error = NULL WHERE last_attempt_error IS NOT NULL`,
};

for (const [what, damage] of Object.entries(damages)) {
  test(`${what} in the copy is found, and neither side is opened`, async (t) => {
    const bench = await filledWorkbench(t, server, everythingAndMore);
    await moveUpToComparing(bench);
    await server.run(damage, bench.database);
    const { outcome, tables } = await bench.move();
    assert.equal(outcome, 'differs');
    assert.equal(tables.filter(({ equal }) => !equal).length, 1);
    const { table, difference } = tables.find(({ equal }) => !equal)!;
    assert.match(damage, new RegExp(`\\b${table}\\b`));
    assert.match(difference!, /^\[".+\]$/);
    await refusalOf(openPostgres(bench.uri));
    await refusalOf(Promise.try(() => openSqlite(bench.path)));
    // After an abort and a restart, it is repaired.
    await bench.abandon();
    const wanted = await using(openSqlite(bench.path), contentsOf);
    assert.equal((await bench.move()).outcome, 'moved');
    assert.deepEqual(await using(await openPostgres(bench.uri), contentsOf), wanted);
  });
}

test('a file that another program wrote into while it was closed is detected', async (t) => {
  const bench = await filledWorkbench(t, server, aHundred);
  await moveUpToComparing(bench);
  const db = new DatabaseSync(bench.path);
  db.exec(`UPDATE definitions SET label = 'another' WHERE owner = 'owner-3'`);
  db.close();
  const { outcome, tables } = await bench.move();
  assert.equal(outcome, 'differs');
  assert.deepEqual(
    tables.filter(({ equal }) => !equal).map(({ table }) => table),
    ['alarms'],
  );
});

test('a file restored from a backup, in the place of the one that was moving, is a different one', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  await moveUpToComparing(bench);
  const db = new DatabaseSync(bench.path);
  db.exec('DELETE FROM departures');
  db.close();
  const { message } = await refusalOf(bench.move());
  assert.match(
    message,
    /a move of another SQLite file into .* is not finished; finish it there, or move into an empty/,
  );
});

test('a text that PostgreSQL cannot store is named', async (t) => {
  const bench = await filledWorkbench(t, server, aFew);
  const db = new DatabaseSync(bench.path);
  db.exec(`UPDATE definitions SET label = 'a' || char(0) || 'b' WHERE owner = 'owner-1'`);
  db.close();
  const { code, message } = await refusalOf(bench.move());
  assert.equal(code, 'conflict');
  assert.match(message, /cannot store the label of \["owner-1","01977777-.*"\] in alarms, which contains U\+0000/);
  await bench.abandon();
  const store = openSqliteStore({ path: bench.path, ...shared });
  await store.close();
});

/** A folder with only the first migrations of a store, as in an earlier Reveille. */
function earlierMigrations(t: TestContext, store: string, count: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-earlier-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const current = fileURLToPath(new URL(`../../../src/chronos/store/${store}/migrations/`, import.meta.url));
  for (const name of readdirSync(current).toSorted().slice(0, count))
    copyFileSync(join(current, name), join(folder, name));
  return folder;
}

test('a move updates a file and a database of an earlier Reveille, and a dry run only reads them', async (t) => {
  const bench = await workbench(t, server);
  const options = { path: bench.path, migrations: earlierMigrations(t, 'sqlite', 3), clock: systemClock };
  openDatabase({ ...options, lock: 'exclusive' }).close();
  const [address] = parseAddress(bench.uri);
  await migrate(address!, address!.connection, silentLogger, { folder: earlierMigrations(t, 'postgres', 3) });

  const { plan, bare } = await survey({ from: bench.path, to: bench.uri, ...shared });
  assert.deepEqual([plan, bare], ['begin', false]);
  openDatabase({ ...options, lock: 'exclusive' }).close();
  assert.equal((await bench.move()).outcome, 'moved');
  // The earlier version no longer accepts the file.
  assert.throws(() => openDatabase({ ...options, lock: 'exclusive' }), /was written by a newer Reveille/);
});
