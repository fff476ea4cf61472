import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { cancelAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ADA, alarmDue, BOB, claim, createDue, delivered, edited, NO_LIMIT, NOW, withCode } from './fixtures.ts';

function temporaryPath(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-sqlite-store-'));
  context.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'chronos.db');
}

function open(path: string, log = silentLogger) {
  return openSqliteStore({ path, clock: systemClock, log });
}

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/** The contents of the write-ahead log: each transaction ends with a frame with the size of the database. */
function writtenTo(path: string): { transactions: number; bytes: number } {
  if (!existsSync(`${path}-wal`)) return { transactions: 0, bytes: 0 };
  const wal = readFileSync(`${path}-wal`);
  const frameBytes = FRAME_HEADER_BYTES + wal.readUInt32BE(8);
  let transactions = 0;
  for (let at = WAL_HEADER_BYTES; at + frameBytes <= wal.length; at += frameBytes) {
    if (wal.readUInt32BE(at + 4) !== 0) transactions++;
  }
  return { transactions, bytes: wal.length };
}

test('a second store on the same file is refused until the first is closed', async (t) => {
  const path = temporaryPath(t);
  const first = open(path);
  assert.throws(() => open(path), withCode('unavailable'));
  await createDue(first, NOW);
  await first.close();
  const second = open(path);
  assert.equal((await second.list(ADA, { limit: 10 })).length, 1);
  await second.close();
});

test('simultaneous creations, completions and claims share one transaction', async (t) => {
  const path = temporaryPath(t);
  const store = open(path);
  t.after(() => store.close());
  await createDue(store, NOW, { owner: BOB });
  const claims = await claim(store);
  const before = writtenTo(path).transactions;

  await Promise.all([
    ...Array.from({ length: 100 }, () => store.create(alarmDue(NOW), NO_LIMIT)),
    store.complete(claims.map(delivered)),
    claim(store),
  ]);
  assert.equal(writtenTo(path).transactions - before, 1);
});

test('an operation without a change writes nothing', async (t) => {
  const path = temporaryPath(t);
  const store = open(path);
  t.after(() => store.close());
  const { alarm } = await createDue(store, NOW + 1);
  const before = writtenTo(path);
  assert.deepEqual(await claim(store), []);
  await store.update(ADA, alarm.id, (state) => state);
  assert.deepEqual(writtenTo(path), before);
});

test('ping writes to the disk, because a full disk can still be read', async (t) => {
  const path = temporaryPath(t);
  const store = open(path);
  t.after(() => store.close());
  const before = writtenTo(path).transactions;
  await store.ping();
  assert.equal(writtenTo(path).transactions - before, 1);
});

test('a long message is written once, however often its alarm is claimed, completed and paused', async (t) => {
  const path = temporaryPath(t);
  const store = open(path);
  t.after(() => store.close());
  const bytes = 64 * 1024;
  const { alarm } = await createDue(store, NOW, { wakeMessage: 'w'.repeat(bytes), payload: `"${'p'.repeat(bytes)}"` });
  const before = writtenTo(path).bytes;
  const claims = await claim(store);
  await store.complete(claims.map(delivered));
  await store.update(ADA, alarm.id, edited({ status: 'paused' }));
  const written = writtenTo(path).bytes - before;
  // Another copy of the two texts alone would take twice as much. The index of ended alarms has a page for each end and
  // return.
  assert.ok(written < bytes + 4 * 4096, `${written} bytes were written`);
});

test('an interrupted attempt that cannot be settled loses its claim, is logged, and does not delay other claims', async (t) => {
  const lines: string[] = [];
  const path = temporaryPath(t);
  const dead = open(path);
  // A series without an expression cannot continue; only a defect makes one.
  const { alarm } = await createDue(dead, NOW, { kind: 'cron', maxFailures: 1 });
  const [first] = await claim(dead);
  await createDue(dead, NOW + 1, { owner: BOB });
  await dead.close();

  const store = open(path, pino({ level: 'error' }, { write: (line: string) => lines.push(line) }));
  t.after(() => store.close());
  assert.equal(await store.endOrphanedClaims(NOW + 5), 1);
  const claims = await claim(store, { now: NOW + 5 });
  assert.deepEqual(
    claims.map(({ alarm: { owner } }) => owner),
    [ADA, BOB],
  );
  assert.deepEqual(claims[0]?.alarm, alarm);
  assert.equal(claims[0]?.occurrence.attempt, 2);
  const [attempt] = await store.attempts(ADA, alarm.id, { limit: 1 });
  assert.equal(attempt?.outcome, 'unknown');
  assert.equal(lines.length, 1);
  assert.equal(JSON.parse(lines[0]!).fire_id, first?.occurrence.fireId);
});

