import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pauseAlarm, resumeAlarm, triggerAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('when a wake is sent', () => {
  test('at its due time, not a millisecond before', async (t) => {
    const bench = await createBench(t);
    const { due } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(MINUTE - 1);
    assert.equal(bench.waker.wakes.length, 0);
    await bench.clock.advance(1);
    assert.deepEqual(
      bench.waker.wakes.map(({ at }) => at),
      [due],
    );
  });

  test('not early either when timers expire a little too soon', async (t) => {
    const bench = await createBench(t, { idle: true });
    const { clock } = bench;
    bench.dispatch({
      clock: {
        now: () => clock.now(),
        monotonic: () => clock.monotonic(),
        after: (delayMs, callback) => clock.after(Math.max(1, delayMs - 1), callback),
      },
    });
    for (const delay of [1.2, 1.201, 2.05]) await bench.set({ kind: 'once', delay_seconds: delay });
    await clock.advance(3 * SECOND);
    assert.equal(bench.waker.wakes.length, 3);
    for (const { claim, at } of bench.waker.wakes) assert.ok(at >= claim.occurrence.scheduledFor);
  });

  test('at its due time when it arrives while the dispatcher sleeps for a later one', async (t) => {
    const bench = await createBench(t);
    await bench.set({ kind: 'once', delay_seconds: 3600 });
    await bench.clock.advance(10 * MINUTE + 100);
    const { due } = await bench.set({ kind: 'once', delay_seconds: 1.333 });
    await bench.clock.advance(2 * SECOND);
    assert.deepEqual(
      bench.waker.wakes.map(({ at }) => at),
      [due],
    );
  });

  test('a tick later at most when the dispatcher was not notified', async (t) => {
    const bench = await createBench(t);
    const { due } = await bench.set({ kind: 'once', delay_seconds: 1.5 }, 'ada', { silent: true });
    await bench.clock.advance(4 * SECOND);
    const [wake] = bench.waker.wakes;
    assert.ok(wake && wake.at >= due && wake.at <= due + SECOND);
  });

  test('a trigger is sent at once, and a resumed alarm at its due time', async (t) => {
    const bench = await createBench(t);
    const { id, due } = await bench.set({ kind: 'once', delay_seconds: 600 });
    await bench.clock.advance(10);
    await bench.change(id, (state) => pauseAlarm(state, bench.clock.now()));
    const triggered = bench.clock.now();
    await bench.change(id, (state) => triggerAlarm(state, triggered).state);
    await bench.settle();
    assert.deepEqual(
      bench.waker.wakes.map(({ at }) => at),
      [triggered],
    );
    await bench.clock.advance(MINUTE);
    await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
    await bench.clock.advance(HOUR);
    assert.deepEqual(
      bench.waker.wakes.map(({ at }) => at),
      [triggered, due],
    );
  });
});

test('an idle dispatcher polls once a tick and not more often', async (t) => {
  const bench = await createBench(t);
  await bench.set({ kind: 'once', delay_seconds: 3600 });
  await bench.clock.advance(SECOND);
  const before = bench.faults.count('nextDueAt');
  await bench.clock.advance(100 * SECOND);
  const polls = bench.faults.count('nextDueAt') - before;
  assert.ok(polls >= 99 && polls <= 101, `${polls} polls in 100 ticks`);
  assert.equal(bench.faults.count('claim'), 0);
});

