import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../../kit/clock/clock.ts';
import { ConcurrencyLimit } from './pool.ts';

function limitUnderTest(places: number) {
  const timers = new Set<() => void>();
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after(_, callback) {
      timers.add(callback);
      return () => timers.delete(callback);
    },
  };
  const limit = new ConcurrencyLimit(clock, places, 1000, () => new Error('too long'));
  return { limit, timers };
}

test('the limited number of callers proceeds; the others follow in order of arrival', async () => {
  const { limit, timers } = limitUnderTest(2);
  const inside: number[] = [];
  for (const n of [1, 2, 3, 4]) void limit.enter().then(() => inside.push(n));
  await Promise.resolve();
  assert.deepEqual(inside, [1, 2]);
  limit.leave();
  limit.leave();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(inside, [1, 2, 3, 4]);
  assert.equal(timers.size, 0);
});

test('a caller that waits too long gets an error, and the next one gets its turn', async () => {
  const { limit, timers } = limitUnderTest(1);
  await limit.enter();
  const impatient = limit.enter();
  const next = limit.enter();
  const [giveUp] = timers;
  giveUp?.();
  await assert.rejects(impatient, /too long/);
  limit.leave();
  await next;
});
