import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Deferral } from '../../../src/chronos/dispatch/waker.ts';
import { createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const hold = (until: number, reason = 'held back: quiet hours'): Deferral => ({ outcome: 'held', until, reason });

test('the router is asked again before the deferral ends, because it may have been lifted', async (t) => {
  let lifted = false;
  const bench = await createBench(t, {
    config: { tickMs: HOUR },
    respond: () => (lifted ? DELIVERED : hold(until)),
  });
  const { id, due } = await bench.set({ kind: 'once', delay_seconds: 60 });
  const until = due + 40 * HOUR;
  await bench.clock.advance(HOUR);
  assert.equal((await bench.state(id)).occurrences[0]?.heldUntil, until);
  lifted = true;
  await bench.clock.advance(15 * MINUTE);
  assert.equal((await bench.state(id)).alarm.status, 'fired');
  assert.deepEqual(
    bench.waker.wakes.map(({ at }) => (at - due) / MINUTE),
    [0, 15, 30, 45, 60],
  );
});

test('a deferred wake comes again at the given time, and is neither an attempt nor a failure', async (t) => {
  let until = 0;
  const bench = await createBench(t, {
    config: { tickMs: 60 * SECOND },
    respond: () => (bench.clock.now() < until ? hold(until) : DELIVERED),
  });
  const { id, due } = await bench.set({ kind: 'once', delay_seconds: 60, max_failures: 1 });
  until = due + 9 * HOUR;
  await bench.clock.advance(61 * SECOND);
  const { alarm, occurrences } = await bench.state(id);
  assert.deepEqual([alarm.status, alarm.failureCount, alarm.lastError], ['active', 0, null]);
  const { dueAt, heldUntil, heldReason } = occurrences[0]!;
  assert.deepEqual([dueAt, heldUntil, heldReason], [due + 15 * MINUTE, until, 'held back: quiet hours']);
  assert.deepEqual(await bench.ledger(id), []);
  assert.equal(await bench.store.countDue({ now: bench.clock.now(), atMost: 9 }), 0);
  await bench.clock.advance(9 * HOUR);
  assert.deepEqual(
    bench.waker.wakes.map(({ at, claim }) => [(at - due) / MINUTE, claim.occurrence.attempt]),
    Array.from({ length: 37 }, (_, n) => [15 * n, 1]),
  );
  assert.equal((await bench.state(id)).alarm.status, 'fired');
  assert.deepEqual(
    (await bench.ledger(id)).map(({ attempt, outcome }) => [attempt, outcome]),
    [[1, 'delivered']],
  );
});

test('a deferral lasts between a second and two days, whatever the router’s clock says', async (t) => {
  const asked = [-10 * 365 * 24 * HOUR, 0, 10 * 365 * 24 * HOUR];
  const bench = await createBench(t, {
    config: { tickMs: HOUR },
    respond: () => {
      const after = asked.shift();
      return after === undefined ? DELIVERED : hold(bench.clock.now() + after);
    },
  });
  const { id, due } = await bench.set({ kind: 'once', delay_seconds: 60 });
  await bench.clock.advance(65 * SECOND);
  assert.equal((await bench.state(id)).occurrences[0]?.heldUntil, due + 2 * SECOND + 48 * HOUR);
  await bench.clock.advance(HOUR);
  assert.deepEqual(
    bench.waker.wakes.map(({ at }) => Math.round((at - due) / SECOND)),
    [0, 1, 2, 2 + 15 * 60],
  );
});

test('a failure after a deferral starts at the first step of the retry ladder', async (t) => {
  const bench = await createBench(t, {
    config: { tickMs: HOUR },
    respond: () => {
      const n = bench.waker.wakes.length;
      if (n === 2) return { outcome: 'failed', httpStatus: 503, error: 'busy', final: false };
      return n === 1 ? hold(bench.clock.now() + 5 * MINUTE) : DELIVERED;
    },
  });
  const { id, due } = await bench.set({ kind: 'once', delay_seconds: 60 });
  await bench.clock.advance(2 * HOUR);
  assert.deepEqual(
    bench.waker.wakes.map(({ at }) => (at - due) / SECOND),
    [0, 300, 330],
  );
  assert.deepEqual(
    (await bench.ledger(id)).map(({ attempt, outcome }) => [attempt, outcome]),
    [
      [1, 'failed'],
      [2, 'delivered'],
    ],
  );
});
