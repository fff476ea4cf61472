/** Databases as Reveille 0.1.0 wrote them keep their turns, and the unfinished ones go on. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { Agent } from 'undici';
import { LocalAgentHost as Targets } from '../../../src/agents/host.ts';
import { openConversationStore } from '../../../src/agents/neo/conversations/store.ts';
import { createRunner } from '../../../src/agents/neo/runner.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { openDatabase } from '../../../src/kit/sqlite/open.ts';
import { Isolation } from '../../../src/router/providers/isolation.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

const ALARM = '0197f5a0-0000-7000-8000-00000000000';
const fireOf = (n: number) => `${ALARM}${n}@${n}`;

/** Creates a database by the migrations of that time. */
function databaseOf(
  t: TestContext,
  source: URL,
  before: string,
  file: string,
): { path: string; db: DatabaseSync; close: () => void } {
  const folder = temporaryFolder(t);
  const migrations = join(folder, 'migrations');
  mkdirSync(migrations);
  for (const name of readdirSync(source))
    if (name < before) copyFileSync(new URL(name, source), join(migrations, name));
  const opened = openDatabase({ path: join(folder, file), migrations, clock: new ManualClock(), lock: 'exclusive' });
  atEnd(t, () => opened.close());
  return { path: folder, db: opened.db, close: opened.close };
}

