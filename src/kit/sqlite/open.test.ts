import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../clock/clock.ts';
import { type OpenDatabaseOptions, openDatabase, type SqliteFile } from './open.ts';

/** A temporary folder with one migration, removed after the test. */
function workbench(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-sqlite-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const migrations = join(folder, 'migrations');
  mkdirSync(migrations);
  writeFileSync(
    join(migrations, '0001-notes.sql'),
    'CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;',
  );
  const path = join(folder, 'data', 'notes.db');
  const open = (options: Partial<OpenDatabaseOptions> = {}): SqliteFile => {
    const file = openDatabase({ path, migrations, clock: systemClock, lock: 'exclusive', ...options });
    t.after(() => file.close());
    return file;
  };
  return { folder, migrations, path, open };
}

function fill(file: SqliteFile, rows: number): void {
  const insert = file.db.prepare('INSERT INTO notes (text) VALUES (?)');
  file.db.exec('BEGIN');
  for (let row = 0; row < rows; row++) insert.run(`note ${row} ${'x'.repeat(200)}`);
  file.db.exec('COMMIT');
}

const hashOf = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

test('a new file has the requested page size, an existing file keeps its own', (t) => {
  const { path, open } = workbench(t);
  const pageBytes = (file: SqliteFile) => Object.values(file.db.prepare('PRAGMA page_size').get()!)[0];
  const small = open({ pageBytes: 2048 });
  assert.equal(pageBytes(small), 2048);
  fill(small, 100);
  small.close();
  assert.equal(pageBytes(open()), 2048);
  const usual = open({ path: `${path}.usual` });
  assert.equal(pageBytes(usual), 4096);
  usual.close();
  assert.equal(pageBytes(open({ path: `${path}.usual`, pageBytes: 2048 })), 4096);
});

test('a new database is durable, checks foreign keys, and is private to its owner', (t) => {
  const { path, open } = workbench(t);
  const { db } = open();
  const pragma = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0];
  assert.equal(pragma('journal_mode'), 'wal');
  assert.equal(pragma('synchronous'), 2);
  assert.equal(pragma('foreign_keys'), 1);
  assert.equal(pragma('trusted_schema'), 0);
  assert.equal(pragma('busy_timeout'), 5000);
  for (const suffix of ['', '-wal', '.lock', '.pid']) assert.equal(statSync(path + suffix).mode & 0o777, 0o600, suffix);
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
});

test('written rows survive close and open', (t) => {
  const { open } = workbench(t);
  const first = open();
  fill(first, 3);
  first.close();
  first.close();
  assert.equal(open().db.prepare('SELECT count(*) AS n FROM notes').get()?.n, 3);
});

test('a second open in the same process is refused under any name until the first is closed', (t) => {
  const { folder, path, open } = workbench(t);
  const first = open();
  const refusal = {
    code: 'unavailable',
    retryable: true,
    message: new RegExp(`already open in this process.*${process.pid}`),
  };
  assert.throws(() => open(), refusal);
  const alias = join(folder, 'alias.db');
  symlinkSync(path, alias);
  assert.throws(() => open({ path: alias }), refusal);
  // The refused attempts must not have released the lock.
  assert.throws(() => open(), refusal);
  first.close();
  open();
});

test('a shared open can read while another connection owns the file', (t) => {
  const { open } = workbench(t);
  fill(open(), 2);
  assert.equal(open({ lock: 'shared' }).db.prepare('SELECT count(*) AS n FROM notes').get()?.n, 2);
});

test('open waits for another process that is creating the file', async (t) => {
  const { path, open } = workbench(t);
  mkdirSync(join(path, '..'), { mode: 0o700 });
  const program = `
    const { DatabaseSync } = require('node:sqlite');
    const db = new DatabaseSync(${JSON.stringify(path)});
    db.exec('BEGIN IMMEDIATE');
    process.stdout.write('ready');
    setTimeout(() => db.exec('COMMIT'), 200);`;
  const other = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(other.stdout, 'data');
  fill(open({ lock: 'shared' }), 1);
  await once(other, 'exit');
});

