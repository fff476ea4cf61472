import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FireView } from './alarm.ts';
import { type AlarmNow, eventsOf, firesOf, plainError } from './fire.ts';

test('an envelope in an error is replaced by its message, even if it is cut or nested', () => {
  const inner = '{"ok":false,"error":{"code":"unavailable","message":"the \\"machine\\" sleeps","retryable":true}}';
  assert.equal(plainError(`the router answered 503: ${inner}`), 'the router answered 503: the "machine" sleeps');
  assert.equal(plainError(`the router answered 503: ${inner.slice(0, 62)}`), 'the router answered 503: the "mac');
  const outer = JSON.stringify({
    ok: false,
    error: { code: 'unavailable', message: `it said ${inner}`, retryable: true },
  });
  assert.equal(
    plainError(`the router answered 502: ${outer}`),
    'the router answered 502: it said the "machine" sleeps',
  );
});

test('other errors are unchanged', () => {
  for (const error of ['the router at http://x could not be reached', 'the router answered 500: <html>', '{"ok":false'])
    assert.equal(plainError(error), error);
});

const START = Date.parse('2026-06-15T12:10:00Z');
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString();
const attemptOf = (more: Partial<FireView> = {}): FireView => ({
  ...{ fire_id: 'a@1', scheduled_for: at(0), attempt: 1, started_at: at(0), finished_at: at(1) },
  ...{ lateness_ms: 12, outcome: 'failed', ...more },
});
const accepted = { outcome: 'delivered', accepted_at: at(1) } as const;
const waits = { at: at(5), retry_at: at(35), error: 'no model' };

test('the state, the reason and the next step of a fire follow from its attempts and its turn', () => {
  const stateOf = (alarm: AlarmNow, ...attempts: Partial<FireView>[]) => {
    const [fire] = firesOf(attempts.map(attemptOf), alarm);
    return [fire!.state, fire!.error, fire!.next];
  };
  const active: AlarmNow = { status: 'active', failure_count: 1, next_fire_at: at(60) };
  const stopped: AlarmNow = { status: 'failed', failure_count: 3 };
  const retry = { step: 'retry', at: START + 60_000 };
  assert.deepEqual(stateOf(active, { error: 'busy' }), ['not_delivered', 'busy', retry]);
  assert.deepEqual(stateOf(stopped, { error: 'busy' }), ['not_delivered', 'busy', { step: 'redrive' }]);
  assert.deepEqual(stateOf(active, { attempt: 2 }, { outcome: 'unknown' }), ['delivery_unknown', undefined, retry]);
  assert.deepEqual(stateOf(active, { outcome: 'missed' }), ['missed', undefined, { step: 'nothing' }]);
  assert.deepEqual(stateOf(active, accepted), ['accepted', undefined, { step: 'report' }]);
  const turnOf = (turn: FireView['turn']) => stateOf(active, { ...accepted, turn });
  assert.deepEqual(turnOf({ started_at: at(2) }), ['turn_running', undefined, { step: 'report' }]);
  assert.deepEqual(turnOf({ waits }), ['turn_waits', 'no model', { step: 'retry', at: START + 35_000 }]);
  assert.deepEqual(turnOf({ waits, finished_at: at(40), ok: true }), ['turn_done', undefined, { step: 'nothing' }]);
  assert.deepEqual(turnOf({ finished_at: at(40), ok: false }), ['turn_failed', undefined, { step: 'redrive' }]);
  assert.deepEqual(turnOf({ finished_at: at(40) }), ['turn_unknown', undefined, { step: 'nothing' }]);
  // A machine may report the turn of a wake whose answer was lost.
  assert.equal(stateOf(active, { outcome: 'unknown', turn: { finished_at: at(4), ok: true } })[0], 'turn_done');
});

test('the stages of a fire are those of the attempt that was accepted, and its lateness is that of the first', () => {
  const second = attemptOf({ attempt: 2, ...accepted, accepted_at: at(61), machine_ready_at: at(60), lateness_ms: 9 });
  const [fire] = firesOf([second, attemptOf({ machine_ready_at: at(1) })]);
  assert.deepEqual([fire!.machineReadyAt, fire!.acceptedAt], [START + 60_000, START + 61_000]);
  assert.deepEqual(fire!.lateness, { ms: 12, because: undefined });
  assert.equal(firesOf([second])[0]!.lateness, undefined);
  assert.equal(firesOf([attemptOf({ machine_ready_at: at(1) })])[0]!.machineReadyAt, START + 1000);
});

test('the events of a fire are in order, and a turn never ends before its fire', () => {
  const turn = { finished_at: at(40), ok: true, waits };
  const [fire] = firesOf([attemptOf({ attempt: 2, ...accepted, accepted_at: at(6), turn }), attemptOf({})]);
  const kinds = eventsOf(fire!).map(({ kind, at }) => [kind, (at - START) / 1000]);
  assert.deepEqual(kinds, [
    ['not_delivered', 1],
    ['fired', 5],
    ['turn_waits', 5],
    ['turn_done', 40],
  ]);
});
