import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { Turnstile } from './turnstile.ts';

const full = () => {
  throw new Error('full');
};

test('others wait in order for a place, at most as long as they may', async () => {
  const clock = new ManualClock();
  const turnstile = new Turnstile(2, clock);
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const enter = (n: number) =>
    turnstile.through(
      1000,
      () => {
        begun.push(n);
        return new Promise<void>((resolve) => ends.push(resolve));
      },
      full,
    );
  const tasks = [1, 2, 3, 4, 5].map(enter);
  await new Promise(setImmediate);
  assert.deepEqual(begun, [1, 2]);
  ends[0]!();
  await tasks[0];
  await new Promise(setImmediate);
  assert.deepEqual(begun, [1, 2, 3]);
  await Promise.all([clock.advance(1000), assert.rejects(tasks[3]!, /full/), assert.rejects(tasks[4]!, /full/)]);
  for (const end of ends) end();
  await Promise.all([tasks[1], tasks[2]]);
  const [more, still] = [enter(6), enter(7)];
  await new Promise(setImmediate);
  assert.deepEqual(begun, [1, 2, 3, 6, 7]);
  for (const end of ends) end();
  await Promise.all([more, still]);
});

test('a place is free again after a failed task', async () => {
  const turnstile = new Turnstile(1, new ManualClock());
  await assert.rejects(
    turnstile.through(1, () => Promise.reject(new Error('broken')), full),
    /broken/,
  );
  assert.equal(await turnstile.through(1, () => Promise.resolve('fine'), full), 'fine');
});
