import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../clock/clock.ts';
import { readMigrations } from './migrations.ts';
import { openDatabase } from './open.ts';

const clock: Clock = { now: () => Date.UTC(2026, 5, 15, 8, 10), monotonic: () => 0, after: () => () => {} };

function workbench(t: TestContext, files: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-migrations-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const put = (name: string, sql: string) => writeFileSync(join(folder, name), sql);
  for (const [name, sql] of Object.entries(files)) put(name, sql);
  const path = join(folder, 'notes.db');
  const open = () => {
    const file = openDatabase({ path, migrations: pathToFileURL(folder), clock, lock: 'exclusive' });
    t.after(() => file.close());
    return file;
  };
  return { folder, put, open, remove: (name: string) => rmSync(join(folder, name)) };
}

const TABLE = 'CREATE TABLE a (x);\n';

test('migrations run once, in order, and are recorded', (t) => {
  const { put, open } = workbench(t, { '0001-first.sql': TABLE, 'README.md': 'not a migration' });
  open().close();
  put('0002-second.sql', 'ALTER TABLE a ADD COLUMN y; INSERT INTO a VALUES (1, 2);');
  open().close();
  const { db } = open();
  assert.deepEqual({ ...db.prepare('SELECT * FROM a').get() }, { x: 1, y: 2 });
  const ledger = db.prepare('SELECT version, name, applied_at FROM schema_migrations').all();
  assert.deepEqual(
    ledger.map((row) => ({ ...row })),
    [
      { version: 1, name: 'first', applied_at: '2026-06-15T08:10:00.000Z' },
      { version: 2, name: 'second', applied_at: '2026-06-15T08:10:00.000Z' },
    ],
  );
});

test('a database from a newer version is refused', (t) => {
  const { remove, open } = workbench(t, { '0001-first.sql': TABLE, '0002-second.sql': 'CREATE TABLE b (x);' });
  open().close();
  remove('0002-second.sql');
  assert.throws(open, { code: 'conflict', message: /written by a newer Reveille \(schema 2, this one knows 1\)/ });
});

test('a changed migration is refused after its application; line ends do not count as a change', (t) => {
  const { put, open } = workbench(t, { '0001-first.sql': TABLE });
  open().close();
  put('0001-first.sql', TABLE.replaceAll('\n', '\r\n'));
  open().close();
  put('0001-first.sql', 'CREATE TABLE a (x, y);');
  assert.throws(open, { code: 'conflict', message: /applied migration 1 \(first\) with other contents/ });
});

test('a failing migration is undone completely, and earlier ones stay', (t) => {
  const { put, open } = workbench(t, {
    '0001-first.sql': TABLE,
    '0002-bad.sql': 'CREATE TABLE b (x); CREATE TABLE a (x);',
  });
  assert.throws(open, { code: 'internal', message: /migration 2 \(bad\) of .* failed: table a already exists/ });
  put('0002-bad.sql', 'CREATE TABLE b (x);');
  const { db } = open();
  assert.equal(db.prepare('SELECT count(*) AS n FROM schema_migrations').get()?.n, 2);
});

test('a migration that ends its own transaction is refused', (t) => {
  const { open } = workbench(t, { '0001-first.sql': `${TABLE} COMMIT;` });
  assert.throws(open, { code: 'internal', message: /ends its transaction/ });
});

test('gaps, duplicates, malformed names and an empty folder are refused', (t) => {
  const refused: [Record<string, string>, RegExp][] = [
    [{ '0001-a.sql': '', '0003-c.sql': '' }, /expected 0002-<name>\.sql in .*, found 0003-c\.sql/],
    [{ '0001-a.sql': '', '0001-b.sql': '' }, /expected 0002-<name>\.sql in .*, found 0001-b\.sql/],
    [{ '0002-b.sql': '' }, /expected 0001-<name>\.sql/],
    [{ '1-a.sql': '' }, /found 1-a\.sql/],
    [{}, /contains no migrations/],
  ];
  for (const [files, message] of refused) {
    const { folder } = workbench(t, files);
    assert.throws(() => readMigrations(folder), { code: 'internal', message });
  }
});
