import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { ChronometricError } from '../chronometric-error.ts';
import { openState } from './open-state.ts';
import { BEAT_MS, type ChronometricState } from './state.ts';
import { DAY_MS, dayEnd, stateBench } from './testing/state-bench.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const refusal = (code: string) => (thrown: unknown) => thrown instanceof ChronometricError && thrown.code === code;
const unavailable = (thrown: unknown) => thrown instanceof ReveilleError && thrown.code === 'unavailable';

/** Records presence for a number of milliseconds. */
function presence(state: ChronometricState, clock: ManualClock) {
  return async (ms: number) => {
    for (let left = ms; left > 0; left -= BEAT_MS) {
      state.beat(clock.now());
      await clock.advance(Math.min(BEAT_MS, left));
    }
    state.beat(clock.now());
  };
}

test('a session starts, counts time, ends, and survives a restart', async (t) => {
  const { clock, state, another } = stateBench(t);
  const begin = clock.now();
  const { session, autoClosed } = state.start('write the plan', begin, 'auto_close');
  assert.match(session.id, UUID_V4);
  assert.equal(autoClosed, undefined);
  await presence(state, clock)(30 * MINUTE);
  state.close();
  const later = another();
  assert.deepEqual(later.open(), {
    ...session,
    lastSeenAt: begin + 30 * MINUTE,
    activeMs: 30 * MINUTE,
    activeSinceBreakMs: 30 * MINUTE,
  });
  clock.jump(10 * MINUTE);
  const ended = later.end('half of it', clock.now());
  assert.deepEqual(ended, {
    ...session,
    lastSeenAt: begin + 40 * MINUTE,
    endedAt: begin + 40 * MINUTE,
    summary: 'half of it',
    ending: 'ended',
    activeMs: 30 * MINUTE,
    activeSinceBreakMs: 0,
  });
  assert.equal(later.open(), undefined);
  assert.throws(() => later.end(undefined, clock.now()), refusal('NO_OPEN_SESSION'));
  assert.deepEqual(later.sessionsBetween(begin, begin + 1), [ended]);
});

test('intent and summary are returned unchanged, for all text', (t) => {
  const { clock, state, another } = stateBench(t);
  const reader = another();
  const samples = [
    '  spaces kept \n',
    'NUL \0 inside',
    '🎉👩‍👩‍👧',
    'שלום ‮rtl‬',
    '\ud800 half',
    "'); DROP TABLE sessions; --",
    '"',
  ];
  const text = fc.oneof(fc.constantFrom(...samples), fc.string({ unit: anyCharacter, minLength: 1 }));
  fc.assert(
    fc.property(text, fc.option(text, { nil: undefined }), (intent, summary) => {
      state.start(intent, clock.now(), 'auto_close');
      assert.equal(reader.open()!.intent, intent);
      const ended = reader.end(summary, clock.now());
      assert.deepEqual([ended.intent, ended.summary], [intent, summary]);
      assert.equal('summary' in ended, summary !== undefined);
    }),
    { numRuns: 50 },
  );
});

test('two servers share one session', (t) => {
  const { clock, state, another } = stateBench(t);
  const other = another();
  const { session } = state.start('together', clock.now(), 'error');
  assert.deepEqual(other.open(), session);
  assert.throws(() => other.start('alone', clock.now(), 'error'), refusal('SESSION_ALREADY_OPEN'));
  other.end('done', clock.now());
  assert.equal(state.open(), undefined);
});

test('no error message contains an intent or a summary', (t) => {
  const { clock, state } = stateBench(t);
  assert.throws(
    () => state.end('canary', clock.now()),
    (error) => !String(error).includes('canary'),
  );
  state.start('canary', clock.now(), 'error');
  assert.throws(
    () => state.start('canary', clock.now(), 'error'),
    (error) => !String(error).includes('canary'),
  );
});

test('a session forgotten in the evening ends at its last sign, not at the next prompt or start', async (t) => {
  const { clock, state } = stateBench(t);
  const begin = clock.now();
  state.start('evening', begin, 'auto_close');
  await clock.advance(HOUR);
  state.prompted(clock.now());
  await presence(state, clock)(20 * MINUTE);
  const seen = clock.now();
  clock.jump(DAY_MS);
  state.beat(clock.now());
  state.prompted(clock.now());
  assert.equal(state.open()!.lastSeenAt, seen);
  clock.jump(MINUTE);
  const { autoClosed } = state.start('morning', clock.now(), 'auto_close');
  assert.deepEqual(
    [autoClosed!.intent, autoClosed!.endedAt, autoClosed!.ending, autoClosed!.activeMs],
    ['evening', seen, 'auto_closed', 20 * MINUTE],
  );
});

