import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ADA,
  again,
  alarmDue,
  BOB,
  cancelled,
  claim,
  create,
  createClaimed,
  createDue,
  delivered,
  keyOf,
  NOW,
  paused,
  triggered,
} from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

const NOBODY: ReadonlySet<string> = new Set();

export function nextDueContract(open: OpenStore): void {
  describe('nextDueAt', () => {
    test('is undefined when nothing is due or scheduled', async (t) => {
      const { store } = await openFor(t, open);
      assert.equal(await store.nextDueAt(NOBODY), undefined);
      const { alarm } = await createDue(store, NOW);
      await store.update(ADA, alarm.id, paused);
      assert.equal(await store.nextDueAt(NOBODY), undefined);
    });

    test('follows occurrences that are added, moved and removed', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const late = await createDue(store, NOW + 100);
      assert.equal(await store.nextDueAt(NOBODY), NOW + 100);
      const early = await createDue(store, NOW + 50, { owner: BOB });
      assert.equal(await store.nextDueAt(NOBODY), NOW + 50);
      await store.update(ADA, late.alarm.id, triggered(NOW + 10));
      assert.equal(await store.nextDueAt(NOBODY), NOW + 10);
      await store.update(ADA, late.alarm.id, cancelled);
      assert.equal(await store.nextDueAt(NOBODY), NOW + 50);
      await store.update(BOB, early.alarm.id, again(early.occurrences[0]!.fireId, NOW + 70));
      assert.equal(await store.nextDueAt(NOBODY), NOW + 70);
      assert.equal(await (await reopen()).nextDueAt(NOBODY), NOW + 70);
    });

    test('may be in the past', async (t) => {
      const { store } = await openFor(t, open);
      await createDue(store, NOW - 5_000_000);
      assert.equal(await store.nextDueAt(NOBODY), NOW - 5_000_000);
    });

    test('ignores claimed occurrences, and counts a retry', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      assert.equal(await store.nextDueAt(NOBODY), undefined);
      await createDue(store, NOW + 19_999);
      assert.equal(await store.nextDueAt(NOBODY), NOW + 19_999);
      const { fireId } = claimed.occurrence;
      await store.complete([{ key: keyOf(claimed), attempt: null, settle: again(fireId, NOW + 3) }]);
      assert.equal(await store.nextDueAt(NOBODY), NOW + 3);
    });

    test('ignores the claim of an occurrence that was parked in delivery', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.update(ADA, claimed.alarm.id, cancelled);
      assert.equal(await store.nextDueAt(NOBODY), undefined);
    });

    test('ignores saturated owners, whatever is due for them', async (t) => {
      const { store } = await openFor(t, open);
      await createClaimed(store);
      await Promise.all(Array.from({ length: 300 }, (_, n) => create(store, alarmDue(NOW - 1000 + n))));
      await createDue(store, NOW + 7, { owner: BOB });
      await createDue(store, NOW + 9, { owner: 'carl' });
      assert.equal(await store.nextDueAt(new Set([ADA])), NOW + 7);
      assert.equal(await store.nextDueAt(new Set([ADA, 'nobody', BOB])), NOW + 9);
      assert.equal(await store.nextDueAt(new Set([ADA, BOB, 'carl'])), undefined);
    });

    test('is never earlier than the earliest occurrence that a claim would then find', async (t) => {
      const { store } = await openFor(t, open);
      for (const n of [5, 3, 9, 1]) await createDue(store, NOW + n, { owner: `owner-${n % 2}` });
      const seen = [];
      for (let now = await store.nextDueAt(NOBODY); now !== undefined; now = await store.nextDueAt(NOBODY)) {
        const claims = await claim(store, { now });
        assert.equal(claims.length, 1);
        seen.push(now - NOW);
        await store.complete(claims.map(delivered));
      }
      assert.deepEqual(seen, [1, 3, 5, 9]);
    });
  });

  describe('countDue', () => {
    test('counts due, unclaimed occurrences of every owner, and stops at the given limit', async (t) => {
      const { store } = await openFor(t, open);
      const counted = (now: number, atMost = 100) => store.countDue({ now, atMost });
      assert.equal(await counted(NOW), 0);
      await createDue(store, NOW + 1);
      await createDue(store, NOW + 2);
      await createDue(store, NOW + 2, { owner: BOB });
      const parked = await createDue(store, NOW + 2, { owner: BOB });
      await store.update(BOB, parked.alarm.id, paused);
      assert.deepEqual([await counted(NOW), await counted(NOW + 1), await counted(NOW + 2)], [0, 1, 3]);
      assert.equal(await counted(NOW + 2, 2), 2);
      assert.equal((await claim(store, { now: NOW + 1 })).length, 1);
      assert.equal(await counted(NOW + 2), 2);
    });
  });
}
