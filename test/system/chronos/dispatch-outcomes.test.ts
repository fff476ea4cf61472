import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cancelAlarm, pauseAlarm, redriveAlarm, resumeAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { edit } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { viewAlarm } from '../../../src/chronos/alarm/view.ts';
import type { WakeResult } from '../../../src/chronos/dispatch/waker.ts';
import { BUSY, createBench, DELIVERED, LOST } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Hours pass in these tests; a dispatcher that polls every second would make them slow. */
const config = { tickMs: MINUTE };

/** Delay between the due time and the start of each attempt, in milliseconds. */
function lateness(wakes: readonly { at: number }[], due: number): number[] {
  return wakes.map(({ at }) => at - due);
}

describe('the retry ladder', () => {
  test('30 s, a minute, two, four, eight, then every fifteen minutes, counted from the end of each attempt', async (t) => {
    const bench = await createBench(t, { config, respond: () => BUSY });
    const { id, due, fireId } = await bench.set({ kind: 'once', delay_seconds: 60, max_failures: 8 });
    await bench.clock.advance(2 * HOUR);
    const waits = lateness(bench.waker.wakes, due).map((late, index, all) => late - (all[index - 1] ?? 0));
    assert.deepEqual(
      waits,
      [0, 30, 60, 120, 240, 480, 900, 900].map((seconds) => seconds * SECOND),
    );
    assert.deepEqual(
      bench.waker.wakes.map(({ claim }) => [claim.occurrence.fireId, claim.occurrence.attempt]),
      [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => [fireId, attempt]),
    );
    const { alarm } = await bench.state(id);
    assert.deepEqual([alarm.status, alarm.failureCount, alarm.lastError], ['failed', 8, 'busy']);
    const ledger = await bench.ledger(id);
    assert.deepEqual(
      ledger.map(({ attempt, outcome, httpStatus }) => [attempt, outcome, httpStatus]),
      [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => [attempt, 'failed', 503]),
    );
  });

  test('the ledger records when the machine was ready, and never later than its answer', async (t) => {
    const answers: WakeResult[] = [
      { ...BUSY, machineReadyMs: 0 } as WakeResult,
      { ...DELIVERED, machineReadyMs: 5_000 } as WakeResult,
    ];
    const bench = await createBench(t, { config, respond: () => answers.shift() });
    const { id } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(HOUR);
    const ledger = await bench.ledger(id);
    assert.deepEqual(
      ledger.map(({ machineReadyMs, startedAt, finishedAt }) => [machineReadyMs, finishedAt - startedAt]),
      [
        [0, 0],
        [0, 0],
      ],
    );
  });

  test('the ledger and the wake give the reason for a lateness of a second or more', async (t) => {
    const bench = await createBench(t, { config, idle: true });
    const slept = await bench.set({ kind: 'once', delay_seconds: 60 });
    const missed = await bench.set({ kind: 'once', delay_seconds: 60, max_lateness_seconds: 5 });
    await bench.clock.advance(HOUR);
    const justNow = await bench.set({ kind: 'once', delay_seconds: 1 });
    bench.dispatch({ lateBecause: () => 'slept' });
    await bench.clock.advance(10 * SECOND);
    const reasons = async ({ id }: { id: string }) => (await bench.ledger(id)).map(({ lateBecause }) => lateBecause);
    assert.deepEqual(
      [await reasons(slept), await reasons(missed), await reasons(justNow)],
      [['slept'], ['slept'], [null]],
    );
    assert.deepEqual(
      bench.waker.wakes.map(({ late }) => late),
      ['slept', undefined],
    );
  });

  test('each wait is shortened by up to a tenth', async (t) => {
    const bench = await createBench(t, { config, respond: () => BUSY, random: () => 0.5 });
    const { due } = await bench.set({ kind: 'once', delay_seconds: 60, max_failures: 3 });
    await bench.clock.advance(HOUR);
    assert.deepEqual(lateness(bench.waker.wakes, due), [0, 28_500, 28_500 + 57_000]);
  });

  test('the delay that the receiver requests replaces it, up to fifteen minutes', async (t) => {
    const answers: WakeResult[] = [
      { ...BUSY, retryAfterSeconds: 7 } as WakeResult,
      { ...BUSY, retryAfterSeconds: 86_400 } as WakeResult,
      DELIVERED,
    ];
    const bench = await createBench(t, { config, respond: () => answers.shift() });
    const { id, due } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(HOUR);
    assert.deepEqual(lateness(bench.waker.wakes, due), [0, 7 * SECOND, 7 * SECOND + 15 * MINUTE]);
    assert.equal((await bench.state(id)).alarm.status, 'fired');
  });

  test('a final refusal ends it at once: a single alarm fails and can be redriven, a series continues', async (t) => {
    let isLost = true;
    const bench = await createBench(t, {
      config,
      respond: () => (isLost ? { outcome: 'failed', httpStatus: 410, error: 'gone', final: true } : DELIVERED),
    });
    const single = await bench.set({ kind: 'once', delay_seconds: 60 });
    const series = await bench.set({ kind: 'cron', cron_expr: '0 * * * *' });
    await bench.clock.advance(HOUR);
    assert.equal(bench.waker.wakes.length, 2);
    assert.equal((await bench.state(single.id)).alarm.status, 'failed');
    const { alarm } = await bench.state(series.id);
    assert.deepEqual([alarm.status, alarm.lastError], ['active', 'gone']);

    isLost = false;
    await bench.change(single.id, (state) => redriveAlarm(state, bench.clock.now()));
    await bench.clock.advance(SECOND);
    const redriven = bench.waker.wakes.at(-1)!.claim.occurrence;
    assert.deepEqual([redriven.fireId, redriven.attempt], [single.fireId, 2]);
    assert.equal((await bench.state(single.id)).alarm.status, 'fired');
  });

  test('a lost answer is recorded as unknown and the wake is repeated', async (t) => {
    const answers = [LOST, DELIVERED];
    const bench = await createBench(t, { config, respond: () => answers.shift() });
    const { id } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(HOUR);
    assert.deepEqual(
      (await bench.ledger(id)).map(({ attempt, outcome, error }) => [attempt, outcome, error]),
      [
        [1, 'unknown', 'no answer'],
        [2, 'delivered', null],
      ],
    );
  });

  test('a series that could not be delivered for hours continues with its latest occurrence', async (t) => {
    let down = true;
    const bench = await createBench(t, { config, respond: () => (down ? BUSY : DELIVERED) });
    const { id } = await bench.set({ kind: 'cron', cron_expr: '*/10 * * * *', max_failures: 100 });
    await bench.clock.advance(5 * HOUR);
    down = false;
    await bench.clock.advance(30 * MINUTE);
    const delivered = (await bench.ledger(id)).filter(({ outcome }) => outcome === 'delivered');
    const instants = delivered.map(({ scheduledFor }) => scheduledFor);
    assert.deepEqual(
      instants,
      [...instants].sort((a, b) => a - b),
    );
    assert.equal(new Set(instants).size, instants.length);
    // The one it had been trying, then one for all occurrences that passed meanwhile.
    assert.equal(delivered[0]!.scheduledFor, Date.UTC(2026, 5, 15, 8, 20));
    assert.ok(delivered[1]!.missedCount >= 29);
    assert.equal(delivered.filter(({ missedCount }) => missedCount > 0).length, 1);
    assert.equal((await bench.state(id)).alarm.failureCount, 0);
  });
});

