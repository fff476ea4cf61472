import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cancelAlarm, pauseAlarm, resumeAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { edit } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

type Bench = Awaited<ReturnType<typeof createBench>>;

/** Claims due occurrences, and never reports back. */
function vanish({ store, clock }: Bench): Promise<Claim[]> {
  return store.claim({ now: clock.now(), limit: 10, perOwner: 4, inFlight: new Map() });
}

test('a slow wake keeps its claim, however long it takes, without any further call of the store', async (t) => {
  const bench = await createBench(t, { respond: () => undefined });
  const { id } = await bench.set({ kind: 'once', delay_seconds: 1 });
  await bench.clock.advance(2 * SECOND);
  assert.deepEqual(await vanish(bench), []);
  const claims = bench.faults.count('claim');
  await bench.clock.advance(2 * MINUTE);
  assert.equal(bench.faults.count('claim'), claims);
  bench.waker.wakes[0]!.answer(DELIVERED);
  await bench.clock.advance(SECOND);
  assert.deepEqual(
    (await bench.ledger(id)).map(({ outcome, attempt }) => [outcome, attempt]),
    [['delivered', 1]],
  );
  assert.equal((await bench.state(id)).alarm.status, 'fired');
});

test('a late outcome of a claim that was ended changes nothing', async (t) => {
  const bench = await createBench(t, { respond: () => undefined });
  const { id, fireId } = await bench.set({ kind: 'once', delay_seconds: 1 });
  await bench.clock.advance(2 * SECOND);
  // Cut off from the store, while others take this process for gone.
  bench.faults.failing.add('claim').add('nextDueAt');
  await bench.clock.advance(2 * SECOND);
  bench.faults.failing.clear();
  assert.equal(await bench.store.endOrphanedClaims(bench.clock.now()), 1);
  const [taken] = await vanish(bench);
  assert.equal(taken?.occurrence.fireId, fireId);
  assert.equal(taken.occurrence.attempt, 2);

  const before = await bench.state(id);
  bench.waker.wakes[0]!.answer(DELIVERED);
  await bench.clock.advance(5 * SECOND);
  assert.deepEqual(await bench.state(id), before);
  assert.deepEqual(
    (await bench.ledger(id)).map(({ outcome, attempt }) => [outcome, attempt]),
    [['unknown', 1]],
  );
});

test('a process that was suspended between a claim and its wakes sends them late, and once', async (t) => {
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
    [[fireId, 1]],
  );
  assert.deepEqual(
    (await bench.ledger(id)).map(({ outcome, attempt }) => [outcome, attempt]),
    [['delivered', 1]],
  );
});

describe('when the process that claimed an occurrence has vanished', () => {
  /** What the next process does first. */
  const next = (bench: Bench) => bench.store.endOrphanedClaims(bench.clock.now());

  async function abandoned(t: Parameters<typeof createBench>[0], body = {}) {
    const bench = await createBench(t, { idle: true });
    const alarm = await bench.set({ kind: 'once', delay_seconds: 1, ...body });
    await bench.clock.advance(SECOND);
    assert.equal((await vanish(bench)).length, 1);
    return { bench, ...alarm };
  }

  test('it is taken over when the claim is ended, and the ledger has both attempts', async (t) => {
    const { bench, id, fireId, due } = await abandoned(t);
    bench.dispatch();
    await bench.clock.advance(3 * SECOND);
    assert.equal(bench.waker.wakes.length, 0);
    await next(bench);
    await bench.clock.advance(2 * SECOND);
    const [wake] = bench.waker.wakes;
    assert.deepEqual([wake?.claim.occurrence.fireId, wake?.claim.occurrence.attempt], [fireId, 2]);
    assert.ok(wake!.at <= due + 5 * SECOND);
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
      await next(bench);
      assert.equal((await vanish(bench)).length, 1);
    }
    await bench.clock.advance(15 * SECOND);
    await next(bench);
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
    await next(bench);
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
    await next(bench);
    bench.dispatch();
    await bench.clock.advance(20 * SECOND);
    const { alarm, occurrences } = await bench.state(id);
    assert.deepEqual([alarm.status, alarm.failureCount], ['paused', 1]);
    assert.deepEqual(
      occurrences.map(({ dueAt, claimedAt }) => [dueAt, claimedAt]),
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
    await next(bench);
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
