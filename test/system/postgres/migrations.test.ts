import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { parseAddress } from '../../../src/chronos/store/postgres/address.ts';
import { migrate } from '../../../src/chronos/store/postgres/migrate.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { readMigrations } from '../../../src/kit/sqlite/migrations.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ deadlock_timeout: '50ms' });
});
after(() => server.remove());

function startOpener(uri: string, owner: string) {
  const opener = spawn(process.execPath, [join(import.meta.dirname, 'opener.fixture.ts'), uri, owner], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  opener.stderr.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const ended = once(opener, 'exit').then(([status]) => ({ status, output }));
  return { ready: once(opener.stdout, 'data'), go: () => opener.stdin.write('go\n'), ended };
}

test('four processes that open a new database at once migrate it once, and all of them work', async () => {
  const database = await server.createDatabase();
  const openers = [0, 1, 2, 3].map((n) => startOpener(server.uri(database), `owner-${n}`));
  await Promise.all(openers.map(({ ready }) => ready));
  for (const { go } of openers) go();
  for (const { ended } of openers) assert.deepEqual(await ended, { status: 0, output: '' });
  const { rows } = await server.run(
    'SELECT count(*) AS alarms, (SELECT max(version) FROM chronos_migrations) AS schema FROM alarms',
    database,
  );
  const newest = readMigrations(new URL('../../../src/chronos/store/postgres/migrations/', import.meta.url)).length;
  assert.deepEqual(rows, [{ alarms: '4', schema: String(newest) }]);
});

/** A folder of migrations and a database to apply them to. */
async function workbench(t: TestContext, files: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-migrations-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const put = (name: string, sql: string) => writeFileSync(join(folder, name), sql);
  for (const [name, sql] of Object.entries(files)) put(name, sql);
  const database = await server.createDatabase();
  const [address] = parseAddress(server.uri(database));
  assert.ok(address);
  return {
    put,
    run: () => migrate(address, address.connection, silentLogger, { folder }),
    rows: async (sql: string) => (await server.run(sql, database)).rows,
  };
}

test('each file is applied once, also when later ones come', async (t) => {
  const { put, run, rows } = await workbench(t, { '0001-first.sql': 'CREATE TABLE a (x INT);' });
  await run();
  await run();
  put('0002-second.sql', 'ALTER TABLE a ADD COLUMN y INT; INSERT INTO a VALUES (1, 2);');
  await Promise.all([run(), run(), run()]);
  assert.deepEqual(await rows('SELECT * FROM a'), [{ x: 1, y: 2 }]);
  assert.deepEqual(await rows('SELECT version, name FROM chronos_migrations ORDER BY version'), [
    { version: '1', name: 'first' },
    { version: '2', name: 'second' },
  ]);
});

test('a failing file leaves nothing behind, and can be corrected', async (t) => {
  const { put, run, rows } = await workbench(t, {
    '0001-first.sql': 'CREATE TABLE a (x INT);',
    '0002-bad.sql': 'CREATE TABLE b (x INT); SELECT no_such_column FROM a;',
  });
  await assert.rejects(run(), { code: 'internal', message: /migration 2 \(bad\) of .* failed: .*no_such_column/ });
  assert.deepEqual(await rows("SELECT to_regclass('b') AS b, count(*) FROM chronos_migrations"), [
    { b: null, count: '1' },
  ]);
  put('0002-bad.sql', 'CREATE TABLE b (x INT);');
  await run();
  assert.deepEqual(await rows('SELECT count(*) FROM chronos_migrations'), [{ count: '2' }]);
});

test('advice that the engine does not accept is ignored, and accepted advice is followed', async (t) => {
  const { run, rows } = await workbench(t, {
    '0001-first.sql': 'CREATE TABLE a (x INT);',
    '0002-optional-advice.sql': `-- a comment; with a semicolon
ALTER TABLE a SET (no_such_parameter = 1);
-- another
ALTER TABLE a
  SET (fillfactor = 55);
SOMETHING ELSE ENTIRELY;`,
    '0003-third.sql': 'CREATE TABLE c (x INT);',
  });
  await run();
  assert.deepEqual(await rows("SELECT reloptions FROM pg_class WHERE relname = 'a'"), [
    { reloptions: ['fillfactor=55'] },
  ]);
  assert.deepEqual(await rows('SELECT count(*) FROM chronos_migrations'), [{ count: '3' }]);
});

test('PostgreSQL accepts all advice of the schema', async () => {
  const database = await server.createDatabase();
  const [address] = parseAddress(server.uri(database));
  const refused: unknown[] = [];
  const log = { ...silentLogger, info: (what: unknown) => refused.push(what) } as unknown as typeof silentLogger;
  await migrate(address!, address!.connection, log);
  assert.deepEqual(refused, []);
});
