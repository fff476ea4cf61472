/** The content of a move, and that it is equal afterwards. */
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { ADA, agentKey, alarmDue, claim, create, NOW, withCode } from '../../contract/store/fixtures.ts';
import { walkRandomly } from '../../contract/store/random-walk.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { contentsOf, fill, fillMany } from './contents.ts';
import { filledWorkbench, openPostgres, openSqlite, using, workbench } from './workbench.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

test('all content of a store reads the same from PostgreSQL as from SQLite', async (t) => {
  const { path, uri, move } = await workbench(t, server);
  await using(openSqlite(path), fill);
  const wanted = await using(openSqlite(path), contentsOf);
  assert.ok(wanted.attempts.length > 20 && wanted.states.length > 60 && wanted.keys.length === 5);
  const { outcome, tables, copied } = await move();
  assert.equal(outcome, 'moved');
  assert.ok(tables.every(({ equal, source, target }) => equal && source.sha256 === target.sha256));
  assert.equal(
    copied,
    tables.reduce((sum, { source }) => sum + source.rows, 0),
  );
  assert.deepEqual(await using(await openPostgres(uri), contentsOf), wanted);
});

test('claims of the stopped process are ended as SQLite would have ended them', async (t) => {
  const { path, uri, move } = await filledWorkbench(t, server, fill);
  const copy = `${path}.copy`;
  copyFileSync(path, copy);
  await move();
  const passOn = async (store: Awaited<ReturnType<typeof openPostgres>>) => {
    const seen = [];
    // Interrupted deliveries are owed again.
    const ended = await store.endOrphanedClaims(NOW + 3000);
    for (const now of [NOW + 3000, NOW + 60_000]) {
      const claims = await claim(store, { now });
      seen.push(claims.toSorted((one, other) => (one.occurrence.fireId < other.occurrence.fireId ? -1 : 1)));
    }
    return { ended, seen, contents: await contentsOf(store) };
  };
  const ours = await using(openSqlite(copy), passOn);
  assert.ok(ours.contents.attempts.filter(({ outcome }) => outcome === 'unknown').length >= 6);
  assert.deepEqual(await using(await openPostgres(uri), passOn), ours);
});

test("an owner's number of open alarms is known, and a pinned key keeps others out", async (t) => {
  const { path, uri, move } = await filledWorkbench(t, server, fill);
  const entry = () => alarmDue(NOW + 1);
  const { active } = (await using(openSqlite(path), (store) => store.create(entry(), { maxActive: 0 }))) as {
    active: number;
  };
  await move();
  await using(await openPostgres(uri), async (store) => {
    assert.deepEqual(await store.create(entry(), { maxActive: active }), { result: 'too_many', active });
    assert.equal((await store.create(entry(), { maxActive: active + 1 })).result, 'created');
    assert.equal(await store.pinFirstKey(agentKey({ publicKey: 'cc'.repeat(32) })), false);
  });
});

test('for all operations, a store that moves meanwhile answers as the model does', () =>
  walkRandomly(async () => {
    const cleanups: (() => unknown)[] = [];
    const { path, uri, move } = await workbench({ after: (cleanup) => void cleanups.unshift(cleanup) }, server, true);
    let store = openSqlite(path);
    let moved = false;
    const reopen = async () => {
      await store.close();
      if (!moved) assert.equal((await move()).outcome, 'moved');
      moved = true;
      store = await openPostgres(uri);
      return store;
    };
    return {
      store,
      reopen,
      // A closed store has signed off.
      die: reopen,
      async close() {
        await store.close();
        for (const cleanup of cleanups) await cleanup();
      },
    };
  }, 15));

test('a second run reports it and changes nothing', async (t) => {
  const { path, uri, move } = await filledWorkbench(t, server, (store) => fillMany(store, 10));
  const { since } = await move();
  await using(await openPostgres(uri), (store) => create(store, alarmDue(NOW, { owner: ADA })));
  const again = await move();
  assert.deepEqual(
    { ...again, from: '', to: '' },
    { outcome: 'already', from: '', to: '', since, tables: [], copied: 0, copyMs: 0 },
  );
  assert.throws(() => openSqlite(path), withCode('conflict'));
  await using(await openPostgres(uri), async (store) => assert.equal((await store.list(ADA, { limit: 5 })).length, 1));
});

test('a store without any rows moves as well', async (t) => {
  const { uri, move } = await filledWorkbench(t, server, async () => undefined);
  const { outcome, tables } = await move();
  assert.equal(outcome, 'moved');
  assert.ok(tables.every(({ source, target, equal }) => equal && source.rows === 0 && target.rows === 0));
  await using(await openPostgres(uri), (store) => create(store, alarmDue(NOW)));
});
