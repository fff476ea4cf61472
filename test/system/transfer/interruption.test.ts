/** An interrupted move continues, at whatever moment and for whatever reason; until it is complete, no alarm fires. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { withCode } from '../../contract/store/fixtures.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { contentsOf, fill, fillMany } from './contents.ts';
import { filledWorkbench, openPostgres, openSqlite, using, type Workbench } from './workbench.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

const OWNERS = ['owner-0', 'owner-1', 'owner-2'];

async function fillBoth(store: AlarmStore): Promise<void> {
  await fill(store);
  await fillMany(store, 2600, OWNERS.length);
}

/** The content of both kinds of owners. */
async function everything(store: AlarmStore) {
  return [await contentsOf(store), await contentsOf(store, OWNERS)];
}

async function isOpen(open: () => Promise<AlarmStore>): Promise<boolean> {
  try {
    await (await open()).close();
    return true;
  } catch (error) {
    assert.ok(error instanceof ReveilleError && error.code === 'conflict', String(error));
    return false;
  }
}

/** The side that accepts a chronosd. */
async function openSides({ path, uri }: Workbench): Promise<string[]> {
  const sides = [];
  if (await isOpen(async () => openSqlite(path))) sides.push('SQLite');
  if (await isOpen(() => openPostgres(uri))) sides.push('PostgreSQL');
  return sides;
}

async function moveInChild(t: TestContext, { path, uri }: Workbench, phase: string, nth: number) {
  const args = [join(import.meta.dirname, 'killed-mover.fixture.ts'), path, uri, phase, String(nth)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  await once(child, 'close');
  return { killed: child.signalCode === 'SIGKILL', output };
}

const DEATHS: readonly [phase: string, nth: number][] = [
  ['began', 1],
  ['copying', 1],
  ['copying', 2],
  ['copying', 3],
  ['comparing', 1],
  ['comparing', 7],
  ['verified', 1],
  ['arrived', 1],
];

test('killed at one step after the other, the move continues each time, and at most one side is open', async (t) => {
  const bench = await filledWorkbench(t, server, fillBoth);
  const wanted = await using(openSqlite(bench.path), everything);
  for (const [phase, nth] of DEATHS) {
    const { killed } = await moveInChild(t, bench, phase, nth);
    assert.ok(killed, `killed while ${phase} ${nth}`);
    assert.deepEqual(await openSides(bench), phase === 'arrived' ? ['PostgreSQL'] : [], phase);
  }
  // Killed after the database was opened, only a note remains to be made.
  assert.deepEqual(await moveInChild(t, bench, 'never', 1), { killed: false, output: 'moved' });
  assert.deepEqual(await openSides(bench), ['PostgreSQL']);
  assert.deepEqual(await using(await openPostgres(bench.uri), everything), wanted);
});

test('stored rows are not sent again', async (t) => {
  const bench = await filledWorkbench(t, server, fillBoth);
  await assert.rejects(
    bench.move((step) => {
      if (step.phase === 'copying' && step.rows >= 2000) throw new Error('enough');
    }),
    /enough/,
  );
  const { copied, tables } = await bench.move();
  const all = tables.reduce((sum, { source }) => sum + source.rows, 0);
  assert.ok(copied <= all - 2000, `${copied} of ${all}`);
});

test('a PostgreSQL that stops meanwhile causes one sentence, and the move continues when it is back', async (t) => {
  const bench = await filledWorkbench(t, server, fillBoth);
  const wanted = await using(openSqlite(bench.path), everything);
  let stopped: Promise<void> | undefined;
  await assert.rejects(
    bench.move((step) => {
      if (step.phase === 'copying') stopped ??= server.stop('immediate');
    }),
    (error) => {
      assert.ok(error instanceof ReveilleError);
      assert.deepEqual([error.code, error.retryable], ['unavailable', true]);
      assert.match(error.message, /Copied rows are kept: run the same command again to continue$/);
      assert.doesNotMatch(error.message, /an-embedded-password/);
      return true;
    },
  );
  await stopped;
  assert.throws(() => openSqlite(bench.path), withCode('conflict'));
  await assert.rejects(bench.move(), { code: 'unavailable', message: /ECONNREFUSED/ });
  await server.start();
  assert.equal((await bench.move()).outcome, 'moved');
  assert.deepEqual(await using(await openPostgres(bench.uri), everything), wanted);
});

test('connections that are cut again and again only delay the move', async (t) => {
  const bench = await filledWorkbench(t, server, fillBoth);
  const wanted = await using(openSqlite(bench.path), everything);
  let cuts = 0;
  for (;;) {
    let reports = 0;
    const cut = () =>
      server.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${bench.database}'`);
    let cutting: Promise<unknown> | undefined;
    const result = await bench
      .move(() => {
        // Later and later, so that it ends.
        if (reports++ === cuts) cutting = cut();
      })
      .catch((error: unknown) => {
        assert.ok(error instanceof ReveilleError && error.retryable, String(error));
        return undefined;
      });
    await cutting;
    cuts++;
    if (result) {
      assert.ok(result.outcome === 'moved' || result.outcome === 'already');
      break;
    }
  }
  t.diagnostic(`${cuts - 1} cuts`);
  assert.ok(cuts > 1);
  assert.deepEqual(await using(await openPostgres(bench.uri), everything), wanted);
});

test('a full disk on the server stops the move; when there is space, it continues', async (t) => {
  const bench = await filledWorkbench(t, server, fillBoth);
  const wanted = await using(openSqlite(bench.path), everything);
  await using(await openPostgres(bench.uri), async () => undefined);
  await server.run(
    `CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF (SELECT count(*) FROM definitions) > 2000 THEN
         RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
       END IF;
       RETURN NULL;
     END $$;
     CREATE TRIGGER no_room AFTER INSERT ON definitions EXECUTE FUNCTION no_room()`,
    bench.database,
  );
  await assert.rejects(bench.move(), {
    code: 'unavailable',
    message: /No space left on device\); free some disk space on the database server\. Copied rows are kept/,
  });
  await server.run('DROP FUNCTION no_room CASCADE', bench.database);
  assert.equal((await bench.move()).outcome, 'moved');
  assert.deepEqual(await using(await openPostgres(bench.uri), everything), wanted);
});
