import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { systemClock } from '../clock/clock.ts';
import { GroupCommit } from './group-commit.ts';
import { openDatabase } from './open.ts';

function workbench(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-group-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, '0001-notes.sql'), 'CREATE TABLE notes (text TEXT NOT NULL UNIQUE) STRICT;');
  const path = join(folder, 'notes.db');
  const file = openDatabase({ path, migrations: folder, clock: systemClock, lock: 'exclusive', busyTimeoutMs: 0 });
  t.after(() => file.close());
  const insert = file.db.prepare('INSERT INTO notes (text) VALUES (?)');
  const count = () => file.db.prepare('SELECT count(*) AS n FROM notes').get()?.n;
  return { folder, path, db: file.db, group: new GroupCommit(file.db), add: (text: string) => insert.run(text), count };
}

test('operations that arrive together share a transaction, at most 512 of them', async (t) => {
  const { path, group, add } = workbench(t);
  const other = openDatabase({ path, migrations: join(path, '..'), clock: systemClock, lock: 'shared' });
  t.after(() => other.close());
  const seen = other.db.prepare('SELECT count(*) AS n FROM notes');
  const results = Array.from({ length: 1300 }, (_, index) =>
    group.run(() => {
      add(`n${index}`);
      return index;
    }),
  );
  await results[0];
  assert.equal(seen.get()?.n, 512);
  await results[512];
  assert.equal(seen.get()?.n, 1024);
  const numbers = Array.from({ length: 1300 }, (_, index) => index);
  assert.deepEqual(await Promise.all(results), numbers);
  assert.equal(seen.get()?.n, 1300);
});

test('an operation is acknowledged only after another connection can read it', async (t) => {
  const { path, group, add } = workbench(t);
  const other = openDatabase({ path, migrations: join(path, '..'), clock: systemClock, lock: 'shared' });
  t.after(() => other.close());
  const seen = other.db.prepare('SELECT count(*) AS n FROM notes');
  const acknowledged = ['a', 'b', 'c'].map((text) => group.run(() => add(text)));
  assert.equal(seen.get()?.n, 0);
  await Promise.race(acknowledged);
  assert.equal(seen.get()?.n, 3);
});

test('only the operation that throws is undone and rejected', async (t) => {
  const { group, add, count } = workbench(t);
  const conflict = new ReveilleError('conflict', 'no');
  const outcomes = await Promise.allSettled([
    group.run(() => add('one')),
    group.run(() => {
      add('two');
      throw conflict;
    }),
    group.run(() => add('one')),
    group.run(async () => add('three')),
    group.run(() => add('four')),
  ]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'rejected', 'fulfilled'],
  );
  assert.equal((outcomes[1] as PromiseRejectedResult).reason, conflict);
  assert.equal((outcomes[2] as PromiseRejectedResult).reason.code, 'internal');
  assert.match((outcomes[3] as PromiseRejectedResult).reason.message, /must be synchronous/);
  assert.equal(count(), 2);
});

test('a single operation that throws leaves no changes', async (t) => {
  const { group, add, count } = workbench(t);
  const operation = () => {
    add('x');
    throw new Error('changed my mind');
  };
  await assert.rejects(group.run(operation), /changed my mind/);
  assert.throws(() => group.runNow(operation), /changed my mind/);
  assert.equal(count(), 0);
  assert.equal(
    group.runNow(() => add('x').changes),
    1,
  );
});

test('an operation cannot start a second transaction', async (t) => {
  const { group, add, count } = workbench(t);
  await assert.rejects(
    group.run(() => {
      add('outer');
      group.runNow(() => add('inner'));
    }),
    { code: 'internal' },
  );
  assert.equal(count(), 0);
});

test('drain waits for queued operations, and for operations that they queue', async (t) => {
  const { group, add, count } = workbench(t);
  await group.drain();
  void group.run(() => {
    add('first');
    void group.run(() => add('second'));
  });
  await group.drain();
  assert.equal(count(), 2);
});

test('a lock of another connection rejects all operations as unavailable, and the next try succeeds', async (t) => {
  const { path, group, add, count } = workbench(t);
  const other = openDatabase({ path, migrations: join(path, '..'), clock: systemClock, lock: 'shared' });
  t.after(() => other.close());
  other.db.exec('BEGIN IMMEDIATE');
  const outcomes = await Promise.allSettled([group.run(() => add('a')), group.run(() => add('b'))]);
  for (const outcome of outcomes) {
    assert.equal(outcome.status, 'rejected');
    assert.equal(outcome.reason.code, 'unavailable');
    assert.equal(outcome.reason.retryable, true);
    assert.match(outcome.reason.message, /database is locked/);
  }
  other.db.exec('ROLLBACK');
  await group.run(() => add('a'));
  assert.equal(count(), 1);
});

