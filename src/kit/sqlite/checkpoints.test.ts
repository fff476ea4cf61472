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
  /** Number of rows in the database file without its log. */
  const inFile = (): number => {
    const copy = join(folder, 'copy.db');
    copyFileSync(path, copy);
    const alone = new DatabaseSync(copy);
    try {
      return (alone.prepare('SELECT count(*) AS count FROM rows').get() as { count: number }).count;
    } catch {
      // The file was copied during a checkpoint, or before the first one.
      return 0;
    } finally {
      alone.close();
    }
  };
  return { db, path, checkpoints, commits, write, inFile };
}

test('committed pages of a busy connection are moved from the log into the file', async (t) => {
  const { write, inFile } = setUp(t);
  await write(COMMITS);
  const end = performance.now() + LIMIT_MS;
  while (inFile() < COMMITS / 2) {
    assert.ok(performance.now() < end, 'the file contains earlier commits');
    await write(10);
  }
});

test('a log under constant writes is reset before commits must make checkpoints', async (t) => {
  const { db, path, write, commits } = setUp(t);
  await write(COMMITS);
  /** The two salts in its header; each reset changes one of them. */
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
    assert.ok(performance.now() < end, 'the log was never reset');
    // Without a pause, so that there is always more to move.
    for (let n = 0; n < 9; n++) commits.runNow(() => insert.run());
    await nextTurn();
  }
  const pages = statSync(`${path}-wal`).size / PAGE_BYTES;
  assert.ok(pages < 12_000, `the log was reset after ${Math.round(pages)} pages`);
});

test('after close, the thread has released the file, and the connection removes the log', async (t) => {
  const { db, path, checkpoints, write } = setUp(t);
  await write(COMMITS);
  await checkpoints.close();
  await write(COMMITS);
  db.close();
  assert.ok(!existsSync(`${path}-wal`));
});

test('a failed thread does not affect commits', async (t) => {
  const { db, write, checkpoints } = setUp(t);
  const elsewhere = new Checkpoints(db, join(tmpdir(), 'no-such-folder', 'test.db'), silentLogger);
  for (let n = 0; n < COMMITS; n++) elsewhere.committed();
  await write(COMMITS);
  await elsewhere.close();
  await checkpoints.close();
  const { count } = db.prepare('SELECT count(*) AS count FROM rows').get() as { count: number };
  assert.equal(count, COMMITS);
});