describe('a wall clock that jumps', () => {
  test('forward: an alarm that is due by it now fires within a tick', async (t) => {
    const bench = await createBench(t);
    await bench.set({ kind: 'once', delay_seconds: 1800 });
    await bench.clock.advance(SECOND);
    bench.clock.jump(HOUR);
    await bench.clock.advance(SECOND);
    assert.equal(bench.waker.wakes.length, 1);
  });

  test('back: nothing fires before the wall clock has reached its time again', async (t) => {
    const bench = await createBench(t);
    const { due } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(30 * SECOND);
    bench.clock.jump(-HOUR);
    await bench.clock.advance(HOUR);
    assert.equal(bench.waker.wakes.length, 0);
    await bench.clock.advance(30 * SECOND);
    assert.deepEqual(
      bench.waker.wakes.map(({ at }) => at),
      [due],
    );
  });

  test('back, between a claim and its wake: an occurrence that was due by the earlier clock does not start early', async (t) => {
    const bench = await createBench(t);
    const { id, due } = await bench.set({ kind: 'once', delay_seconds: 60 });
    bench.faults.onCall = (name) => {
      if (name !== 'claim') return;
      bench.clock.jump(-HOUR);
      bench.faults.onCall = undefined;
    };
    await bench.clock.advance(MINUTE + SECOND);
    assert.equal(bench.waker.wakes.length, 1);
    const [attempt] = await bench.ledger(id);
    assert.ok(attempt && attempt.startedAt >= due, `it started ${due - attempt!.startedAt} ms early`);
  });

  test('does not make the dispatcher claim occurrences that it is already delivering', async (t) => {
    const bench = await createBench(t, { respond: ({ alarm }) => (alarm.label === 'slow' ? undefined : DELIVERED) });
    const slow = await bench.set({ kind: 'once', delay_seconds: 1, label: 'slow' });
    await bench.set({ kind: 'once', delay_seconds: 1800 });
    await bench.clock.advance(2 * SECOND);
    for (const jump of [HOUR, -HOUR, 2 * HOUR]) {
      bench.clock.jump(jump);
      await bench.clock.advance(5 * SECOND);
    }
    bench.clock.jump(HOUR);
    await bench.clock.advance(5 * SECOND);
    assert.equal(bench.waker.wakes.filter(({ claim }) => claim.alarm.id === slow.id).length, 1);
    bench.waker.wakes[0]!.answer(DELIVERED);
    await bench.clock.advance(SECOND);
    assert.equal((await bench.state(slow.id)).alarm.status, 'fired');
    assert.deepEqual(
      (await bench.ledger(slow.id)).map(({ outcome }) => outcome),
      ['delivered'],
    );
  });
});

describe('after downtime', () => {
  test('a series fires once, for the latest occurrence, and reports how many were missed', async (t) => {
    const bench = await createBench(t, { idle: true, config: { tickMs: MINUTE } });
    const { id } = await bench.set({ kind: 'cron', cron_expr: '0 * * * *' });
    await bench.clock.advance(5 * HOUR);
    bench.dispatch();
    await bench.clock.advance(MINUTE);
    const latest = Date.UTC(2026, 5, 15, 13);
    assert.deepEqual(
      bench.waker.wakes.map(({ claim: { occurrence } }) => [
        occurrence.scheduledFor,
        occurrence.missedCount,
        occurrence.attempt,
      ]),
      [[latest, 4, 1]],
    );
    assert.deepEqual(
      (await bench.ledger(id)).map(({ fireId, outcome, missedCount }) => [fireId, outcome, missedCount]),
      [[`${id}@${latest}`, 'delivered', 4]],
    );
    await bench.clock.advance(HOUR);
    assert.deepEqual(
      bench.waker.wakes.map(({ claim }) => claim.occurrence.missedCount),
      [4, 0],
    );
  });

  test('a single alarm fires late, once, with its own fire id', async (t) => {
    const bench = await createBench(t, { idle: true, config: { tickMs: MINUTE } });
    const { fireId } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(30 * HOUR);
    bench.dispatch();
    await bench.clock.advance(HOUR);
    assert.deepEqual(
      bench.waker.wakes.map(({ claim }) => claim.occurrence.fireId),
      [fireId],
    );
  });

  test('an occurrence that cannot start within max_lateness is missed: a single alarm fails, a series continues', async (t) => {
    const bench = await createBench(t, { idle: true, config: { tickMs: MINUTE } });
    const single = await bench.set({ kind: 'once', delay_seconds: 60, max_lateness_seconds: 30 });
    const series = await bench.set({ kind: 'cron', cron_expr: '0 * * * *', max_lateness_seconds: 30 });
    await bench.clock.advance(5 * HOUR);
    bench.dispatch();
    await bench.clock.advance(MINUTE);
    assert.equal(bench.waker.wakes.length, 0);

    const failed = await bench.state(single.id);
    assert.equal(failed.alarm.status, 'failed');
    assert.match(failed.alarm.lastError ?? '', /could not start within max_lateness_seconds \(30\)/);
    assert.deepEqual(
      (await bench.ledger(single.id)).map(({ outcome }) => outcome),
      ['missed'],
    );

    assert.deepEqual(
      (await bench.ledger(series.id)).map(({ outcome, missedCount }) => [outcome, missedCount]),
      [['missed', 4]],
    );
    await bench.clock.advance(HOUR);
    assert.equal(bench.waker.wakes.length, 1);
  });
});
