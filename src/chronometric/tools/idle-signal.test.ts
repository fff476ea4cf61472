import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idleStatusSchema } from '../../wire/chronometric.ts';
import { callContextAt, MINUTE } from '../testing/call-context.ts';
import { idleStatus } from '../tool-calls.ts';

const AT = '2026-06-15T10:00:00+02:00';
const NOW = Date.parse(AT);

/** The signal for so many seconds of idle time and so many minutes since the last prompt. */
function signal(idleSeconds: number, sincePromptMinutes?: number): string {
  const lastPromptAt = sincePromptMinutes === undefined ? undefined : NOW - sincePromptMinutes * MINUTE;
  const status = idleStatus({ idleMs: idleSeconds * 1000, source: 'x11' }, callContextAt(AT), lastPromptAt);
  idleStatusSchema.parse(status);
  return status.hyperfocus_signal;
}

test('somebody at the machine is active while in touch, and elsewhere after ten minutes', () => {
  assert.equal(signal(0, 0), 'active');
  assert.equal(signal(59, 9.9), 'active');
  assert.equal(signal(59, 10), 'hyperfocus_elsewhere');
  assert.equal(signal(0, 600), 'hyperfocus_elsewhere');
});

test('somebody who pauses for less than a real break counts as active, and then as away', () => {
  assert.equal(signal(60, 600), 'active');
  assert.equal(signal(299, 0), 'active');
  assert.equal(signal(300, 0), 'distraction_or_break');
  assert.equal(signal(300, 600), 'distraction_or_break');
});

test('where no prompt is known, and after a clock that stepped back, they count as in touch', () => {
  assert.equal(signal(5), 'active');
  assert.equal(signal(5, -600), 'active');
});

test('a reading is told with its source and its moment, in the zone of the person', () => {
  assert.deepEqual(idleStatus({ idleMs: 61_999, source: 'kde' }, callContextAt('2026-06-15T10:00:02+02:00'), NOW), {
    consent_granted: true,
    os_idle_duration: 'PT1M1S',
    hyperfocus_signal: 'active',
    sampled_at: '2026-06-15T10:00:02+02:00',
    source: 'kde',
  });
});

test('without a reading nothing is known, and the reason is told', () => {
  assert.deepEqual(idleStatus({ unavailable: 'x11: no display' }, callContextAt(AT), NOW), {
    consent_granted: true,
    hyperfocus_signal: 'unknown',
    unavailable: 'x11: no display',
  });
});

test('without a clock or a zone a reading is told without its moment', () => {
  assert.deepEqual(idleStatus({ idleMs: 5000, source: 'x11' }, undefined, NOW), {
    consent_granted: true,
    os_idle_duration: 'PT5S',
    hyperfocus_signal: 'active',
    source: 'x11',
  });
});
