import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ADA,
  again,
  attemptOf,
  BOB,
  claim,
  createClaimed,
  createDue,
  delivered,
  edited,
  everythingOf,
  keyOf,
  NOW,
} from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

export function ownerContract(open: OpenStore): void {
  describe("another owner's alarm", () => {
    test('is absent for any operation that names it', async (t) => {
      const { store } = await openFor(t, open);
      const first = await createClaimed(store, { idempotencyKey: 'k' });
      const { fireId } = first.occurrence;
      await store.complete([{ key: keyOf(first), attempt: attemptOf(first), settle: again(fireId, NOW) }]);
      const [claimed] = await claim(store);
      assert.ok(claimed);
      const before = await everythingOf(store, ADA, claimed.alarm.id);
      const foreign = { ...keyOf(claimed), owner: BOB };

      assert.equal(await store.get(BOB, claimed.alarm.id), undefined);
      assert.equal(await store.findByKey(BOB, 'k'), undefined);
      assert.deepEqual(await store.list(BOB, { limit: 10 }), []);
      assert.equal(await store.update(BOB, claimed.alarm.id, edited({ label: 'mine' })), undefined);
      assert.deepEqual(await store.attempts(BOB, claimed.alarm.id, { limit: 10 }), []);
      const attempt = { ...attemptOf(claimed), owner: BOB };
      assert.deepEqual(await store.complete([{ ...delivered(claimed), key: foreign, attempt }]), ['lost_claim']);

      assert.deepEqual(await everythingOf(store, ADA, claimed.alarm.id), before);
      assert.deepEqual(await store.complete([delivered(claimed)]), ['applied']);
    });

    test('is distinguished by every character of the owner', async (t) => {
      const { store } = await openFor(t, open);
      const owners = ['ada', 'Ada', 'ad', 'ada-', 'ada.', 'a%', '_da'];
      const states = [];
      for (const owner of owners) states.push(await createDue(store, NOW, { owner }));
      for (const [n, owner] of owners.entries()) assert.deepEqual(await store.list(owner, { limit: 10 }), [states[n]]);
      const claims = await claim(store, { perOwner: 4, inFlight: new Map([['ada', 4]]) });
      assert.deepEqual(claims.map(({ alarm }) => alarm.owner).sort(), owners.slice(1).sort());
    });
  });
}