describe('owner actions during a wake', () => {
  async function inFlight(t: Parameters<typeof createBench>[0]) {
    const bench = await createBench(t, { config, respond: () => undefined });
    const { id, fireId } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(MINUTE);
    return { bench, id, fireId, wake: bench.waker.wakes[0]! };
  }

  test('a cancel reports that it is in flight; the outcome is recorded and nothing is repeated', async (t) => {
    for (const result of [DELIVERED, BUSY, LOST]) {
      const { bench, id, wake } = await inFlight(t);
      const cancelled = await bench.change(id, (state) => cancelAlarm(state, bench.clock.now()));
      assert.equal(viewAlarm(cancelled).in_flight, true);
      wake.answer(result);
      await bench.clock.advance(HOUR);
      const after = await bench.state(id);
      assert.equal(after.alarm.status, 'cancelled');
      assert.deepEqual(after.occurrences, []);
      assert.equal(viewAlarm(after).in_flight, false);
      assert.deepEqual(
        (await bench.ledger(id)).map(({ outcome }) => outcome),
        [result.outcome],
      );
      assert.equal(bench.waker.wakes.length, 1);
    }
  });

  test('a pause defers the repetition until the alarm is resumed', async (t) => {
    const { bench, id, fireId, wake } = await inFlight(t);
    await bench.change(id, (state) => pauseAlarm(state, bench.clock.now()));
    wake.answer(BUSY);
    await bench.clock.advance(HOUR);
    assert.equal(bench.waker.wakes.length, 1);
    await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
    await bench.settle();
    assert.deepEqual(
      bench.waker.wakes.map(({ claim }) => claim.occurrence.fireId),
      [fireId, fireId],
    );
  });

  test('a new time fires as well, whatever the outcome of the wake', async (t) => {
    const { bench, id, wake } = await inFlight(t);
    await bench.change(id, (state) => edit(state, { delay_seconds: 600 }, bench.clock.now()));
    wake.answer(BUSY);
    await bench.clock.advance(10 * MINUTE);
    assert.equal(bench.waker.wakes.length, 2);
    bench.waker.wakes[1]!.answer(DELIVERED);
    await bench.clock.advance(SECOND);
    assert.equal((await bench.state(id)).alarm.status, 'fired');
    assert.deepEqual(
      (await bench.ledger(id)).map(({ outcome }) => outcome),
      ['failed', 'delivered'],
    );
  });

  test('a cancel before it begins prevents the wake', async (t) => {
    const bench = await createBench(t, { config });
    const { id } = await bench.set({ kind: 'once', delay_seconds: 60 });
    await bench.clock.advance(MINUTE - 1);
    await bench.change(id, (state) => cancelAlarm(state, bench.clock.now()));
    await bench.clock.advance(HOUR);
    assert.equal(bench.waker.wakes.length, 0);
  });
});
