import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../../kit/clock/clock.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import { DatabaseClock } from './database-clock.ts';

/**
 * A machine and a database, each with clocks of its own.
 *
 * @param trips durations of the way there and the way back, for each query in turn
 */
function clocksUnderTest(trips: [there: number, back: number][]) {
  const START = Date.UTC(2027, 0, 1);
  let monotonic = 500;
  let wallAhead = 0;
  let databaseAhead = 0;
  const timers: (() => void)[] = [];
  const clock: Clock = {
    now: () => START + monotonic + wallAhead,
    monotonic: () => monotonic,
    after(_, callback) {
      timers.push(callback);
      return () => timers.splice(timers.indexOf(callback), 1);
    },
  };
  const database = () => START + monotonic + databaseAhead;
  let queries = 0;
  const executor = {
    async query() {
      const [there, back] = trips[Math.min(queries++, trips.length - 1)]!;
      monotonic += there;
      const shown = database();
      monotonic += back;
      return [[shown]];
    },
  };
  return {
    clock: new DatabaseClock(executor, clock, silentLogger),
    database,
    timers,
    asked: () => queries,
    pass: (ms: number) => {
      monotonic += ms;
    },
    jumpWall: (ms: number) => {
      wallAhead += ms;
    },
    jumpDatabase: (ms: number) => {
      databaseAhead += ms;
    },
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

test("it shows the database's time, whatever this machine's clock shows", async () => {
  for (const ahead of [-3_600_000, 3_600_000, 1]) {
    const bench = clocksUnderTest([[0, 0]]);
    bench.jumpDatabase(ahead);
    await bench.clock.start();
    assert.equal(bench.clock.now(), bench.database());
    bench.pass(12_345);
    assert.equal(bench.clock.now(), bench.database());
  }
});

test('it is never ahead, and behind by at most the return time of the fastest answer', async () => {
  for (const back of [0, 1, 7]) {
    const bench = clocksUnderTest([
      [40, 60],
      [3, back],
      [90, 20],
      [10, 10],
      [500, 1],
    ]);
    await bench.clock.start();
    assert.equal(bench.database() - bench.clock.now(), back);
  }
});

test("a jump of this machine's clock has no effect, and the clocks are compared again", async () => {
  const bench = clocksUnderTest([[1, 1]]);
  await bench.clock.start();
  const queries = bench.asked();
  for (const jump of [3_600_000, -7_200_000]) {
    bench.jumpWall(jump);
    assert.ok(Math.abs(bench.database() - bench.clock.now()) <= 1);
    await bench.settled();
    assert.ok(Math.abs(bench.database() - bench.clock.now()) <= 1);
  }
  assert.equal(bench.asked(), queries + 10);
});

test("a jump of the database's clock takes effect at the next comparison at the latest", async () => {
  const bench = clocksUnderTest([[1, 1]]);
  await bench.clock.start();
  for (const jump of [50, -50, -3_600_000]) {
    bench.jumpDatabase(jump);
    assert.equal(bench.timers.length, 1);
    bench.timers.splice(0)[0]?.();
    await bench.settled();
    assert.equal(bench.database() - bench.clock.now(), 1);
  }
});

test('a slow answer that agrees with a fast one changes nothing', async () => {
  const quick = Array.from({ length: 5 }, (): [number, number] => [1, 0]);
  const bench = clocksUnderTest([...quick, [300, 300]]);
  await bench.clock.start();
  assert.equal(bench.clock.now(), bench.database());
  bench.clock.remeasure();
  await bench.settled();
  assert.equal(bench.clock.now(), bench.database());
});

test('it stops comparing when it is stopped', async () => {
  const bench = clocksUnderTest([[1, 1]]);
  await bench.clock.start();
  await bench.clock.stop();
  const queries = bench.asked();
  bench.jumpWall(99_999);
  bench.clock.now();
  await bench.settled();
  assert.deepEqual([bench.asked(), bench.timers.length], [queries, 0]);
});
