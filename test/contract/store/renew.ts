import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ADA, cancelled, claim, createClaimed, createDue, delivered, keyOf, LEASE_MS, NOW } from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

export function renewContract(open: OpenStore): void {
  describe('renew', () => {
    test('moves the end of a lease, and nothing else', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm, occurrence } = await createClaimed(store);
      const key = keyOf({ alarm, occurrence });
      assert.deepEqual(await store.renew([key], NOW + 20_000), new Set([key.fireId]));
      assert.deepEqual(await store.get(ADA, alarm.id), {
        alarm,
        occurrences: [{ ...occurrence, leaseUntil: NOW + 20_000 }],
      });
      assert.deepEqual(await claim(store, { now: NOW + LEASE_MS }), []);
      assert.deepEqual(await store.complete([delivered({ alarm, occurrence })]), ['applied']);
    });

    test('returns the leases that the caller still holds, and leaves the others unchanged', async (t) => {
      const { store } = await openFor(t, open);
      const ours = await createClaimed(store);
      const done = await createClaimed(store);
      await store.complete([delivered(done)]);
      const stale = await createClaimed(store);
      const free = await createDue(store, NOW + 50);
      const keys = [
        keyOf(done),
        { ...keyOf(stale), fence: stale.occurrence.fence - 1 },
        keyOf(ours),
        keyOf({ alarm: free.alarm, occurrence: free.occurrences[0]! }),
        { ...keyOf(stale), fireId: `${stale.alarm.id}@1` },
      ];
      assert.deepEqual(await store.renew(keys, NOW + 20_000), new Set([ours.occurrence.fireId]));
      assert.deepEqual((await store.get(ADA, stale.alarm.id))?.occurrences, [stale.occurrence]);
      assert.deepEqual(await store.get(ADA, free.alarm.id), free);
    });

    test('extends an expired lease, as long as no claim has ended it', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      const renewed = await store.renew([keyOf(claimed)], NOW + 3 * LEASE_MS);
      assert.equal(renewed.size, 1);
      assert.deepEqual(await claim(store, { now: NOW + 2 * LEASE_MS }), []);
    });

    test('continues for an attempt whose alarm was cancelled meanwhile', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.update(ADA, claimed.alarm.id, cancelled);
      assert.equal((await store.renew([keyOf(claimed)], NOW + 20_000)).size, 1);
    });

    test('does nothing for an empty list of keys', async (t) => {
      const { store } = await openFor(t, open);
      assert.deepEqual(await store.renew([], NOW), new Set());
    });
  });
}
