import assert from 'node:assert/strict';
import { closeSync, copyFileSync, existsSync, mkdtempSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { silentLogger } from '../log/log.ts';
import { Checkpoints } from './checkpoints.ts';
import { GroupCommit } from './group-commit.ts';

const COMMITS = 400;
const PAGE_BYTES = 4096;
const LIMIT_MS = 20_000;

function setUp(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-checkpoints-'));
  const path = join(folder, 'test.db');
  const db = new DatabaseSync(path);
  db.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (n INTEGER PRIMARY KEY, filler BLOB)',
  );
  const checkpoints = new Checkpoints(db, path, silentLogger);
  const commits = new GroupCommit(db, { onCommit: () => checkpoints.committed() });
  t.after(async () => {
    await checkpoints.close();
    if (db.isOpen) db.close();
    rmSync(folder, { recursive: true });
  });
  const insert = db.prepare('INSERT INTO rows DEFAULT VALUES');
  const write = async (count: number) => {
    for (let n = 0; n < count; n++) await commits.run(() => insert.run());
  };
  /** How many rows the database file holds by itself, without its log. */
  const inFile = (): number => {
    const copy = join(folder, 'copy.db');
    copyFileSync(path, copy);
    const alone = new DatabaseSync(copy);
    try {
      return (alone.prepare('SELECT count(*) AS count FROM rows').get() as { count: number }).count;
    } catch {
      // The file was copied in the middle of a checkpoint, or before the first.
      return 0;
    } finally {
      alone.close();
    }
  };
  return { db, path, checkpoints, commits, write, inFile };
}

test('what a busy connection has committed gets from the log into the file, while it goes on', async (t) => {
  const { write, inFile } = setUp(t);
  await write(COMMITS);
  const end = performance.now() + LIMIT_MS;
  while (inFile() < COMMITS / 2) {
    assert.ok(performance.now() < end, 'the file holds what was committed long ago');
    await write(10);
  }
});

test('a log that is written to without a pause starts over long before commits have to see to it', async (t) => {
  const { db, path, write, commits } = setUp(t);
  await write(COMMITS);
  /** Two salts in its header, of which each new start changes one. */
  const header = Buffer.alloc(24);
  const salts = () => {
    const log = openSync(`${path}-wal`, 'r');
    readSync(log, header);
    closeSync(log);
    return header.toString('hex', 16);
  };
  const before = salts();
  const insert = db.prepare(`INSERT INTO rows (filler) VALUES (zeroblob(${10 * PAGE_BYTES}))`);
  const end = performance.now() + LIMIT_MS;
  while (salts() === before) {
    assert.ok(performance.now() < end, 'the log has never started over');
    // At once, one after the other: whatever the thread has moved by then, there is more.
    for (let n = 0; n < 9; n++) commits.runNow(() => insert.run());
    await nextTurn();
  }
  const pages = statSync(`${path}-wal`).size / PAGE_BYTES;
  assert.ok(pages < 12_000, `the log took ${Math.round(pages)} pages to start over`);
});

test('once closed it has let go of the file, and the connection takes the log with it', async (t) => {
  const { db, path, checkpoints, write } = setUp(t);
  await write(COMMITS);
  await checkpoints.close();
  await write(COMMITS);
  db.close();
  assert.ok(!existsSync(`${path}-wal`));
});

test('a thread that fails costs nothing but itself', async (t) => {
  const { db, write, checkpoints } = setUp(t);
  const elsewhere = new Checkpoints(db, join(tmpdir(), 'no-such-folder', 'test.db'), silentLogger);
  for (let n = 0; n < COMMITS; n++) elsewhere.committed();
  await write(COMMITS);
  await elsewhere.close();
  await checkpoints.close();
  const { count } = db.prepare('SELECT count(*) AS count FROM rows').get() as { count: number };
  assert.equal(count, COMMITS);
});
