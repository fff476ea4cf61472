import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;

/** Whether a promise has settled by now. */
function watch(promise: Promise<unknown>): { done: boolean } {
  const state = { done: false };
  void promise.finally(() => {
    state.done = true;
  });
  return state;
}

test('a drain claims nothing more, waits for pending wakes and stores their outcome', async (t) => {
  const bench = await createBench(t, { respond: () => undefined });
  const { id } = await bench.set({ kind: 'once', delay_seconds: 1 });
  await bench.set({ kind: 'once', delay_seconds: 3 }, 'bea');
  await bench.clock.advance(2 * SECOND);
  const drain = watch(bench.dispatcher.drain(10 * SECOND));
  await bench.clock.advance(5 * SECOND);
  assert.equal(drain.done, false);
  assert.equal(bench.waker.wakes.length, 1, 'the second alarm became due and was not claimed');
  bench.waker.wakes[0]!.answer(DELIVERED);
  await bench.clock.advance(50);
  assert.equal(drain.done, true);
  assert.equal((await bench.state(id)).alarm.status, 'fired');
  // The store tidies its list of active alarms a moment after a delivery.
  await bench.clock.advance(SECOND);
  assert.equal(bench.clock.timers, 0, 'nothing keeps the process alive');
});

test('an idle dispatcher drains at once', async (t) => {
  const bench = await createBench(t);
  await bench.clock.advance(SECOND);
  const drain = watch(bench.dispatcher.drain(10 * SECOND));
  await bench.settle();
  assert.equal(drain.done, true);
});

test('a drain aborts hanging wakes at its limit, and reports that their outcome is unknown', async (t) => {
  const bench = await createBench(t, { respond: () => undefined, config: { concurrency: 2 } });
  const alarms = [];
  for (let n = 0; n < 4; n++) alarms.push(await bench.set({ kind: 'once', delay_seconds: 1 }, `user-${n}`));
  await bench.clock.advance(2 * SECOND);
  const drain = watch(bench.dispatcher.drain(10 * SECOND));
  await bench.clock.advance(10 * SECOND - 1);
  assert.equal(drain.done, false);
  await bench.clock.advance(51);
  assert.equal(drain.done, true);
  assert.equal(bench.waker.closed, true);
  assert.equal(bench.waker.wakes.length, 2);
  const outcomes = await Promise.all(alarms.map(({ id }, n) => bench.ledger(id, `user-${n}`)));
  assert.deepEqual(
    outcomes.flat().map(({ outcome }) => outcome),
    ['unknown', 'unknown'],
  );
  assert.equal(bench.clock.timers, 0, 'nothing keeps the process alive');
});

test('a drain ends even if neither the wakes nor the store do', async (t) => {
  const bench = await createBench(t, { idle: true });
  const answers = [DELIVERED];
  bench.dispatch({
    waker: { wake: async () => answers.pop() ?? new Promise(() => {}), close: async () => {} },
  });
  bench.faults.failing.add('complete');
  for (const owner of ['ada', 'bea']) await bench.set({ kind: 'once', delay_seconds: 1 }, owner);
  await bench.clock.advance(2 * SECOND);
  const drain = watch(bench.dispatcher.drain(10 * SECOND));
  await bench.clock.advance(11 * SECOND + 50);
  assert.equal(drain.done, true);
  const calls = () => [...bench.faults.calls.values()].reduce((sum, count) => sum + count);
  const before = calls();
  await bench.clock.advance(60 * SECOND);
  assert.equal(calls(), before, 'the store is not called any more');
  assert.equal(bench.clock.timers, 0, 'nothing keeps the process alive');
});

test('a drain that begins during the query for due occurrences claims none of them', async (t) => {
  const bench = await createBench(t);
  const { id, due } = await bench.set({ kind: 'once', delay_seconds: 1 });
  let drain: Promise<void> | undefined;
  bench.faults.onCall = (name) => {
    if (name === 'nextDueAt' && bench.clock.now() >= due) drain ??= bench.dispatcher.drain(SECOND);
  };
  await bench.clock.advance(5 * SECOND);
  assert.ok(drain);
  assert.equal(bench.waker.wakes.length, 0);
  assert.equal((await bench.state(id)).occurrences[0]!.attempt, 0);
});