test('the error names the owning process, and kill -9 releases its file with every committed row', async (t) => {
  const { path, migrations, open } = workbench(t);
  const program = `
    import { openDatabase } from ${JSON.stringify(import.meta.resolve('./open.ts'))};
    import { systemClock } from ${JSON.stringify(import.meta.resolve('../clock/clock.ts'))};
    const file = openDatabase({ path: process.argv[1], migrations: process.argv[2], clock: systemClock, lock: 'exclusive' });
    file.db.exec("INSERT INTO notes (text) VALUES ('from the child')");
    // Referenced, so that it is not collected, which would release the lock.
    globalThis.file = file;
    console.log('ready');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, path, migrations], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  assert.throws(() => open(), {
    code: 'unavailable',
    retryable: true,
    message: new RegExp(`in use by process ${child.pid}; stop it first`),
  });
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.ok(existsSync(`${path}.pid`), 'the pid file of the killed process remains');
  assert.equal(open().db.prepare('SELECT text FROM notes').get()?.text, 'from the child');
});

test('stale or damaged lock and pid files do not block', (t) => {
  const { path, open } = workbench(t);
  mkdirSync(join(path, '..'));
  writeFileSync(`${path}.lock`, 'not a database '.repeat(100));
  writeFileSync(`${path}.pid`, '1\n');
  const file = open();
  assert.equal(readFileSync(`${path}.pid`, 'utf8'), `${process.pid}\n`);
  file.close();
  assert.equal(existsSync(`${path}.pid`), false);
});

const damages: Record<string, (path: string) => void> = {
  'garbage instead of a database': (path) => writeFileSync(path, 'this is no database at all. '.repeat(500)),
  'damaged pages in the middle': (path) => {
    const bytes = readFileSync(path);
    for (let page = 4; page < 12; page++) bytes.fill(0xa5, page * 4096 + 100, page * 4096 + 2100);
    writeFileSync(path, bytes);
  },
  'a file cut short': (path) => truncateSync(path, Math.floor(statSync(path).size / 2 / 4096) * 4096),
  'a header with wrong bytes': (path) => {
    const bytes = readFileSync(path);
    bytes.write('SQLite format 9');
    writeFileSync(path, bytes);
  },
};

for (const [what, damage] of Object.entries(damages)) {
  test(`${what} is reported with its file name and not changed`, (t) => {
    const { path, open } = workbench(t);
    const file = open();
    fill(file, 500);
    file.close();
    damage(path);
    const before = hashOf(path);
    for (const lock of ['exclusive', 'shared'] as const) {
      assert.throws(
        () => open({ lock }),
        (error: Error & { code: string; retryable: boolean }) => {
          assert.equal(error.code, 'unavailable');
          assert.equal(error.retryable, false);
          assert.ok(error.message.startsWith(`${path} is damaged (`), error.message);
          assert.match(error.message, /left untouched\. Restore it from a backup, or move it away/);
          return true;
        },
      );
    }
    assert.equal(hashOf(path), before);
  });
}

test('a damaged file and its write-ahead log are not changed', (t) => {
  const { folder, path, open } = workbench(t);
  const file = open();
  fill(file, 500);
  file.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  fill(file, 5);
  const copy = join(folder, 'copy.db');
  copyFileSync(path, copy);
  copyFileSync(`${path}-wal`, `${copy}-wal`);
  damages['damaged pages in the middle']!(copy);
  const before = [hashOf(copy), hashOf(`${copy}-wal`)];
  assert.throws(() => open({ path: copy }), /copy\.db is damaged/);
  assert.deepEqual([hashOf(copy), hashOf(`${copy}-wal`)], before);
});

test('a folder that cannot be created is reported as unavailable with the path', (t) => {
  const { folder, open } = workbench(t);
  writeFileSync(join(folder, 'file'), '');
  const path = join(folder, 'file', 'notes.db');
  assert.throws(
    () => open({ path }),
    (error: Error & { code: string }) => {
      assert.equal(error.code, 'unavailable');
      assert.ok(error.message.startsWith(`${path} cannot be opened: `), error.message);
      return true;
    },
  );
});

test('a database of another program is refused and keeps its tables', (t) => {
  const { path, open } = workbench(t);
  mkdirSync(join(path, '..'));
  const foreign = new DatabaseSync(path);
  foreign.exec('CREATE TABLE theirs (a)');
  foreign.close();
  assert.throws(() => open(), { code: 'conflict', message: /is a database of another program/ });
});
