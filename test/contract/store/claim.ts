import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { createWaiting } from './events.ts';
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
  everythingOf,
  keyOf,
  NOW,
  paused,
  triggered,
} from './fixtures.ts';
import { type OpenStore, openFor, openInstances, together } from './store-under-test.ts';

const dueOf = (claims: readonly Claim[]) => claims.map(({ occurrence }) => occurrence.dueAt);
const ownersOf = (claims: readonly Claim[]) => claims.map(({ alarm }) => alarm.owner);
const range = (count: number) => Array.from({ length: count }, (_, index) => index);

export function claimContract(open: OpenStore): void {
  describe('claim', () => {
    test('takes due occurrences with their alarms', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm, occurrences } = await createDue(store, NOW - 3, { payload: '{"n":1.0}', wakeMessage: 'NUL \0 ' });
      const claimed = { ...occurrences[0]!, attempt: 1, fence: 1, claimedAt: NOW };
      assert.deepEqual(await claim(store), [{ alarm, occurrence: claimed }]);
      assert.deepEqual(await store.get(ADA, alarm.id), { alarm, occurrences: [claimed] });
    });

    test('takes occurrences that are due at this very millisecond, and none that is due later', async (t) => {
      const { store } = await openFor(t, open);
      for (const due of [NOW + 1, NOW, NOW - 1]) await createDue(store, due);
      assert.deepEqual(dueOf(await claim(store)), [NOW - 1, NOW]);
      assert.deepEqual(await claim(store), []);
      assert.deepEqual(dueOf(await claim(store, { now: NOW + 1 })), [NOW + 1]);
    });

    test('takes the earliest due first, over all owners, up to the limit', async (t) => {
      const underTest = await openFor(t, open);
      const { store } = underTest;
      const owners = together(underTest, 7);
      const dues = range(30).map((n) => NOW - ((n * 17) % 30) - 1);
      for (const [n, due] of dues.entries()) await createDue(store, due, { owner: owners[n % 7]! });
      const order = dues.toSorted((one, other) => one - other);
      assert.deepEqual(dueOf(await claim(store, { limit: 11 })), order.slice(0, 11));
      assert.deepEqual(dueOf(await claim(store, { limit: 100 })), order.slice(11));
    });

    test('takes all due occurrences of an alarm, each separately', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW - 2);
      await store.update(ADA, alarm.id, triggered(NOW - 1));
      await store.update(ADA, alarm.id, triggered(NOW));
      const claims = await claim(store);
      assert.deepEqual(dueOf(claims), [NOW - 2, NOW - 1, NOW]);
      assert.deepEqual(
        claims.map(({ occurrence }) => occurrence.source),
        ['schedule', 'trigger', 'trigger'],
      );
    });

    test('finds a triggered occurrence of a paused alarm, and not its schedule', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW - 2);
      await store.update(ADA, alarm.id, paused);
      await store.update(ADA, alarm.id, triggered(NOW));
      assert.deepEqual(dueOf(await claim(store)), [NOW]);
    });

    test('finds no parked or cancelled occurrence', async (t) => {
      const { store } = await openFor(t, open);
      const first = await createDue(store, NOW);
      const second = await createDue(store, NOW);
      await store.update(ADA, first.alarm.id, paused);
      await store.update(ADA, second.alarm.id, cancelled);
      assert.deepEqual(await claim(store, { now: NOW + 1_000_000 }), []);
    });

    test('takes nothing when the limit is zero', async (t) => {
      const { store } = await openFor(t, open);
      await createDue(store, NOW);
      assert.deepEqual(await claim(store, { limit: 0 }), []);
      assert.deepEqual(await claim(store, { perOwner: 0 }), []);
      assert.deepEqual(await claim(store, { perOwner: 2, inFlight: new Map([[ADA, 2]]) }), []);
      assert.deepEqual(await claim(store, { perOwner: 2, inFlight: new Map([[ADA, 3]]) }), []);
    });

    test('takes at most the per-owner limit of one owner, occurrences in flight included', async (t) => {
      const { store } = await openFor(t, open);
      for (const n of range(6)) await createDue(store, NOW - 100 + n);
      for (const n of range(3)) await createDue(store, NOW - 50 + n, { owner: BOB });
      const claims = await claim(store, { perOwner: 4, inFlight: new Map([[ADA, 1]]) });
      assert.deepEqual(dueOf(claims), [NOW - 100, NOW - 99, NOW - 98, NOW - 50, NOW - 49, NOW - 48]);
    });

    test("one owner's backlog never hides the due occurrences of others", async (t) => {
      const underTest = await openFor(t, open);
      const { store } = underTest;
      await Promise.all(range(1500).map((n) => create(store, alarmDue(NOW - 100_000 + n))));
      const others = together(underTest, 20, ADA);
      for (const [n, owner] of others.entries()) await createDue(store, NOW - 20 + n, { owner });

      const first = await claim(store, { limit: 10, perOwner: 4 });
      assert.deepEqual(ownersOf(first), [ADA, ADA, ADA, ADA, ...others.slice(0, 6)]);
      const inFlight = new Map([[ADA, 4]]);
      assert.deepEqual(ownersOf(await claim(store, { limit: 10, perOwner: 4, inFlight })), others.slice(6, 16));
      assert.deepEqual(ownersOf(await claim(store, { limit: 10, perOwner: 4, inFlight })), others.slice(16));
      assert.deepEqual(await claim(store, { limit: 10, perOwner: 4, inFlight }), []);
    });

    test('never gives one occurrence to two callers', async (t) => {
      const { store, pick } = await openInstances(t, open);
      await Promise.all(range(200).map((n) => createDue(store, NOW - n, { owner: `owner-${n % 20}` })));
      const batches = await Promise.all(range(20).map((n) => claim(pick(n), { limit: 15 })));
      let rest = await claim(store);
      const fireIds = [...batches.flat(), ...rest].map(({ occurrence }) => occurrence.fireId);
      assert.equal(fireIds.length, 200);
      assert.equal(new Set(fireIds).size, 200);
      rest = await claim(store);
      assert.deepEqual(rest, []);
    });

    test('never takes a claimed occurrence, however long ago it was claimed', async (t) => {
      const { store } = await openFor(t, open);
      const { occurrence } = await createClaimed(store);
      assert.deepEqual(await claim(store, { now: NOW + 1_000_000 }), []);
      assert.deepEqual((await store.get(ADA, occurrence.alarmId))?.occurrences, [occurrence]);
    });

    test('a deferred retry is claimed when it is due, and not before', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      const { fireId } = claimed.occurrence;
      await store.complete([{ key: keyOf(claimed), attempt: null, settle: again(fireId, NOW + 30_000) }]);
      assert.deepEqual(await claim(store, { now: NOW + 29_999 }), []);
      const [second] = await claim(store, { now: NOW + 30_000 });
      assert.equal(second?.occurrence.fireId, fireId);
      assert.equal(second?.occurrence.attempt, 2);
      assert.equal(second?.occurrence.fence, 2);
    });
  });
}

