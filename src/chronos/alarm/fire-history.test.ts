import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Attempt } from './alarm.ts';
import { type StoredTurnReport, viewFires } from './fire-history.ts';

const ALARM = '019ed2b4-7c11-7000-8000-000000000001';
const DUE = Date.UTC(2026, 5, 15, 8, 10);
const FIRE = `${ALARM}@${DUE}`;

const attempt = (change: Partial<Attempt> = {}): Attempt => ({
  fireId: FIRE,
  alarmId: ALARM,
  owner: 'ada',
  scheduledFor: DUE,
  attempt: 1,
  startedAt: DUE,
  finishedAt: DUE + 40,
  outcome: 'failed',
  httpStatus: 503,
  error: 'busy',
  missedCount: 0,
  machineReadyMs: null,
  lateBecause: null,
  cause: null,
  ...change,
});
const report = (change: Partial<StoredTurnReport>): StoredTurnReport => ({
  owner: 'ada',
  alarmId: ALARM,
  fireId: FIRE,
  stage: 'turn_started',
  at: DUE + 50,
  outcome: null,
  error: null,
  turnId: 't1',
  conversationId: 'c1',
  retryAt: null,
  reply: null,
  usage: null,
  recordedAt: DUE + 60,
  ...change,
});
const reached = (attempts: Attempt[], receipts: StoredTurnReport[] = []) =>
  viewFires(attempts, receipts).map((fire) => fire.reached);

test('the progress of a fire is the furthest stage of its attempts and turn reports', () => {
  const failed = attempt();
  const ready = attempt({ attempt: 2, machineReadyMs: 20 });
  const accepted = attempt({ attempt: 3, outcome: 'delivered', httpStatus: 202, error: null });
  assert.deepEqual(reached([failed]), [undefined]);
  assert.deepEqual(reached([ready, failed]), ['machine_ready', 'machine_ready']);
  assert.deepEqual(reached([accepted, ready, failed]), ['accepted', 'accepted', 'accepted']);
  assert.deepEqual(reached([accepted], [report({})]), ['turn_started']);
  const finished = report({ stage: 'turn_finished', outcome: 'ok' });
  assert.deepEqual(reached([accepted], [finished, report({})]), ['turn_finished']);
  // The answer was lost, but the turn ran.
  assert.deepEqual(reached([attempt({ outcome: 'unknown' })], [report({})]), ['turn_started']);
  assert.deepEqual(reached([attempt({ fireId: `${ALARM}@${DUE + 1}` })], [report({})]), [undefined]);
});

test('members that the end of a turn omits come from its start', () => {
  const finished = report({
    stage: 'turn_finished',
    outcome: 'unknown',
    turnId: null,
    conversationId: null,
    at: DUE + 90,
  });
  const [fire] = viewFires([attempt()], [report({}), finished]);
  assert.deepEqual(fire!.turn, {
    turn_id: 't1',
    conversation_id: 'c1',
    started_at: '2026-06-15T08:10:00.050Z',
    finished_at: '2026-06-15T08:10:00.090Z',
  });
  const [bare] = viewFires([attempt()], [finished]);
  assert.deepEqual(bare!.turn, { finished_at: '2026-06-15T08:10:00.090Z' });
});
