import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cancelAlarm, pauseAlarm, resumeAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { edit } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

type Bench = Awaited<ReturnType<typeof createBench>>;

/** Claims due occurrences as another replica would, and never reports back. */
function vanish({ store, clock }: Bench, leaseMs = 15_000): Promise<Claim[]> {
  const now = clock.now();
  return store.claim({ now, limit: 10, perOwner: 4, inFlight: new Map(), leaseUntil: now + leaseMs });
}

test('the lease of a slow wake is renewed, and no other holder gets it', async (t) => {
  const bench = await createBench(t, { respond: () => undefined });
  const { id } = await bench.set({ kind: 'once', delay_seconds: 1 });
  await bench.clock.advance(2 * SECOND);
  for (let seconds = 0; seconds < 120; seconds += 4) {
    await bench.clock.advance(4 * SECOND);
    assert.deepEqual(await vanish(bench), []);
  }
  bench.waker.wakes[0]!.answer(DELIVERED);
  await bench.clock.advance(SECOND);
  assert.deepEqual(
    (await bench.ledger(id)).map(({ outcome, attempt }) => [outcome, attempt]),
    [['delivered', 1]],
  );
  assert.equal((await bench.state(id)).alarm.status, 'fired');
});

test('leases are renewed three times in their length, however many other claims there are', async (t) => {
  const bench = await createBench(t, { respond: ({ alarm }) => (alarm.label === 'slow' ? undefined : DELIVERED) });
  await bench.set({ kind: 'once', delay_seconds: 1, label: 'slow' });
  for (let second = 2; second < 62; second++) await bench.set({ kind: 'once', delay_seconds: second });
  await bench.clock.advance(61 * SECOND);
  assert.equal(bench.waker.wakes.length, 61);
  assert.equal(bench.faults.count('renew'), 12);
});

test('one failed renewal does not lose a lease', async (t) => {
  const bench = await createBench(t, { respond: () => undefined });
  await bench.set({ kind: 'once', delay_seconds: 1 });
  await bench.clock.advance(2 * SECOND);
  bench.faults.failing.add('renew');
  await bench.clock.advance(5 * SECOND);
  bench.faults.failing.delete('renew');
  await bench.clock.advance(20 * SECOND);
  assert.deepEqual(await vanish(bench), []);
  assert.equal(bench.waker.wakes.length, 1);
});

test('a late outcome of a holder that lost the lease changes nothing', async (t) => {
  const bench = await createBench(t, { respond: () => undefined });
  const { id, fireId } = await bench.set({ kind: 'once', delay_seconds: 1 });
  await bench.clock.advance(2 * SECOND);
  // Cut off from the store for longer than a lease, while another replica is not.
  for (const operation of ['renew', 'claim'] as const) bench.faults.failing.add(operation);
  await bench.clock.advance(20 * SECOND);
  bench.faults.failing.delete('claim');
  const [taken] = await vanish(bench, MINUTE);
  assert.equal(taken?.occurrence.fireId, fireId);
  assert.equal(taken.occurrence.attempt, 2);
  bench.faults.failing.delete('renew');

  const before = await bench.state(id);
  bench.waker.wakes[0]!.answer(DELIVERED);
  await bench.clock.advance(5 * SECOND);
  assert.deepEqual(await bench.state(id), before);
  assert.deepEqual(
    (await bench.ledger(id)).map(({ outcome, attempt }) => [outcome, attempt]),
    [['unknown', 1]],
  );
});

test('a replica that was suspended between a claim and its wakes until the leases expired sends none of them', async (t) => {
  const bench = await createBench(t);
  const { id, fireId } = await bench.set({ kind: 'once', delay_seconds: 1 });
  bench.faults.onCall = (name) => {
    if (name !== 'claim') return;
    bench.clock.jump(20 * SECOND);
    bench.faults.onCall = undefined;
  };
  await bench.clock.advance(2 * SECOND);
  assert.deepEqual(
    bench.waker.wakes.map(({ claim: { occurrence } }) => [occurrence.fireId, occurrence.attempt]),
    [[fireId, 2]],
  );
  assert.deepEqual(
    (await bench.ledger(id)).map(({ outcome, attempt }) => [outcome, attempt]),
    [
      ['unknown', 1],
      ['delivered', 2],
    ],
  );
});

