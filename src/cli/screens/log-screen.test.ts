import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTurnOpen } from '../../chronos/client.ts';
import type { FireView } from '../../wire/alarm.ts';
import { entriesOf } from '../log/entries.ts';
import { NO_WORD_MS } from '../log/open-turns.ts';
import { renderEntry } from './log-screen.ts';
import type { Reader } from './render.ts';

const look: Reader = {
  now: Date.parse('2026-06-15T12:20:00Z'),
  zone: 'Europe/Paris',
  width: 80,
  paint: (_, text) => text,
};
const ALARM = { id: '019ed2b4-7c11-7000-8000-000000000001', label: 'build', wake_message: 'Look' };
const fire = (change: Partial<FireView> = {}): FireView => ({
  fire_id: `${ALARM.id}@1781525400000`,
  scheduled_for: '2026-06-15T12:10:00.000Z',
  attempt: 1,
  started_at: '2026-06-15T12:10:00.012Z',
  finished_at: '2026-06-15T12:10:01.300Z',
  accepted_at: '2026-06-15T12:10:01.300Z',
  lateness_ms: 12,
  outcome: 'delivered',
  ...change,
});
const waits = { at: '2026-06-15T12:10:10.000Z', retry_at: '2026-06-15T12:10:40.000Z', error: 'the endpoint\nis away' };
const lines = (...fires: FireView[]) => entriesOf(ALARM, fires).flatMap((entry) => renderEntry(entry, look));

test('a reply without a notification is shown as nothing to report', () => {
  const turn = { finished_at: '2026-06-15T12:10:45.000Z', ok: true, reply: 'NOTHING_TO_REPORT\n' };
  const shown = lines(fire({ turn })).slice(-2);
  assert.deepEqual(shown, ['14:10:45  reply  build', '          nothing to report']);
});

test('a fire, the failure that passed and the reply are listed in the order in which they happened', () => {
  const turn = { finished_at: '2026-06-15T12:10:45.000Z', ok: true, reply: 'Green.\nAll of it.', waits };
  assert.deepEqual(lines(fire({ turn })), [
    '14:10:01  fired  build: 12 ms late',
    '14:10:10  waits  build: turn failed, next attempt 14:10:40: the endpoint\\nis',
    '          away',
    '14:10:45  reply  build',
    '          │ Green.',
    '          │ All of it.',
  ]);
});

test('a turn that ended before its wake was confirmed is listed after it', () => {
  const turn = { started_at: '2026-06-15T12:10:00.900Z', finished_at: '2026-06-15T12:10:00.950Z', ok: true };
  assert.deepEqual(lines(fire({ turn })), ['14:10:00  fired  build: 12 ms late', '14:10:00  reply  build']);
});

test('an attempt that was not accepted, a failed turn and a missed one have a remedy', () => {
  const refused = fire({ outcome: 'failed', error: 'busy', finished_at: '2026-06-15T12:10:00.500Z' });
  const turn = { finished_at: '2026-06-15T12:10:45.000Z', ok: false, error: 'no such model' };
  const shown = lines(
    fire({ attempt: 2, turn }),
    refused,
    fire({ fire_id: 'x@1', outcome: 'missed', error: 'too late' }),
  );
  assert.match(shown.join('\n'), /failed {2}build: not delivered: busy/);
  assert.match(
    lines(fire({ outcome: 'unknown', error: 'cut off' })).join(),
    /unknown {2}build: delivery not known: cut/,
  );
  assert.match(
    shown.join('\n'),
    /failed {2}build: the turn failed: no such model; repeat it with:\s+reveille\s+alarm redrive/,
  );
  assert.match(shown.join('\n'), /missed {2}build: too late/);
});

test('a late fire shows the reason, and the start time of its machine when it is known', () => {
  const late = { started_at: '2026-06-15T12:10:00.000Z', lateness_ms: 720_000 } as const;
  const slept = fire({ ...late, late_because: 'slept', machine_ready_at: '2026-06-15T12:10:00.900Z' });
  assert.deepEqual(lines(slept), ['14:10:01  fired  build: 12 min late: the computer slept']);
  const slow = fire({ ...late, late_because: 'not_running', machine_ready_at: '2026-06-15T12:10:04.200Z' });
  const said = lines(slow).join(' ').replaceAll(/\s+/g, ' ');
  assert.match(said, /12 min late: Reveille was not running; the machine took 4\.2 s to start/);
  const missed = fire({ ...late, outcome: 'missed', error: 'too late', late_because: 'slept' });
  assert.match(lines(missed).join(' '), /missed {2}build: too late; the computer slept/);
});

test('the terminal never executes external text', () => {
  const turn = { finished_at: '2026-06-15T12:10:45.000Z', ok: true, reply: 'a\u001b[2Jb' };
  assert.ok(lines(fire({ turn })).every((line) => !line.includes('\u001b')));
});

test('a turn is followed until it has ended, and one without reports only for a limited time', () => {
  const at = Date.parse('2026-06-15T12:11:00Z');
  assert.equal(isTurnOpen(fire(), at, NO_WORD_MS), true);
  assert.equal(isTurnOpen(fire(), at + 3600_000, NO_WORD_MS), false);
  assert.equal(isTurnOpen(fire({ turn: { waits } }), at + 3600_000), true);
  assert.equal(isTurnOpen(fire({ turn: { finished_at: waits.at, ok: true } }), at), false);
  assert.equal(isTurnOpen(fire({ outcome: 'failed' }), at), false);
});
