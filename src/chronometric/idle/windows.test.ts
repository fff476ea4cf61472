import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assert as hold, integer, property } from 'fast-check';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { readIdle } from './open-idle.ts';
import { idleBetween, windowsProbe } from './windows.ts';

const TICKS = 2 ** 32;

test('idle time continues when the tick counter restarts at 0', () => {
  assert.equal(idleBetween(1000, 4000), 3000);
  assert.equal(idleBetween(TICKS - 1000, 2000), 3000);
  assert.equal(idleBetween(TICKS - 1, 0), 1);
  assert.equal(idleBetween(0, TICKS - 60_000), TICKS - 60_000);
});

test('input slightly ahead of the counter has an idle time of 0', () => {
  assert.equal(idleBetween(4000, 3990), 0);
  assert.equal(idleBetween(5, TICKS - 5), 0);
});

test('every idle time of less than 49 days is read correctly from every counter value', () => {
  hold(
    property(integer({ min: 0, max: TICKS - 1 }), integer({ min: 0, max: 49 * 86_400_000 }), (lastInput, idleMs) => {
      assert.equal(idleBetween(lastInput, (lastInput + idleMs) % TICKS), idleMs);
    }),
  );
});

test('invalid ticks, and system calls that cannot be loaded, are unavailable', async () => {
  const clock = new ManualClock();
  for (const tick of [-1, TICKS, 1.5, Number.NaN]) {
    const probe = windowsProbe(async () => () => ({ lastInput: tick, now: 5 }));
    assert.deepEqual(await readIdle([probe], clock), { unavailable: 'windows: its answer is not a number' });
  }
  const broken = windowsProbe(() => Promise.reject(new Error('no koffi')));
  assert.deepEqual(await readIdle([broken], clock), { unavailable: 'windows: it failed (Error)' });
  const whole = windowsProbe(async () => () => ({ lastInput: TICKS - 1000, now: 2000 }));
  assert.deepEqual(await readIdle([whole], clock), { idleMs: 3000, source: 'windows' });
});