test('a prompt after a break on the same day continues the session; the start that closes it does not', async (t) => {
  const { clock, state } = stateBench(t);
  state.start('one', clock.now(), 'auto_close');
  clock.jump(2 * HOUR);
  const prompted = clock.now();
  state.prompted(prompted);
  clock.jump(2 * HOUR);
  const { autoClosed } = state.start('two', clock.now(), 'auto_close');
  assert.equal(autoClosed!.endedAt, prompted);
});

test('a refused start continues the open session', (t) => {
  const { clock, state } = stateBench(t);
  state.start('one', clock.now(), 'auto_close');
  clock.jump(HOUR);
  assert.throws(() => state.start('two', clock.now(), 'error'), refusal('SESSION_ALREADY_OPEN'));
  assert.equal(state.open()!.lastSeenAt, clock.now());
});

test('a prompt returns the time of the previous one, from any program and after a restart', (t) => {
  const { clock, state, another } = stateBench(t);
  const other = another();
  const begin = clock.now();
  assert.equal(state.prompted(begin), undefined);
  assert.equal(other.prompted(begin + 5000), begin);
  state.close();
  assert.equal(another().prompted(begin + 7000), begin + 5000);
  assert.equal(other.lastPromptAt(), begin + 7000);
  assert.equal(other.prompted(begin - HOUR), begin - HOUR, 'not later than now');
});

test('reading creates no folder and no file, and changes no byte of existing files', (t) => {
  const { clock, state, dataDir, another } = stateBench(t);
  const readAll = (one: ChronometricState) => [
    one.open(),
    one.lastPromptAt(),
    one.sessionsBetween(0, clock.now() + 1),
    one.spansBetween(0, clock.now()),
  ];
  rmSync(dataDir, { recursive: true });
  assert.deepEqual(readAll(state), [undefined, undefined, [], []]);
  assert.equal(existsSync(dataDir), false);
  const { session } = state.start('one', clock.now(), 'error');
  state.prompted(clock.now());
  const files = () => readdirSync(dataDir).map((name) => [name, readFileSync(join(dataDir, name), 'latin1')]);
  const bytesOfFile = () => files().filter(([name]) => !name!.endsWith('-shm'));
  const whileOpen = bytesOfFile();
  assert.deepEqual(readAll(another()), [session, clock.now(), [session], []], 'beside a server that writes');
  assert.deepEqual(bytesOfFile(), whileOpen);
  state.close();
  const atRest = files();
  assert.deepEqual(
    atRest.map(([name]) => name),
    ['chronometric.db'],
  );
  assert.deepEqual(readAll(another()), [session, clock.now(), [session], []], 'no other process has it open');
  assert.deepEqual(files(), atRest);
});

test('after a clock that stepped back, no value is negative', async (t) => {
  const { clock, state } = stateBench(t);
  const begin = clock.now();
  state.start('one', begin, 'auto_close');
  await presence(state, clock)(30 * MINUTE);
  clock.jump(-HOUR);
  assert.deepEqual([state.open()!.activeMs, state.open()!.lastSeenAt], [0, begin]);
  const { autoClosed } = state.start('two', clock.now(), 'auto_close');
  assert.deepEqual([autoClosed!.endedAt, autoClosed!.activeMs], [begin, 0]);
  clock.jump(-HOUR);
  const ended = state.end(undefined, clock.now());
  assert.deepEqual([ended.endedAt, ended.activeMs], [ended.startedAt, 0]);
});

test('sessions are found by overlap with a half-open interval', (t) => {
  const { state } = stateBench(t);
  const at = (hour: number) => new ManualClock().now() - DAY_MS + hour * HOUR;
  for (const [from, to] of [
    [1, 2],
    [2, 4],
    [5, 5],
  ]) {
    state.start(`from ${from}`, at(from!), 'auto_close');
    state.end(undefined, at(to!));
  }
  state.start('open', at(6), 'auto_close');
  const between = (from: number, to: number) => state.sessionsBetween(at(from), at(to)).map(({ intent }) => intent);
  assert.deepEqual(between(0, 9), ['from 1', 'from 2', 'from 5', 'open']);
  assert.deepEqual(between(2, 5), ['from 2']);
  assert.deepEqual(between(3, 5.5), ['from 2', 'from 5']);
  assert.deepEqual(between(7, 8), ['open']);
});

test('a file that another process is creating has no content yet', (t) => {
  const { clock, state, dataDir } = stateBench(t);
  const maker = new DatabaseSync(join(dataDir, 'chronometric.db'));
  t.after(() => maker.close());
  const nothing = () => assert.deepEqual([state.open(), state.sessionsBetween(0, clock.now())], [undefined, []]);
  nothing();
  maker.exec('PRAGMA journal_mode = WAL');
  nothing();
  maker.exec('CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY) STRICT');
  nothing();
});