export function orphanedClaimContract(open: OpenStore): void {
  describe('the claim of a dead process', () => {
    const later = NOW + 700;

    test('is ended: the attempt is unknown, counts as failed, and is tried again at once', async (t) => {
      const { store, die } = await openFor(t, open);
      const { alarm, occurrence } = await createClaimed(store);
      const heir = await die();
      assert.equal(await heir.endOrphanedClaims(later), 1);
      assert.equal(await heir.endOrphanedClaims(later + 1), 0);
      const claims = await claim(heir, { now: later });

      const { state, attempts } = await everythingOf(heir, ADA, alarm.id);
      assert.deepEqual(claims, [
        {
          alarm: { ...alarm, failureCount: 1, lastError: state?.alarm.lastError },
          occurrence: { ...occurrence, attempt: 2, fence: 2, claimedAt: later },
        },
      ]);
      assert.deepEqual(state, { alarm: claims[0]?.alarm, occurrences: [claims[0]?.occurrence] });
      assert.match(state?.alarm.lastError ?? '', /stopped before it could record the outcome/);
      assert.deepEqual(attempts, [
        {
          fireId: occurrence.fireId,
          alarmId: alarm.id,
          owner: ADA,
          scheduledFor: NOW,
          attempt: 1,
          startedAt: NOW,
          finishedAt: later,
          outcome: 'unknown',
          httpStatus: null,
          error: state?.alarm.lastError,
          missedCount: 0,
          machineReadyMs: null,
          lateBecause: null,
          cause: null,
        },
      ]);
    });

    test('is not in the ledger when it was a look at a source, which is repeated', async (t) => {
      const { store, die } = await openFor(t, open);
      const looked = { kind: 'event', event: { source: 'file', path: 'inbox', look_every: 'PT1S' } } as const;
      const { alarm, occurrences } = await createWaiting(store, looked);
      const now = occurrences[0]!.dueAt!;
      assert.equal((await claim(store, { now })).length, 1);
      const heir = await die();
      assert.equal(await heir.endOrphanedClaims(now + 700), 1);
      const { state, attempts } = await everythingOf(heir, ADA, alarm.id);
      assert.deepEqual([attempts, state?.alarm], [[], alarm]);
      assert.deepEqual(
        (await claim(heir, { now: now + 700 })).map(({ occurrence }) => occurrence.fireId),
        [occurrences[0]!.fireId],
      );
    });

    test('ends no earlier than it began, whatever the clock shows', async (t) => {
      const { store, die } = await openFor(t, open);
      const { alarm } = await createClaimed(store);
      const heir = await die();
      // The search goes as far as the claims do.
      await heir.endOrphanedClaims(NOW);
      const [attempt] = await heir.attempts(ADA, alarm.id, { limit: 9 });
      assert.equal(attempt?.finishedAt, NOW);
    });

    test('leaves nothing to complete, before and after another claim', async (t) => {
      const { store, die } = await openFor(t, open);
      const first = await createClaimed(store);
      const heir = await die();
      await heir.endOrphanedClaims(later);
      assert.deepEqual(await heir.complete([delivered(first)]), ['lost_claim']);
      const [second] = await claim(heir, { now: later });
      assert.ok(second);
      assert.deepEqual(await heir.complete([delivered(first)]), ['lost_claim']);
      assert.deepEqual((await heir.get(ADA, first.alarm.id))?.occurrences, [second.occurrence]);
      assert.deepEqual(await heir.complete([delivered(second)]), ['applied']);
    });

    test('is ended on an occurrence that was parked meanwhile', async (t) => {
      const { store, die } = await openFor(t, open);
      const kept = await createClaimed(store, { owner: ADA });
      const dropped = await createClaimed(store, { owner: BOB });
      await store.update(ADA, kept.alarm.id, paused);
      await store.update(BOB, dropped.alarm.id, cancelled);
      const heir = await die();
      assert.equal(await heir.endOrphanedClaims(later), 2);
      assert.deepEqual(await claim(heir, { now: later }), []);

      const ofKept = await everythingOf(heir, ADA, kept.alarm.id);
      assert.deepEqual(ofKept.state?.occurrences, [{ ...kept.occurrence, dueAt: null, claimedAt: null }]);
      assert.equal(ofKept.state?.alarm.status, 'paused');
      assert.equal(ofKept.attempts[0]?.outcome, 'unknown');
      const ofDropped = await everythingOf(heir, BOB, dropped.alarm.id);
      assert.deepEqual(ofDropped.state?.occurrences, []);
      assert.equal(ofDropped.state?.alarm.status, 'cancelled');
      assert.equal(ofDropped.attempts[0]?.outcome, 'unknown');
    });

    test('fails an alarm that has used up its failures', async (t) => {
      const { store, die } = await openFor(t, open);
      const { alarm } = await createClaimed(store, { maxFailures: 1 });
      const heir = await die();
      await heir.endOrphanedClaims(later);
      assert.deepEqual(await claim(heir, { now: later }), []);
      const { state, attempts } = await everythingOf(heir, ADA, alarm.id);
      assert.equal(state?.alarm.status, 'failed');
      assert.equal(state?.occurrences[0]?.dueAt, null);
      assert.equal(attempts.length, 1);
      assert.equal((await heir.create(alarmDue(NOW), { maxActive: 1 })).result, 'created');
    });

    test('many of them are all ended, several of one alarm included', async (t) => {
      const { store, die } = await openFor(t, open);
      for (const n of range(300)) await createDue(store, NOW - 1, { owner: `owner-${n % 3}` });
      const { alarm } = await createDue(store, NOW - 1);
      await store.update(ADA, alarm.id, triggered(NOW));
      assert.equal((await claim(store)).length, 302);
      const heir = await die();
      assert.equal(await heir.endOrphanedClaims(later), 302);
      assert.equal((await heir.attempts(ADA, alarm.id, { limit: 9 })).length, 2);
      const claims = await claim(heir, { now: later });
      assert.equal(claims.length, 302);
      assert.deepEqual(new Set(claims.map(({ occurrence }) => occurrence.attempt)), new Set([2]));
    });
  });
}
