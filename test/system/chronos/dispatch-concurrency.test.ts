import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;

describe('concurrent wakes', () => {
  test('four wakes to one user; the next begins as soon as one has ended', async (t) => {
    const bench = await createBench(t, { respond: () => undefined });
    for (let n = 0; n < 10; n++) await bench.set({ kind: 'once', delay_seconds: 1 + n / 1000, label: String(n) });
    await bench.clock.advance(2 * SECOND);
    assert.equal(bench.waker.hanging, 4);
    for (let ended = 0; ended < 10; ended++) {
      bench.waker.wakes[ended]!.answer(DELIVERED);
      await bench.settle();
      assert.equal(bench.waker.hanging, Math.min(4, 9 - ended));
    }
    assert.equal(bench.waker.most, 4);
    assert.deepEqual(
      bench.waker.wakes.map(({ claim }) => claim.alarm.label),
      [...'0123456789'],
    );
  });

  test('no more than the limit over all users, and the rest as slots become free', async (t) => {
    const bench = await createBench(t, { respond: () => undefined, config: { concurrency: 16 } });
    for (let n = 0; n < 40; n++) await bench.set({ kind: 'once', delay_seconds: 1 }, `user-${n}`);
    await bench.clock.advance(10 * SECOND);
    assert.equal(bench.waker.hanging, 16);
    for (let ended = 0; ended < 40; ended++) {
      bench.waker.wakes[ended]!.answer(DELIVERED);
      await bench.clock.advance(10);
    }
    assert.equal(bench.waker.wakes.length, 40);
    assert.equal(bench.waker.most, 16);
    assert.equal(bench.dispatcher.inFlight, 0);
  });

  test('a limit of one delivers one after another', async (t) => {
    const bench = await createBench(t, { config: { concurrency: 1, userConcurrency: 1 } });
    for (let n = 0; n < 20; n++) await bench.set({ kind: 'once', delay_seconds: 1 });
    await bench.clock.advance(5 * SECOND);
    assert.equal(bench.waker.wakes.length, 20);
    assert.equal(bench.waker.most, 1);
  });

  test('a user whose machine hangs holds four slots, and no other user waits', async (t) => {
    const bench = await createBench(t, { respond: ({ alarm }) => (alarm.owner === 'hung' ? undefined : DELIVERED) });
    for (let n = 0; n < 50; n++) await bench.set({ kind: 'once', delay_seconds: 1 }, 'hung');
    const { due } = await bench.set({ kind: 'once', delay_seconds: 1 }, 'bea');
    await bench.clock.advance(SECOND);
    for (let n = 0; n < 20; n++) {
      await bench.set({ kind: 'once', delay_seconds: 1 }, `user-${n}`);
      await bench.clock.advance(SECOND);
    }
    const others = bench.waker.wakes.filter(({ claim }) => claim.alarm.owner !== 'hung');
    assert.equal(others.length, 21);
    assert.equal(others[0]!.at, due);
    for (const { claim, at } of others) assert.equal(at, claim.occurrence.scheduledFor);
    assert.equal(bench.waker.hanging, 4);
  });

  test('a backlog of a user at their limit does not keep the dispatcher busy', async (t) => {
    const bench = await createBench(t, { respond: () => undefined });
    for (let n = 0; n < 50; n++) await bench.set({ kind: 'once', delay_seconds: 1 });
    await bench.clock.advance(2 * SECOND);
    const claims = bench.faults.count('claim');
    const polls = bench.faults.count('nextDueAt');
    await bench.clock.advance(10 * SECOND);
    assert.equal(bench.faults.count('claim'), claims);
    assert.ok(bench.faults.count('nextDueAt') - polls <= 11);
  });

  test('a waker that throws costs the attempt, not the slot', async (t) => {
    const bench = await createBench(t, { idle: true });
    bench.dispatch({
      config: { concurrency: 2, userConcurrency: 2, tickMs: 1000 },
      waker: {
        wake: (claim) => {
          if (claim.occurrence.attempt === 1) throw new Error('a defect');
          return bench.waker.wake(claim);
        },
        close: () => bench.waker.close(),
      },
    });
    const alarms = [];
    for (let n = 0; n < 6; n++) alarms.push(await bench.set({ kind: 'once', delay_seconds: 1 }));
    await bench.clock.advance(40 * SECOND);
    assert.equal(bench.waker.wakes.length, 6);
    assert.equal(bench.dispatcher.inFlight, 0);
    for (const { id } of alarms) {
      assert.equal((await bench.state(id)).alarm.status, 'fired');
      assert.deepEqual(
        (await bench.ledger(id)).map(({ outcome }) => outcome),
        ['unknown', 'delivered'],
      );
    }
  });
});