test('an unusable folder fails every call, and is used as soon as it becomes usable', (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  writeFileSync(dataDir, 'a file, not a folder');
  const clock = new ManualClock();
  const state = openState({ dataDir, clock, dayEnd });
  t.after(() => state.close());
  assert.throws(() => state.prompted(clock.now()), unavailable);
  assert.throws(() => state.open(), unavailable);
  assert.throws(
    () => state.start('canary', clock.now(), 'auto_close'),
    (error) => unavailable(error) && !String(error).includes('canary'),
  );
  rmSync(dataDir);
  assert.equal(state.prompted(clock.now()), undefined);
});

test('a pipe or a folder in place of the file is an error, and the call does not block', (t) => {
  const { state, dataDir } = stateBench(t);
  const path = join(dataDir, 'chronometric.db');
  const isExpected = (thrown: unknown) =>
    unavailable(thrown) && /chronometric\.db cannot be read: it is not a file/.test(`${thrown}`);
  mkdirSync(path);
  assert.throws(() => state.open(), isExpected);
  rmSync(path, { recursive: true });
  if (spawnSync('mkfifo', [path]).status !== 0) return t.diagnostic('NOT SHOWN: this system has no named pipes');
  assert.throws(() => state.lastPromptAt(), isExpected);
});

test('a server whose data folder was moved or restored continues with the current files and does not damage them', (t) => {
  const { clock, state, dataDir, another } = stateBench(t);
  state.start('old', clock.now(), 'auto_close');
  renameSync(dataDir, `${dataDir}-away`);
  t.after(() => rmSync(`${dataDir}-away`, { recursive: true, force: true }));
  const other = another();
  assert.equal(other.open(), undefined);
  const { session } = other.start('new', clock.now(), 'error');
  assert.deepEqual(state.open(), session, 'the session of the other server');
  assert.deepEqual(another().open(), session, 'closing the old file did not change it');
  rmSync(dataDir, { recursive: true });
  renameSync(`${dataDir}-away`, dataDir);
  assert.equal(state.open()?.intent, 'old');
});

test('a call fails while another program locks the file, and the next call works', (t) => {
  const { clock, state, dataDir } = stateBench(t);
  state.start('one', clock.now(), 'auto_close');
  const holder = new DatabaseSync(join(dataDir, 'chronometric.db'));
  t.after(() => holder.close());
  holder.exec('BEGIN IMMEDIATE');
  assert.throws(() => state.prompted(clock.now()), unavailable);
  assert.equal(state.open()?.intent, 'one', 'reading still works');
  holder.exec('ROLLBACK');
  assert.equal(state.end('done', clock.now()).summary, 'done');
});

test('on a full disk a write fails with nothing stored, and acknowledged sessions remain', (t) => {
  const entry = fileURLToPath(import.meta.resolve('./testing/full-disk.fixture.ts'));
  const { clock, dataDir, state } = stateBench(t);
  // The shell's file size limit simulates a full disk: every file ends at 512 KiB.
  const args = ['-c', 'ulimit -f 1024; exec "$0" "$@"', process.execPath, entry, dataDir];
  const report = JSON.parse(spawnSync('/bin/sh', args, { encoding: 'utf8', timeout: 60_000 }).stdout);
  assert.deepEqual([report.error.code, report.error.retryable], ['unavailable', true]);
  assert.ok(!report.error.message.includes('canary'));
  assert.equal(report.openWhenFull, true, 'reading still works');
  const open = state.open();
  const stored = state.sessionsBetween(0, clock.now() + 1000 * DAY_MS);
  assert.equal(stored.length, report.acknowledged);
  assert.ok(open);
});

test('spans of more than a year are kept, and the oldest beyond the limit are deleted', async (t) => {
  const { clock, state, another, dataDir } = stateBench(t);
  state.beat(clock.now());
  state.close();
  const db = new DatabaseSync(join(dataDir, 'chronometric.db'));
  const first = clock.now() - 20_005 * HOUR;
  db.exec(`
    WITH RECURSIVE hours (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM hours WHERE n < 20004)
    INSERT INTO spans SELECT ${first} + n * ${HOUR}, ${first} + n * ${HOUR} + ${MINUTE} FROM hours`);
  db.close();
  const next = another();
  next.beat(clock.now());
  const kept = next.spansBetween(0, clock.now());
  assert.equal(kept.length, 20_000);
  assert.equal(kept[0]!.from, first + 6 * HOUR);
});
