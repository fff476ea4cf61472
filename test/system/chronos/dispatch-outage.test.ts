import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settleDelivered } from '../../../src/chronos/alarm/settlement.ts';
import { CompletionBuffer } from '../../../src/chronos/dispatch/completions.ts';
import type { AlarmStore, Completion } from '../../../src/chronos/store/store.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const WRITES = ['claim', 'complete', 'nextDueAt'] as const;

describe('a store that fails for a while', () => {
  test('outcomes are kept and written when it is back; nothing is delivered twice', async (t) => {
    const bench = await createBench(t, { respond: () => undefined });
    const alarms = [];
    for (let n = 0; n < 20; n++) alarms.push(await bench.set({ kind: 'once', delay_seconds: 1 }, `user-${n}`));
    await bench.clock.advance(2 * SECOND);
    for (const operation of WRITES) bench.faults.failing.add(operation);
    for (const wake of bench.waker.wakes) wake.answer(DELIVERED);
    await bench.clock.advance(MINUTE);
    bench.faults.failing.clear();
    await bench.clock.advance(2 * SECOND);
    assert.equal(bench.waker.wakes.length, 20);
    for (const [n, { id }] of alarms.entries()) {
      assert.equal((await bench.state(id, `user-${n}`)).alarm.status, 'fired');
      assert.deepEqual(
        (await bench.ledger(id, `user-${n}`)).map(({ outcome }) => outcome),
        ['delivered'],
      );
    }
  });

  test('it is queried a few times a second, not as fast as it fails', async (t) => {
    const bench = await createBench(t, { respond: () => undefined });
    for (let n = 0; n < 8; n++) await bench.set({ kind: 'once', delay_seconds: 1 }, `user-${n}`);
    await bench.clock.advance(2 * SECOND);
    for (const operation of WRITES) bench.faults.failing.add(operation);
    for (const wake of bench.waker.wakes) wake.answer(DELIVERED);
    await bench.clock.advance(SECOND);
    const before = WRITES.map((name) => bench.faults.count(name));
    await bench.clock.advance(10 * SECOND);
    const queries = WRITES.reduce((sum, name, index) => sum + bench.faults.count(name) - before[index]!, 0);
    assert.ok(queries >= 20 && queries <= 80, `${queries} queries in 10 s`);
  });

  test('occurrences that became due meanwhile are sent as soon as it is back', async (t) => {
    const bench = await createBench(t);
    for (const operation of WRITES) bench.faults.failing.add(operation);
    const { due } = await bench.set({ kind: 'once', delay_seconds: 1 });
    await bench.clock.advance(30 * SECOND);
    bench.faults.failing.clear();
    await bench.clock.advance(SECOND);
    assert.ok(bench.waker.wakes[0]!.at <= due + 30 * SECOND);
  });

  test('outcomes that cannot be stored defer new wakes instead of accumulating', async (t) => {
    const bench = await createBench(t, { config: { concurrency: 4 } });
    for (let n = 0; n < 40; n++) await bench.set({ kind: 'once', delay_seconds: 1 }, `user-${n}`);
    bench.faults.failing.add('complete');
    await bench.clock.advance(10 * SECOND);
    assert.equal(bench.waker.wakes.length, 8);
    bench.faults.failing.clear();
    await bench.clock.advance(3 * SECOND);
    assert.equal(bench.waker.wakes.length, 40);
  });
});

test('a due occurrence that others always claim first is queried less and less often', async (t) => {
  const bench = await createBench(t, { idle: true });
  let claims = 0;
  const contended: AlarmStore = new Proxy(bench.store, {
    get(target, name: keyof AlarmStore) {
      if (name !== 'claim') return target[name];
      return async () => {
        claims++;
        return [];
      };
    },
  });
  await bench.set({ kind: 'once', delay_seconds: 1 });
  bench.dispatch({ store: contended });
  await bench.clock.advance(11 * SECOND);
  assert.ok(claims >= 10 && claims <= 25, `${claims} claims in 10 s`);
});

describe('an outcome that cannot be applied', () => {
  test('rejects; the others of its batch are stored', async (t) => {
    const bench = await createBench(t, { idle: true });
    for (let n = 0; n < 5; n++) await bench.set({ kind: 'once', delay_seconds: 1 }, `user-${n}`);
    await bench.clock.advance(SECOND);
    const now = bench.clock.now();
    const claims = await bench.store.claim({ now, limit: 9, perOwner: 4, inFlight: new Map() });
    const buffer = new CompletionBuffer(bench.store, bench.clock, silentLogger, {
      batchDelayMs: 5,
      onFlushed: () => {},
    });
    const stored = Promise.allSettled(
      claims.map(({ alarm, occurrence: { fireId, fence } }) =>
        buffer.add({
          key: { owner: alarm.owner, alarmId: alarm.id, fireId, fence },
          attempt: null,
          settle: (state) => {
            if (alarm.owner === 'user-2') throw new TypeError('a defect');
            if (alarm.owner === 'user-3') throw new ReveilleError('internal', 'another');
            return settleDelivered(state, fireId, now);
          },
        }),
      ),
    );
    await bench.clock.advance(SECOND);
    const results = await stored;
    assert.equal(results.filter(({ status }) => status === 'rejected').length, 2);
    for (const { alarm } of claims) {
      const { alarm: after, occurrences } = await bench.state(alarm.id, alarm.owner);
      const defective = alarm.owner === 'user-2' || alarm.owner === 'user-3';
      assert.equal(after.status, defective ? 'active' : 'fired');
      assert.equal(occurrences.length, defective ? 1 : 0);
    }
    buffer.stop();
  });

  test('counts as a failed attempt: it is recorded as unknown, and retried after a while', async (t) => {
    const bench = await createBench(t, { idle: true });
    const { id, due } = await bench.set({ kind: 'once', delay_seconds: 1 });
    let defects = 1;
    const defective: AlarmStore = new Proxy(bench.store, {
      get(target, name: keyof AlarmStore) {
        if (name !== 'complete') return target[name];
        return (completions: readonly Completion[]) => {
          const broken = defects-- > 0;
          const throwing = () => {
            throw new TypeError('a defect');
          };
          return target.complete(
            broken ? completions.map(({ key, attempt }) => ({ key, attempt, settle: throwing })) : completions,
          );
        };
      },
    });
    bench.dispatch({ store: defective });
    await bench.clock.advance(2 * SECOND);
    assert.deepEqual(
      (await bench.ledger(id)).map(({ outcome, error }) => [outcome, error?.includes('because of a defect')]),
      [['unknown', true]],
    );
    const { alarm, occurrences } = await bench.state(id);
    assert.equal(alarm.failureCount, 1);
    const [retried] = occurrences;
    assert.ok(retried && retried.claimedAt === null && retried.dueAt! >= due + 30 * SECOND);
    await bench.clock.advance(MINUTE);
    assert.equal(bench.waker.wakes.length, 2);
    assert.equal((await bench.state(id)).alarm.status, 'fired');
  });
});
