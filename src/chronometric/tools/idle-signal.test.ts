import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idleStatusSchema } from '../../wire/chronometric.ts';
import { callContextAt, MINUTE } from '../testing/call-context.ts';
import { idleStatus } from '../tool-calls.ts';

const AT = '2026-06-15T10:00:00+02:00';
const NOW = Date.parse(AT);

/** The signal for seconds of idle time and minutes since the last prompt. */
function signal(idleSeconds: number, sincePromptMinutes?: number): string {
  const lastPromptAt = sincePromptMinutes === undefined ? undefined : NOW - sincePromptMinutes * MINUTE;
  const status = idleStatus({ idleMs: idleSeconds * 1000, source: 'x11' }, callContextAt(AT), lastPromptAt);
  idleStatusSchema.parse(status);
  return status.hyperfocus_signal;
}

test('a user at the machine is active, and busy elsewhere ten minutes after the last prompt', () => {
  assert.equal(signal(0, 0), 'active');
  assert.equal(signal(59, 9.9), 'active');
  assert.equal(signal(59, 10), 'hyperfocus_elsewhere');
  assert.equal(signal(0, 600), 'hyperfocus_elsewhere');
});

test('a pause shorter than a real break counts as active, and a longer one as away', () => {
  assert.equal(signal(60, 600), 'active');
  assert.equal(signal(299, 0), 'active');
  assert.equal(signal(300, 0), 'distraction_or_break');
  assert.equal(signal(300, 600), 'distraction_or_break');
});

test('without a known prompt, and after a clock that stepped back, the user counts as in contact', () => {
  assert.equal(signal(5), 'active');
  assert.equal(signal(5, -600), 'active');
});

test('a reading has its source and its time in the zone of the user', () => {
  assert.deepEqual(idleStatus({ idleMs: 61_999, source: 'kde' }, callContextAt('2026-06-15T10:00:02+02:00'), NOW), {
    consent_granted: true,
    os_idle_duration: 'PT1M1S',
    hyperfocus_signal: 'active',
    sampled_at: '2026-06-15T10:00:02+02:00',
    source: 'kde',
  });
});

test('without a reading the signal is unknown, with the reason', () => {
  assert.deepEqual(idleStatus({ unavailable: 'x11: no display' }, callContextAt(AT), NOW), {
    consent_granted: true,
    hyperfocus_signal: 'unknown',
    unavailable: 'x11: no display',
  });
});

test('without a clock or a zone a reading has no time', () => {
  assert.deepEqual(idleStatus({ idleMs: 5000, source: 'x11' }, undefined, NOW), {
    consent_granted: true,
    os_idle_duration: 'PT5S',
    hyperfocus_signal: 'active',
    source: 'x11',
  });
});