test('the next process on the file may end earlier claims: the outcome is unknown, and the fence still holds', async (t) => {
  const path = temporaryPath(t);
  const dead = open(path);
  await createDue(dead, NOW);
  await createDue(dead, NOW + 1, { owner: BOB });
  const [claimed] = await claim(dead, { limit: 1 });
  await dead.close();

  const store = open(path);
  t.after(() => store.close());
  assert.equal(await store.endOrphanedClaims(NOW + 2), 1);
  assert.equal(await store.endOrphanedClaims(NOW + 3), 0);
  const [attempt] = await store.attempts(ADA, claimed!.alarm.id, { limit: 2 });
  assert.deepEqual([attempt?.outcome, attempt?.startedAt, attempt?.finishedAt], ['unknown', NOW, NOW + 2]);
  assert.equal((await store.get(ADA, claimed!.alarm.id))?.alarm.failureCount, 1);
  assert.equal(await store.nextDueAt(new Set()), NOW);
  assert.deepEqual(await store.complete([delivered(claimed!)]), ['lost_claim']);
  const claims = await claim(store, { now: NOW + 2 });
  assert.deepEqual(
    claims.map(({ occurrence }) => occurrence.attempt),
    [2, 1],
  );
});

/** Runs the child with a file size limit, and returns its output. */
async function runOnSmallDisk(context: TestContext, path: string, kibibytes: number): Promise<string> {
  const script = fileURLToPath(new URL('./fill-disk.ts', import.meta.url));
  // The unit is 512 bytes in a POSIX shell.
  const child = spawn('sh', ['-c', `ulimit -f ${kibibytes * 2}; exec "$0" "$@"`, process.execPath, script, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  context.after(() => child.kill('SIGKILL'));
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk;
  });
  const [code] = await new Promise<[number | null]>((resolve) => child.on('close', (exit) => resolve([exit])));
  assert.equal(code, 0);
  return printed;
}

test('a full disk refuses with unavailable, and everything acknowledged before is kept', async (t) => {
  const path = temporaryPath(t);
  const { acknowledged, refused, code, pinged, readable } = JSON.parse(await runOnSmallDisk(t, path, 2048));
  assert.ok(acknowledged.length > 0);
  assert.deepEqual({ code, pinged }, { code: 'unavailable', pinged: 'unavailable' });
  assert.equal(readable, acknowledged.length);

  const store = open(path);
  t.after(() => store.close());
  const kept = (await store.list(ADA, { limit: 1000 })).map(({ alarm }) => alarm.id);
  assert.deepEqual(kept.toSorted(), acknowledged.toSorted());
  assert.ok(!kept.includes(refused));
  await createDue(store, NOW);
});

test('the next wake of the computer is the earliest occurrence that requests it, is not parked, and has not failed repeatedly', async (t) => {
  const store = open(temporaryPath(t));
  t.after(() => store.close());
  assert.deepEqual(await store.computerWakes!(NOW), {});
  await createDue(store, NOW + 1);
  const { alarm } = await createDue(store, NOW + 2, { wakeComputer: true });
  await createDue(store, NOW + 9, { wakeComputer: true, owner: BOB });
  assert.deepEqual(await store.computerWakes!(NOW + 2), { first: NOW + 2, later: NOW + 9 });
  await store.update(ADA, alarm.id, ({ alarm: it, occurrences }) => ({
    alarm: it,
    occurrences: occurrences.map((one) => ({ ...one, heldReason: 'quiet hours', heldUntil: NOW + 20 })),
  }));
  assert.deepEqual(await store.computerWakes!(NOW), { first: NOW + 9, later: NOW + 9 });
  assert.deepEqual(await store.computerWakes!(NOW + 9), { first: NOW + 9, later: NOW + 20 });
  await store.update(ADA, alarm.id, ({ alarm: it, occurrences }) => ({
    alarm: it,
    occurrences: occurrences.map((one) => ({ ...one, attempt: 3 })),
  }));
  assert.deepEqual(await store.computerWakes!(NOW + 9), { first: NOW + 9 });
  await store.update(ADA, alarm.id, (state) => cancelAlarm(state, NOW + 3));
  assert.deepEqual(await store.computerWakes!(NOW), { first: NOW + 9, later: NOW + 9 });
});