test('a full database rejects with the message of SQLite, keeps acknowledged rows, and works again with free space', async (t) => {
  const { db, group, add } = workbench(t);
  const pages = Object.values(db.prepare('PRAGMA page_count').get()!)[0] as number;
  db.exec(`PRAGMA max_page_count = ${pages + 20}`);
  const write = (index: number) => group.run(() => add(`${index} ${'x'.repeat(3000)}`));
  const outcomes = await Promise.allSettled(Array.from({ length: 40 }, (_, index) => write(index)));
  const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
  assert.ok(failed.length > 0);
  for (const { reason } of failed) {
    assert.equal(reason.code, 'unavailable');
    assert.equal(reason.retryable, true);
    assert.match(reason.message, /database or disk is full/);
  }
  const stored = db.prepare('SELECT text FROM notes').all() as { text: string }[];
  const kept = new Set(stored.map(({ text }) => Number(text.split(' ')[0])));
  const acknowledged = outcomes.flatMap(({ status }, index) => (status === 'fulfilled' ? [index] : []));
  assert.deepEqual(
    [...kept].sort((a, b) => a - b),
    acknowledged,
  );
  db.exec(`PRAGMA max_page_count = ${pages + 2000}`);
  await write(100);
});

test('if an operation hides the loss of its transaction, no operation is acknowledged', async (t) => {
  const { db, group, add, count } = workbench(t);
  const outcomes = await Promise.allSettled([
    group.run(() => add('before')),
    group.run(() => db.exec('ROLLBACK')),
    group.run(() => add('after')),
  ]);
  for (const outcome of outcomes) {
    assert.equal(outcome.status, 'rejected');
    assert.equal(outcome.reason.code, 'unavailable');
  }
  assert.equal(count(), 0);
});

test('if the COMMIT fails, no operation is acknowledged and no row is kept', (t) => {
  const { folder } = workbench(t);
  // The shell limits the size of the child's files, so the write-ahead log hits the limit during a commit.
  const program = `
    import { openDatabase } from ${JSON.stringify(import.meta.resolve('./open.ts'))};
    import { GroupCommit } from ${JSON.stringify(import.meta.resolve('./group-commit.ts'))};
    import { systemClock } from ${JSON.stringify(import.meta.resolve('../clock/clock.ts'))};
    const { db } = openDatabase({ path: process.argv[1], migrations: process.argv[2], clock: systemClock, lock: 'exclusive' });
    const group = new GroupCommit(db);
    const insert = db.prepare('INSERT INTO notes (text) VALUES (?)');
    const acked = [];
    let refusal;
    for (let round = 0; round < 60 && !refusal; round++) {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 5 }, (_, index) => group.run(() => insert.run(round + '.' + index + ' ' + 'x'.repeat(2000)))),
      );
      outcomes.forEach((outcome, index) => {
        if (outcome.status === 'fulfilled') acked.push(round + '.' + index);
        else refusal = { code: outcome.reason.code, retryable: outcome.reason.retryable, message: outcome.reason.message };
      });
    }
    const kept = db.prepare('SELECT text FROM notes').all().map(({ text }) => text.split(' ')[0]);
    console.log(JSON.stringify({ acked, kept, refusal, inTransaction: db.isTransaction }));`;
  const script = 'ulimit -f 400; exec "$0" "$@"';
  const child = spawnSync(
    '/bin/sh',
    ['-c', script, process.execPath, '--input-type=module', '-e', program, join(folder, 'small.db'), folder],
    { encoding: 'utf8' },
  );
  assert.equal(child.status, 0, child.stderr);
  const { acked, kept, refusal, inTransaction } = JSON.parse(child.stdout);
  assert.equal(refusal.code, 'unavailable');
  assert.equal(refusal.retryable, true);
  assert.match(refusal.message, /nothing was stored: disk I\/O error|nothing was stored: database or disk is full/);
  assert.equal(inTransaction, false);
  assert.ok(acked.length > 0);
  assert.deepEqual(kept.sort(), acked.sort());
});
