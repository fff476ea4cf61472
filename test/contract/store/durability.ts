import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ADA,
  again,
  agentKey,
  alarmDue,
  attemptOf,
  claim,
  createDue,
  delivered,
  edited,
  everythingOf,
  keyOf,
  NO_LIMIT,
  NOW,
  triggered,
} from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

export function durabilityContract(open: OpenStore): void {
  describe('after a restart', () => {
    test('all data is unchanged: alarms, due occurrences, claims, ledger, keys, next due time', async (t) => {
      const { store, reopen } = await openFor(t, open);
      for (const n of [1, 2, 3, 4]) await createDue(store, NOW - n, { idempotencyKey: `k${n}`, payload: `${n}.0` });
      const [first, second, third] = await claim(store, { limit: 3 });
      assert.ok(first && second && third);
      await store.complete([
        delivered(first),
        { key: keyOf(second), attempt: attemptOf(second), settle: again(second.occurrence.fireId, NOW + 5) },
      ]);
      await store.update(ADA, third.alarm.id, triggered(NOW + 1));
      await store.update(ADA, third.alarm.id, edited({ wakeMessage: 'other words' }));
      await store.enrollKey(agentKey());
      const none: ReadonlySet<string> = new Set();

      const before = {
        list: await store.list(ADA, { limit: 100 }),
        ledgers: await Promise.all([first, second].map(({ alarm }) => everythingOf(store, ADA, alarm.id))),
        keys: await store.keysOf(ADA),
        due: await store.nextDueAt(none),
      };
      const restarted = await reopen();
      assert.deepEqual(
        {
          list: await restarted.list(ADA, { limit: 100 }),
          ledgers: await Promise.all([first, second].map(({ alarm }) => everythingOf(restarted, ADA, alarm.id))),
          keys: await restarted.keysOf(ADA),
          due: await restarted.nextDueAt(none),
        },
        before,
      );
      const repeated = await restarted.create(alarmDue(NOW, { idempotencyKey: 'k2' }), NO_LIMIT);
      assert.equal(repeated.result, 'key_taken');
    });

    test('an earlier claim lasts until it is ended, and its outcome still counts', async (t) => {
      const { store, reopen } = await openFor(t, open);
      await createDue(store, NOW);
      const [claimed] = await claim(store);
      assert.ok(claimed);
      assert.deepEqual(await (await reopen()).complete([delivered(claimed)]), ['applied']);
    });
  });

  describe('ping', () => {
    test('resolves while the store can write', async (t) => {
      const { store } = await openFor(t, open);
      await store.ping();
      await Promise.all([store.ping(), createDue(store, NOW), store.ping()]);
    });
  });
}
