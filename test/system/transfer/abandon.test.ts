/** Reverting a move: the file is in use again only when the database is not. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { createDue, NOW, withCode } from '../../contract/store/fixtures.ts';
import { reservePort } from '../../support/ports.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { contentsOf, fill, fillMany } from './contents.ts';
import { filledWorkbench, openPostgres, openSqlite, using } from './workbench.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

/** One statement on a connection of its own. */
async function query(uri: string, text: string) {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

const fillSome = (store: Parameters<typeof fill>[0]) => fillMany(store, 10);

test('after an abort during the copy, the file is in use again and the database stays closed, without a query', async (t) => {
  const bench = await filledWorkbench(t, server, fill);
  const wanted = await using(openSqlite(bench.path), contentsOf);
  await assert.rejects(
    bench.move(({ phase }) => {
      if (phase === 'comparing') throw new Error('cut off');
    }),
  );
  const nowhere = `postgres://u:p@127.0.0.1:${await reservePort()}/db`;
  const { was, closed } = await bench.abandon({ to: nowhere });
  assert.deepEqual([was, closed], ['moving', true]);
  assert.deepEqual(await using(openSqlite(bench.path), contentsOf), wanted);
  await assert.rejects(openPostgres(bench.uri), withCode('conflict'));
  assert.deepEqual(await bench.abandon(), { from: bench.path, was: 'home', to: null, closed: false });
});

test('changes to the file after an aborted move are part of the next one', async (t) => {
  const bench = await filledWorkbench(t, server, fill);
  await assert.rejects(
    bench.move(({ phase }) => {
      if (phase === 'verified') throw new Error('cut off');
    }),
  );
  await bench.abandon();
  const wanted = await using(openSqlite(bench.path), async (store) => {
    await createDue(store, NOW, { wakeMessage: 'set in between' });
    return contentsOf(store);
  });
  assert.equal((await bench.move()).outcome, 'moved');
  assert.deepEqual(await using(await openPostgres(bench.uri), contentsOf), wanted);
});

test('after the move, reverting closes the database first', async (t) => {
  const bench = await filledWorkbench(t, server, fillSome);
  await bench.move();
  await assert.rejects(bench.abandon({ to: undefined }), {
    code: 'invalid_request',
    message: /may be in use in .*; name that database with --to, so that it is closed first/,
  });
  const { was, closed } = await bench.abandon();
  assert.deepEqual([was, closed], ['moved', true]);
  await assert.rejects(openPostgres(bench.uri), {
    code: 'conflict',
    message: /the move into the database .* was given up on .* fire from the SQLite file again/,
  });
  await using(openSqlite(bench.path), fillSome);
  assert.equal((await bench.move()).outcome, 'moved');
});

test('reads in the database since then are no change', async (t) => {
  const bench = await filledWorkbench(t, server, fillSome);
  await bench.move();
  const { rows } = await query(bench.uri, 'SELECT owner FROM owners');
  assert.ok(rows.length > 0);
  await using(await openPostgres(bench.uri), (store) => store.list(String(rows[0].owner), { limit: 10 }));
  // The bound on an owner's alarms is raised ahead of time, and recomputed where it meets the limit.
  await query(bench.uri, 'UPDATE owners SET open_at_most = open_at_most + 1');
  const { was, closed } = await bench.abandon();
  assert.deepEqual([was, closed], ['moved', true]);
});

test('changes in the database since then are discarded only on request', async (t) => {
  const bench = await filledWorkbench(t, server, fillSome);
  await bench.move();
  await using(await openPostgres(bench.uri), (store) => createDue(store, NOW));
  await assert.rejects(bench.abandon(), {
    code: 'conflict',
    message: /has changed since the move \(alarms, occurrences, owners\).*--discard/,
  });
  // After the refusal nothing has changed.
  assert.throws(() => openSqlite(bench.path), withCode('conflict'));
  await using(await openPostgres(bench.uri), async () => undefined);
  assert.equal((await bench.abandon({ discard: true })).closed, true);
  await assert.rejects(openPostgres(bench.uri), withCode('conflict'));
  await using(openSqlite(bench.path), async () => undefined);
});

test('while a chronosd uses the database, no revert is possible', async (t) => {
  const bench = await filledWorkbench(t, server, fillSome);
  await bench.move();
  const replica = await openPostgres(bench.uri);
  t.after(() => replica.close());
  for (const discard of [false, true])
    await assert.rejects(bench.abandon({ discard }), { code: 'conflict', message: /a chronosd is connected/ });
  await replica.ping();
  await using(await openPostgres(bench.uri), async () => undefined);
  await replica.close();
  assert.equal((await bench.abandon()).closed, true);
});

test('on request, the command does not wait for a database that is lost for good', async (t) => {
  const bench = await filledWorkbench(t, server, fillSome);
  await bench.move();
  await server.dropDatabase(bench.database);
  await assert.rejects(bench.abandon(), { code: 'unavailable' });
  assert.throws(() => openSqlite(bench.path), withCode('conflict'));
  const { was, closed } = await bench.abandon({ discard: true });
  assert.deepEqual([was, closed], ['moved', false]);
  await using(openSqlite(bench.path), async () => undefined);
});

test('a database other than the target of the move gives no information about it', async (t) => {
  const bench = await filledWorkbench(t, server, fillSome);
  const other = await filledWorkbench(t, server, fillSome);
  await bench.move();
  await assert.rejects(bench.abandon({ to: other.uri }), { code: 'conflict', message: /are not in .*; they moved to/ });
  assert.throws(() => openSqlite(bench.path), withCode('conflict'));
});
