/**
 * A file of schema 8, with rows in every state, keeps its alarms and fires them. `sqlite-schema-8.json` has its rows
 * and the store's answers; that version wrote both.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SQLInputValue } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { AlarmState, Attempt } from '../../../src/chronos/alarm/alarm.ts';
import { MIGRATIONS, openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { openDatabase } from '../../../src/kit/sqlite/open.ts';
import { COLUMN_FIELDS, fieldOf, memberOf } from '../../../src/wire/alarm-fields.ts';
import { attemptOf, claim, firedForGood, keyOf } from './fixtures.ts';

/** The present of that version's tests. */
const NOW = Date.UTC(2027, 2, 4, 5, 6, 7, 89);

type Kept = {
  tables: Record<string, Record<string, SQLInputValue>[]>;
  states: AlarmState[];
  attempts: Attempt[][];
  nextDue: number;
  countDue: number;
};

const kept: Kept = JSON.parse(readFileSync(new URL('./sqlite-schema-8.json', import.meta.url), 'utf8'));
// Later tables and columns begin with these.
const ABSENT = Object.fromEntries(COLUMN_FIELDS.map((name) => [memberOf(name), fieldOf(name).absent]));
for (const state of kept.states) {
  state.alarm = { ...ABSENT, ...state.alarm };
  // A claim has no end of its own any more.
  for (const occurrence of state.occurrences) {
    Reflect.deleteProperty(occurrence, 'leaseUntil');
    occurrence.cause = null;
  }
}
for (const attempt of kept.attempts.flat()) Object.assign(attempt, { lateBecause: null, cause: null });

/** Creates the file by the migrations of that time. */
function makeFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-schema-8-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of readdirSync(fileURLToPath(MIGRATIONS)))
    if (name < '0009') copyFileSync(new URL(name, MIGRATIONS), join(folder, name));
  const path = join(folder, 'chronos.db');
  const file = openDatabase({ path, migrations: folder, clock: systemClock, lock: 'exclusive' });
  for (const [table, rows] of Object.entries(kept.tables)) {
    for (const row of rows) {
      const names = Object.keys(row);
      file.db
        .prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`)
        .run(...Object.values(row));
    }
  }
  file.close();
  return path;
}

const open = (path: string) => openSqliteStore({ path, clock: systemClock, log: silentLogger });
const labelled = (label: string) => kept.states.find(({ alarm }) => alarm.label === label)!;

test('a file of schema 8 gives the same answers for every alarm, claims included', async (t) => {
  const store = open(makeFile(t));
  t.after(() => store.close());
  for (const [index, { alarm, occurrences }] of kept.states.entries()) {
    assert.deepEqual(await store.get(alarm.owner, alarm.id), { alarm, occurrences }, alarm.label);
    assert.deepEqual(await store.attempts(alarm.owner, alarm.id, { limit: 10 }), kept.attempts[index], alarm.label);
  }
  assert.equal(await store.nextDueAt(new Set()), kept.nextDue);
  assert.equal(await store.countDue({ now: NOW + 5000, atMost: 100 }), kept.countDue);
  const { owner } = labelled('fired').alarm;
  const firedAlarms = await store.list(owner, { status: 'fired', limit: 10 });
  assert.deepEqual(
    firedAlarms.map(({ alarm }) => alarm.label),
    ['fired'],
  );
  const keyed = await store.findByKey(owner, 'k1');
  assert.deepEqual(keyed, labelled('series'));
  const [fired] = kept.attempts[0]!;
  const receipts = await store.turnReportsOf(owner, fired!.alarmId, [fired!.fireId]);
  assert.equal(receipts[0]?.turnId, 't1');
});

test('the holder of a claim in it may still end it', async (t) => {
  const store = open(makeFile(t));
  t.after(() => store.close());
  const { alarm, occurrences } = labelled('leased');
  const leased = { alarm, occurrence: occurrences[0]! };
  const completion = { key: keyOf(leased), attempt: attemptOf(leased), settle: firedForGood(leased.occurrence.fireId) };
  assert.deepEqual(await store.complete([completion]), ['applied']);
  assert.equal((await store.get(alarm.owner, alarm.id))?.alarm.status, 'fired');
});

test('its claims can be ended, and every due occurrence in it fires', async (t) => {
  const store = open(makeFile(t));
  t.after(() => store.close());
  assert.equal(await store.endOrphanedClaims(NOW + 5), 3);
  const interrupted = labelled('leased twice').alarm;
  const ledger = await store.attempts(interrupted.owner, interrupted.id, { limit: 3 });
  const second = ledger.find(({ attempt }) => attempt === 2);
  assert.deepEqual([second?.outcome, second?.finishedAt], ['unknown', NOW + 5]);
  const now = NOW + 3_600_000;
  const claims = await claim(store, { now });
  assert.deepEqual(claims.map(({ alarm }) => alarm.label).sort(), [
    'held',
    'leased',
    'leased twice',
    'retrying',
    'series',
    'triggered',
    'triggered',
    'waiting',
  ]);
  const again = claims.find(({ alarm }) => alarm.label === 'leased twice')!.occurrence;
  assert.deepEqual([again.attempt, again.fence], [3, 3]);
});