describe('when the holder of an occurrence has vanished', () => {
  async function abandoned(t: Parameters<typeof createBench>[0], body = {}) {
    const bench = await createBench(t, { idle: true });
    const alarm = await bench.set({ kind: 'once', delay_seconds: 1, ...body });
    await bench.clock.advance(SECOND);
    assert.equal((await vanish(bench)).length, 1);
    return { bench, ...alarm };
  }

  test('it is taken over when the lease expires, and the ledger has both attempts', async (t) => {
    const { bench, id, fireId, due } = await abandoned(t);
    bench.dispatch();
    await bench.clock.advance(20 * SECOND);
    const [wake] = bench.waker.wakes;
    assert.deepEqual([wake?.claim.occurrence.fireId, wake?.claim.occurrence.attempt], [fireId, 2]);
    assert.equal(wake?.at, due + 15 * SECOND);
    assert.deepEqual(
      (await bench.ledger(id)).map(({ outcome, attempt }) => [outcome, attempt]),
      [
        ['unknown', 1],
        ['delivered', 2],
      ],
    );
    assert.deepEqual((await bench.state(id)).occurrences, []);
  });

  test('unfinished attempts count: a wake that kills its deliverer is abandoned in the end', async (t) => {
    const { bench, id } = await abandoned(t, { max_failures: 3 });
    for (let n = 0; n < 2; n++) {
      await bench.clock.advance(15 * SECOND);
      assert.equal((await vanish(bench)).length, 1);
    }
    await bench.clock.advance(15 * SECOND);
    bench.dispatch();
    await bench.clock.advance(MINUTE);
    assert.equal(bench.waker.wakes.length, 0);
    assert.equal((await bench.state(id)).alarm.status, 'failed');
    assert.deepEqual(
      (await bench.ledger(id)).map(({ outcome }) => outcome),
      ['unknown', 'unknown', 'unknown'],
    );
  });

  test('a cancelled alarm releases it, even if nothing else is ever due', async (t) => {
    const { bench, id } = await abandoned(t);
    await bench.change(id, (state) => cancelAlarm(state, bench.clock.now()));
    bench.dispatch();
    await bench.clock.advance(20 * SECOND);
    const { alarm, occurrences } = await bench.state(id);
    assert.deepEqual([alarm.status, occurrences], ['cancelled', []]);
    assert.match(alarm.lastError ?? '', /stopped before it could record the outcome/);
    assert.deepEqual(
      (await bench.ledger(id)).map(({ outcome }) => outcome),
      ['unknown'],
    );
    assert.equal(bench.waker.wakes.length, 0);
  });

  test('a paused alarm keeps it parked and retries it when it is resumed', async (t) => {
    const { bench, id, fireId } = await abandoned(t);
    await bench.change(id, (state) => pauseAlarm(state, bench.clock.now()));
    bench.dispatch();
    await bench.clock.advance(20 * SECOND);
    const { alarm, occurrences } = await bench.state(id);
    assert.deepEqual([alarm.status, alarm.failureCount], ['paused', 1]);
    assert.deepEqual(
      occurrences.map(({ dueAt, leaseUntil }) => [dueAt, leaseUntil]),
      [[null, null]],
    );
    assert.deepEqual(
      (await bench.ledger(id)).map(({ outcome }) => outcome),
      ['unknown'],
    );
    await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
    await bench.clock.advance(SECOND);
    assert.deepEqual(
      bench.waker.wakes.map(({ claim }) => claim.occurrence.fireId),
      [fireId],
    );
  });

  test('an alarm that got another time meanwhile fires at that one only', async (t) => {
    const { bench, id } = await abandoned(t);
    const edited = await bench.change(id, (state) => edit(state, { delay_seconds: 60 }, bench.clock.now()));
    assert.equal(edited.occurrences.length, 2);
    bench.dispatch();
    await bench.clock.advance(20 * SECOND);
    assert.equal((await bench.state(id)).occurrences.length, 1);
    assert.deepEqual(
      (await bench.ledger(id)).map(({ outcome }) => outcome),
      ['unknown'],
    );
    await bench.clock.advance(MINUTE);
    assert.equal(bench.waker.wakes.length, 1);
    assert.equal((await bench.state(id)).alarm.status, 'fired');
  });
});