function insert(db: DatabaseSync, table: string, row: Record<string, SQLInputValue>): void {
  const names = Object.keys(row);
  const places = names.map((name) => `:${name}`);
  db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places.join(', ')})`).run(row);
}

/** A report of the end of the first turn, which chronosd has not received. */
const REPORT = {
  ...{ id: 7, user_id: 'alice', fire_id: fireOf(1), stage: 'turn_finished', at: 5, outcome: 'ok', error: null },
  ...{ turn_id: 't1', conversation_id: 'c1', retry_at: null, reply: 'yes' },
};

test("Neo's turns of 0.1.0 are kept, and unfinished ones run", async (t) => {
  const source = new URL('../../../src/agents/neo/conversations/migrations/', import.meta.url);
  const { path, db, close } = databaseOf(t, source, '0007', 'neo.db');
  const clock = new ManualClock();
  const conversation = { created_at: 1, last_activity_at: 5, turn_count: 1, last_message: 'go' };
  for (const id of ['c1', 'c2', 'c3', 'c4', 'c5']) insert(db, 'conversations', { id, ...conversation });
  const turn = (n: number, members: Record<string, SQLInputValue>) =>
    insert(db, 'turns', {
      ...{
        seq: n * 10,
        id: `t${n}`,
        conversation_id: `c${n}`,
        origin: 'chronos',
        fire_id: fireOf(n),
        user_id: 'alice',
      },
      ...{ scheduled_for: n, missed_count: 0, message: `message ${n}`, created_at: clock.now(), ...members },
    });
  const facts = { alarm_id: 'a1', payload: '{"n": 1.0}', label: 'L', set_at: 3, set_by: 'Ann', late_because: 'slept' };
  const ended = { reply: 'yes', model: 'm', started_at: 4, finished_at: 5 };
  turn(1, { ...facts, status: 'done', attempts: 2, retries: 1, ...ended });
  turn(2, { status: 'queued' });
  turn(3, { status: 'running', attempts: 1, started_at: 4 });
  turn(4, { status: 'queued', attempts: 1, retries: 1, retry_at: clock.now() + 60_000, error: 'busy', model: 'm' });
  turn(5, { status: 'running', attempts: 3, started_at: 4 });
  insert(db, 'receipts', REPORT);
  close();

  const store = openConversationStore({ dataDir: path, clock, onTurnReport: () => {} });
  atEnd(t, () => store.close());
  assert.deepEqual(store.turnById('t1'), {
    ...{
      seq: 10,
      id: 't1',
      conversationId: 'c1',
      origin: 'chronos',
      userId: 'alice',
      alarmId: 'a1',
      fireId: fireOf(1),
    },
    ...{ scheduledFor: 1, missedCount: 0, lateBecause: 'slept', label: 'L', setAt: 3, setBy: 'Ann' },
    ...{
      message: 'message 1',
      payload: '{"n": 1.0}',
      status: 'done',
      attempts: 2,
      retries: 1,
      reply: 'yes',
      model: 'm',
    },
    ...{ createdAt: clock.now(), startedAt: 4, finishedAt: 5 },
  });
  const [waiting] = store.outbox.waiting({ after: 0, limit: 9 });
  assert.deepEqual([waiting?.id, waiting?.fireId, waiting?.report.reply], [7, fireOf(1), 'yes']);
  const generate = () => Promise.resolve({ text: 'now', model: 'm' });
  const runner = createRunner({ store, model: { name: 'm', generate }, clock, log: silentLogger });
  runner.start();
  await eventually('the unfinished turns have ended', () => !runner.state().busy);
  const states = ['t2', 't3', 't4', 't5'].map((id) => store.turnById(id)!);
  assert.deepEqual(
    states.map(({ status, attempts }) => [status, attempts]),
    // Turn 4 waited for its endpoint, which has answered turn 2.
    [
      ...[
        ['done', 1],
        ['done', 2],
      ],
      ...[
        ['done', 2],
        ['interrupted', 3],
      ],
    ],
  );
  const { turn: next } = await store.accept({
    ...{ id: 't6', conversationId: 'c1', origin: 'user', message: 'hi', createdAt: clock.now() },
  });
  assert.equal(next.seq, 51);
});

test("a router's turns of 0.1.0 are kept with their sessions, and unfinished ones end", async (t) => {
  const source = new URL('../../../src/agents/migrations/', import.meta.url);
  const { path, db, close } = databaseOf(t, source, '0006', 'turns.db');
  const clock = new ManualClock();
  // Later than the age at which ended turns are deleted.
  const finishedAt = clock.now() - 1000;
  const turn = (n: number, members: Record<string, SQLInputValue>) =>
    insert(db, 'turns', {
      ...{ seq: n * 10, id: `t${n}`, user_id: 'alice', fire_id: fireOf(n), alarm_id: n === 1 ? 'a1' : '' },
      ...{ conversation_id: `c${n}`, named: n % 2, preset: 'claude', message: `message ${n}`, scheduled_for: n },
      ...{ missed_count: 0, accepted_at: n, ...members },
    });
  const facts = { payload: '{"n": 1.0}', label: 'L', set_at: 3, set_by: 'Ann', late_because: 'slept', session: 's1' };
  const process = { handle: 'h', spawn_id: 'spawn' };
  turn(1, { ...facts, ...process, status: 'done', attempts: 1, reply: 'yes', started_at: 4, finished_at: finishedAt });
  turn(2, { status: 'queued', attempts: 1, not_before: 9, waits: 'it is busy' });
  turn(3, { status: 'running', attempts: 1, started_at: 4, spawn_id: 'other', pid: 99, birth: 'b' });
  turn(4, { status: 'accepted', attempts: 0, started_at: 4, finished_at: finishedAt });
  const session = { user_id: 'alice', conversation_id: 'c1', preset: 'claude', session: 's1', cwd: '/tmp' };
  insert(db, 'conversations', { ...session, created_at: 1, updated_at: 5 });
  insert(db, 'receipts', REPORT);
  close();

  const dispatcher = new Agent();
  const targets = new Targets({
    ...{
      dataDir: path,
      presetFolder: join(path, 'presets'),
      channelFolder: '/nowhere',
      dispatcher,
      clock,
      log: silentLogger,
    },
    ...{ environment: {}, isolation: new Isolation({ machines: () => [] }), suspend: () => Promise.resolve() },
    machineOf: () => undefined,
    turnReports: { url: () => undefined, keyOf: () => undefined },
  });
  atEnd(t, () => dispatcher.destroy());
  atEnd(t, () => targets.close());
  const { store } = targets;
  assert.deepEqual(store.turnById('t1'), {
    ...{
      seq: 10,
      id: 't1',
      userId: 'alice',
      conversationId: 'c1',
      origin: 'chronos',
      alarmId: 'a1',
      fireId: fireOf(1),
    },
    ...{ named: true, preset: 'claude', scheduledFor: 1, missedCount: 0, lateBecause: 'slept', label: 'L', setAt: 3 },
    ...{ setBy: 'Ann', message: 'message 1', payload: '{"n": 1.0}', status: 'done', attempts: 1, retries: 0 },
    ...{ session: 's1', handle: 'h', spawnId: 'spawn', reply: 'yes', createdAt: 1, startedAt: 4, finishedAt },
  });
  assert.deepEqual(store.turnById('t3')!.born, { pid: 99, birth: 'b' });
  assert.equal(store.turnById('t2')!.alarmId, undefined);
  assert.deepEqual(
    store.unfinished().map(({ id, retryAt, waits }) => [id, retryAt, waits]),
    [...[['t2', 9, 'it is busy']], ...[['t3', undefined, undefined]]],
  );
  const key = { userId: 'alice', conversationId: 'c1', preset: 'claude' };
  assert.deepEqual(store.sessions.get(key), { session: 's1', cwd: '/tmp' });
  const waiting = store.outbox.waiting({ after: 0, limit: 9 });
  assert.deepEqual(
    waiting.map(({ id, fireId, report }) => [id, fireId, report.reply]),
    [[7, fireOf(1), 'yes']],
  );
  // The machine of the turns is gone: one may have run, and the other certainly did not.
  targets.recover();
  await eventually('the turns have ended', () => store.unfinished().length === 0);
  assert.deepEqual(store.counts('alice'), { accepted: 1, done: 1, failed: 1, unknown: 1 });
});
