import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from './testing/manual-clock.ts';
import { WakeSignal } from './wake-signal.ts';

const START = Date.parse('2026-11-23T02:00:00Z');

test('a sleep ends at its instant, at an earlier notification, or when its signal aborts', async () => {
  const clock = new ManualClock(START);
  const signal = new WakeSignal(clock);
  const ended: string[] = [];
  const sleep = (name: string, instant: number, over?: AbortSignal) =>
    signal.sleepUntil(instant, over).then(() => ended.push(name));
  const over = new AbortController();
  const sleeps = [sleep('timer', START + 100), sleep('aborted', Infinity, over.signal), sleep('notified', Infinity)];
  await clock.advance(100);
  assert.deepEqual(ended, ['timer']);
  over.abort();
  await sleeps[1];
  signal.notifyBy(START + 500);
  await sleeps[2];
  assert.deepEqual(ended, ['timer', 'aborted', 'notified']);
});

test('a notification while no loop sleeps ends the next sleep, unless it is reset', async () => {
  const clock = new ManualClock(START);
  const signal = new WakeSignal(clock);
  signal.notify();
  await signal.sleepUntil(Infinity);
  signal.reset();
  signal.notifyBy(START + 50);
  let woke = false;
  const slept = signal.sleepUntil(START + 1000).then(() => {
    woke = true;
  });
  await clock.advance(49);
  assert.equal(woke, false);
  await clock.advance(1);
  await slept;
});
