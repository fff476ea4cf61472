import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FireView } from '../../wire/alarm.ts';
import { renderFireStages } from './log-screen.ts';
import type { Reader } from './render.ts';

const look: Reader = {
  now: Date.parse('2026-06-15T12:20:00Z'),
  zone: 'Europe/Paris',
  width: 80,
  paint: (_, text) => text,
};

const ALARM = { status: 'active', failure_count: 0 } as const;
const fire = (change: Partial<FireView> = {}): FireView => ({
  fire_id: '019ed2b4-7c11-7000-8000-000000000001@1781525400000',
  scheduled_for: '2026-06-15T12:10:00.000Z',
  attempt: 1,
  started_at: '2026-06-15T12:10:00.012Z',
  finished_at: '2026-06-15T12:10:01.300Z',
  lateness_ms: 12,
  outcome: 'delivered',
  http_status: 202,
  machine_ready_at: '2026-06-15T12:10:01.200Z',
  accepted_at: '2026-06-15T12:10:01.300Z',
  reached: 'accepted',
  ...change,
});
const turn = { started_at: '2026-06-15T12:10:01.310Z', finished_at: '2026-06-15T12:10:12.000Z' };

test('a fire that was only accepted is never said to be done', () => {
  assert.deepEqual(renderFireStages(ALARM, [fire()], look), [
    '',
    'How far it got',
    '  due            14:10:00  12 ms late',
    '  machine ready  14:10:01  +1.2 s',
    '  accepted       14:10:01  +1.3 s',
    '  turn           accepted; no turn report yet',
  ]);
});

test('a turn is done, failed for a reason, or ended with an unknown outcome', () => {
  const endings = (ending: FireView['turn']) => renderFireStages(ALARM, [fire({ turn: ending })], look).at(-1);
  assert.equal(endings({ ...turn, ok: true }), '  turn finished  14:10:12  +12 s  done');
  assert.equal(
    endings({ ...turn, ok: false, error: 'no\nmodel' }),
    '  turn finished  14:10:12  +12 s  failed: no\\nmodel',
  );
  assert.equal(endings({ ...turn }), '  turn finished  14:10:12  +12 s  outcome unknown');
  assert.equal(endings({ started_at: turn.started_at }), '  turn started   14:10:01  +1.3 s');
});

test('the attempts at one fire make one block, and only the latest fires are shown', () => {
  const { accepted_at: _, ...rest } = fire({ outcome: 'failed', http_status: 503 });
  const waiting = renderFireStages(ALARM, [{ ...rest, attempt: 2 }, rest], look);
  assert.deepEqual(waiting.slice(1), [
    'How far it got',
    '  due            14:10:00  12 ms late',
    '  machine ready  14:10:01  +1.2 s',
    '  accepted       not yet',
  ]);
  const fires = [1, 2, 3, 4].map((n) => fire({ fire_id: `x@${n}` }));
  const lines = renderFireStages(ALARM, fires, look);
  assert.equal(lines[1], 'How far the latest 3 got');
  assert.equal(lines.filter((line) => line.includes('due')).length, 3);
  assert.deepEqual(renderFireStages(ALARM, [], look), []);
});

test('a fire without a known acceptance, and a missed one, are not shown as upcoming', () => {
  const { accepted_at: _, machine_ready_at: __, reached: ___, ...rest } = fire();
  const accepted = (...attempts: Partial<FireView>[]) =>
    renderFireStages(
      ALARM,
      attempts.map((attempt) => ({ ...rest, ...attempt })),
      look,
    ).find((line) => line.includes('accepted'));
  assert.equal(accepted({ outcome: 'missed' }), '  accepted  no, it was missed');
  assert.equal(accepted({ outcome: 'unknown' }), '  accepted  not known');
  assert.equal(accepted({ outcome: 'failed', attempt: 2 }, { outcome: 'unknown' }), '  accepted  not known');
  assert.equal(accepted({ outcome: 'failed' }), '  accepted  not yet');
  const abandoned = renderFireStages({ status: 'failed', failure_count: 3 }, [{ ...rest, outcome: 'failed' }], look);
  assert.equal(abandoned.at(-1), '  accepted  no, it was abandoned');
});
