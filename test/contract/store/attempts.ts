import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Attempt } from '../../../src/chronos/alarm/alarm.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { FIRE_OUTCOMES } from '../../../src/wire/alarm.ts';
import { again, attemptOf, claim, createDue, keyOf, NOW, triggered } from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';

/** Tries due occurrences repeatedly; returns the expected ledger, latest first. */
async function tryTimes(store: AlarmStore, startedAt: readonly number[]): Promise<Attempt[]> {
  const recorded: Attempt[] = [];
  for (const [n, start] of startedAt.entries()) {
    const claims = await claim(store);
    const completions = claims.map((claimed) => ({
      key: keyOf(claimed),
      attempt: attemptOf(claimed, {
        startedAt: start,
        finishedAt: start + n,
        outcome: FIRE_OUTCOMES[n % FIRE_OUTCOMES.length]!,
        httpStatus: n % 2 === 0 ? 500 + n : null,
        error: n % 3 === 0 ? `error ${n}` : null,
        missedCount: n,
        machineReadyMs: n % 2 === 0 ? n : null,
        lateBecause: n % 2 === 0 ? 'slept' : null,
        cause: n % 2 === 0 ? 'clock client https://chat.example/client.json' : null,
      }),
      settle: again(claimed.occurrence.fireId, NOW),
    }));
    await store.complete(completions);
    recorded.push(...completions.map(({ attempt }) => attempt));
  }
  return recorded.sort(
    (one, other) =>
      other.startedAt - one.startedAt ||
      (one.fireId < other.fireId ? 1 : -1) * Number(one.fireId !== other.fireId) ||
      other.attempt - one.attempt,
  );
}

export function attemptsContract(open: OpenStore): void {
  describe('attempts', () => {
    test('is empty for an alarm without attempts, and for an absent alarm', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW);
      assert.deepEqual(await store.attempts(alarm.owner, alarm.id, { limit: 10 }), []);
      assert.deepEqual(await store.attempts(alarm.owner, 'no-such-alarm', { limit: 10 }), []);
    });

    test('returns every member of every attempt, latest first', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW);
      const recorded = await tryTimes(store, [NOW + 10, NOW + 30, NOW + 20, NOW + 40]);
      assert.deepEqual(await store.attempts(alarm.owner, alarm.id, { limit: 10 }), recorded);
      assert.deepEqual(await (await reopen()).attempts(alarm.owner, alarm.id, { limit: 10 }), recorded);
    });

    test('pages list every attempt once, also when many began in one millisecond', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW - 2);
      await store.update(alarm.owner, alarm.id, triggered(NOW - 1));
      await store.update(alarm.owner, alarm.id, triggered(NOW));
      const recorded = await tryTimes(store, [NOW + 1, NOW + 1, NOW + 1, NOW + 5]);
      assert.equal(recorded.length, 12);
      for (const limit of [1, 2, 5, 12]) {
        const paged: Attempt[] = [];
        for (;;) {
          const before = paged.at(-1);
          const page = await store.attempts(alarm.owner, alarm.id, { limit, ...(before && { before }) });
          assert.ok(page.length <= limit);
          if (page.length === 0) break;
          paged.push(...page);
        }
        assert.deepEqual(paged, recorded);
      }
    });
  });

  describe('pruneAttempts', () => {
    test('deletes the oldest that finished before an instant, up to a limit, and returns their number', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW);
      const recorded = await tryTimes(store, [NOW + 10, NOW + 30, NOW + 20, NOW + 40]);
      const before = recorded[0]!.finishedAt;
      assert.equal(await store.pruneAttempts({ before, limit: 2 }), 2);
      assert.deepEqual(await store.attempts(alarm.owner, alarm.id, { limit: 10 }), recorded.slice(0, 2));
      assert.equal(await store.pruneAttempts({ before, limit: 2 }), 1);
      assert.equal(await store.pruneAttempts({ before, limit: 2 }), 0);
      const restarted = await reopen();
      assert.deepEqual(await restarted.attempts(alarm.owner, alarm.id, { limit: 10 }), recorded.slice(0, 1));
      assert.equal((await restarted.get(alarm.owner, alarm.id))?.alarm.status, 'active');
    });

    test('of many simultaneous prune calls, each attempt is deleted by one, and the last one stays', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const { alarm } = await createDue(store, NOW);
      const recorded = await tryTimes(store, [NOW + 10, NOW + 30, NOW + 20, NOW + 40]);
      const pruned = await Promise.all(
        Array.from({ length: 6 }, (_, n) => pick(n).pruneAttempts({ before: NOW + 1_000_000, limit: 1 })),
      );
      assert.equal(
        pruned.reduce((sum, count) => sum + count, 0),
        3,
      );
      assert.deepEqual(await store.attempts(alarm.owner, alarm.id, { limit: 10 }), recorded.slice(0, 1));
    });
  });
}
