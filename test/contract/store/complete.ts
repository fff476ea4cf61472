import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmState, Transition } from '../../../src/chronos/alarm/alarm.ts';
import { settleDeferred } from '../../../src/chronos/alarm/settlement.ts';
import {
  ADA,
  again,
  attemptOf,
  BOB,
  cancelled,
  claim,
  createClaimed,
  createDue,
  delivered,
  edited,
  everythingOf,
  firedForGood,
  keyOf,
  NOW,
  occurrenceOf,
  paused,
  triggered,
  withCode,
} from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';

const never: Transition = () => assert.fail('settle was called');

export function completeContract(open: OpenStore): void {
  describe('complete', () => {
    test('settles the alarm and records the attempt together', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const claimed = await createClaimed(store);
      const { alarm, occurrence } = claimed;
      let given: AlarmState | undefined;
      const settle: Transition = (state) => {
        given = state;
        return firedForGood(occurrence.fireId)(state);
      };
      const attempt = attemptOf(claimed, { error: 'said\0 "no" \u{1F998}', missedCount: 3 });
      assert.deepEqual(await store.complete([{ key: keyOf(claimed), attempt, settle }]), ['applied']);

      assert.deepEqual(given, { alarm, occurrences: [{ ...occurrence, claimedAt: null }] });
      const after = { state: firedForGood(occurrence.fireId)(given), attempts: [attempt] };
      assert.deepEqual(await everythingOf(store, ADA, alarm.id), after);
      assert.deepEqual(await everythingOf(await reopen(), ADA, alarm.id), after);
    });

    test('keeps an occurrence for a retry, and counts its fence and attempts on', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      const { fireId } = claimed.occurrence;
      await store.complete([{ key: keyOf(claimed), attempt: null, settle: again(fireId, NOW + 5) }]);
      const { state, attempts } = await everythingOf(store, ADA, claimed.alarm.id);
      assert.deepEqual(state?.occurrences, [{ ...claimed.occurrence, dueAt: NOW + 5, claimedAt: null }]);
      assert.deepEqual(attempts, []);
    });

    test('keeps a deferred occurrence with its reason, through the next claim, and takes its attempt back', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const claimed = await createClaimed(store, { urgent: true });
      const { fireId } = claimed.occurrence;
      const deferral = { until: NOW + 500, dueAt: NOW + 5, reason: 'held back: "quiet hours" \\ until 07:00 {Европа}' };
      const deferred = {
        ...claimed.occurrence,
        attempt: 0,
        dueAt: NOW + 5,
        heldReason: deferral.reason,
        heldUntil: NOW + 500,
        claimedAt: null,
      };
      const settle: Transition = (state) => settleDeferred(state, fireId, deferral);
      assert.deepEqual(await store.complete([{ key: keyOf(claimed), attempt: null, settle }]), ['applied']);
      const after = { state: { alarm: claimed.alarm, occurrences: [deferred] }, attempts: [] };
      assert.deepEqual(await everythingOf(store, ADA, claimed.alarm.id), after);
      const again = await reopen();
      assert.deepEqual(await everythingOf(again, ADA, claimed.alarm.id), after);
      assert.deepEqual(await claim(again, { now: NOW + 4 }), []);
      const now = NOW + 5;
      const expected = { ...deferred, attempt: 1, fence: 2, claimedAt: now };
      assert.deepEqual(await claim(again, { now }), [{ alarm: claimed.alarm, occurrence: expected }]);
    });

    test('continues a series', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store, { kind: 'cron', cronExpr: '@hourly' });
      const next = occurrenceOf(claimed.alarm, NOW + 3_600_000);
      const settle: Transition = ({ alarm }) => ({
        alarm: { ...alarm, fireCount: alarm.fireCount + 1 },
        occurrences: [next],
      });
      await store.complete([{ key: keyOf(claimed), attempt: attemptOf(claimed), settle }]);
      assert.deepEqual((await store.get(ADA, claimed.alarm.id))?.occurrences, [next]);
      assert.equal((await claim(store, { now: NOW + 3_600_000 })).length, 1);
    });

    test('changes nothing for a stale fence', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      const before = await everythingOf(store, ADA, claimed.alarm.id);
      const key = keyOf(claimed);
      for (const fence of [key.fence - 1, key.fence + 1]) {
        const completion = { key: { ...key, fence }, attempt: attemptOf(claimed), settle: never };
        assert.deepEqual(await store.complete([completion]), ['lost_claim']);
      }
      assert.deepEqual(await everythingOf(store, ADA, claimed.alarm.id), before);
    });

    test('applies one outcome once', async (t) => {
      const { store } = await openFor(t, open);
      const once = await createClaimed(store);
      assert.deepEqual(await store.complete([delivered(once), delivered(once)]), ['applied', 'lost_claim']);
      assert.deepEqual(await store.complete([delivered(once)]), ['lost_claim']);

      const retried = await createClaimed(store);
      const key = keyOf(retried);
      const failed = { key, attempt: attemptOf(retried), settle: again(key.fireId, NOW + 5) };
      assert.deepEqual(await store.complete([failed]), ['applied']);
      assert.deepEqual(await store.complete([failed]), ['lost_claim']);
      const { state, attempts } = await everythingOf(store, ADA, retried.alarm.id);
      assert.equal(state?.alarm.failureCount, 1);
      assert.equal(attempts.length, 1);
    });

    test('of the same outcome, submitted many times at once, one is applied', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const claimed = await createClaimed(store);
      const results = await Promise.all(Array.from({ length: 20 }, (_, n) => pick(n).complete([delivered(claimed)])));
      assert.equal(results.flat().filter((result) => result === 'applied').length, 1);
      const { state, attempts } = await everythingOf(store, ADA, claimed.alarm.id);
      assert.equal(state?.alarm.fireCount, 1);
      assert.equal(attempts.length, 1);
    });

    test('settles the alarm in its current state: edited, paused, cancelled', async (t) => {
      const { store } = await openFor(t, open);
      const changes = [edited({ label: 'new', payload: '2.0' }), paused, cancelled];
      for (const change of changes) {
        const claimed = await createClaimed(store);
        const changed = await store.update(ADA, claimed.alarm.id, change);
        let given: AlarmState | undefined;
        const settle: Transition = (state) => {
          given = state;
          return { ...state, occurrences: [] };
        };
        assert.deepEqual(await store.complete([{ key: keyOf(claimed), attempt: null, settle }]), ['applied']);
        assert.deepEqual(given?.alarm, changed?.alarm);
        assert.deepEqual(
          given?.occurrences,
          changed?.occurrences.map((occurrence) => ({ ...occurrence, claimedAt: null })),
        );
      }
    });

    test('loses to an update that removed the occurrence', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.update(ADA, claimed.alarm.id, ({ alarm }) => ({ alarm, occurrences: [] }));
      assert.deepEqual(await store.complete([delivered(claimed)]), ['lost_claim']);
      const { state, attempts } = await everythingOf(store, ADA, claimed.alarm.id);
      assert.deepEqual(state, { alarm: claimed.alarm, occurrences: [] });
      assert.deepEqual(
        attempts.map(({ outcome }) => outcome),
        ['unknown'],
      );
    });

    test('applies each of a batch separately, and answers in its order', async (t) => {
      const { store } = await openFor(t, open);
      const alarms = [];
      for (const owner of [ADA, BOB, ADA, BOB]) alarms.push(await createDue(store, NOW, { owner }));
      const claims = await claim(store);
      assert.equal(claims.length, 4);
      const batch = claims.map(delivered);
      batch[1] = { ...batch[1]!, key: { ...batch[1]!.key, fence: 99 }, settle: never };
      batch.push({ ...batch[0]!, key: { ...batch[0]!.key, alarmId: alarms[3]!.alarm.id }, settle: never });
      assert.deepEqual(await store.complete(batch), ['applied', 'lost_claim', 'applied', 'applied', 'lost_claim']);
      for (const [n, { alarm }] of claims.entries()) {
        const { state, attempts } = await everythingOf(store, alarm.owner, alarm.id);
        assert.equal(state?.alarm.status, n === 1 ? 'active' : 'fired');
        assert.equal(attempts.length, n === 1 ? 0 : 1);
      }
    });

    test('settles several occurrences of one alarm one after the other', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW - 1);
      await store.update(ADA, alarm.id, triggered(NOW));
      const claims = await claim(store);
      assert.deepEqual(await store.complete(claims.map(delivered)), ['applied', 'applied']);
      const state = await store.get(ADA, alarm.id);
      assert.equal(state?.alarm.fireCount, 2);
      assert.deepEqual(state?.occurrences, []);
    });

    test('stores nothing of a batch with one occurrence that cannot be settled', async (t) => {
      const { store } = await openFor(t, open);
      await createDue(store, NOW);
      await createDue(store, NOW);
      const claims = await claim(store);
      const failure = new Error('this cannot be settled');
      const batch = claims.map(delivered);
      batch[1] = {
        ...batch[1]!,
        settle: () => {
          throw failure;
        },
      };
      await assert.rejects(store.complete(batch), failure);
      for (const { alarm, occurrence } of claims) {
        const { state, attempts } = await everythingOf(store, ADA, alarm.id);
        assert.deepEqual(state, { alarm, occurrences: [occurrence] });
        assert.deepEqual(attempts, []);
      }
      assert.deepEqual(await store.complete(claims.map(delivered)), ['applied', 'applied']);
    });

    test('refuses an attempt at another occurrence than the settled one', async (t) => {
      const { store } = await openFor(t, open);
      const mine = await createClaimed(store);
      const theirs = await createClaimed(store, { owner: BOB });
      const mixed = { ...delivered(mine), attempt: attemptOf(theirs) };
      await assert.rejects(store.complete([mixed]), withCode('internal'));
      assert.deepEqual(await store.attempts(BOB, theirs.alarm.id, { limit: 9 }), []);
      assert.deepEqual((await store.get(ADA, mine.alarm.id))?.occurrences, [mine.occurrence]);
    });

    test('does nothing for an empty batch', async (t) => {
      const { store } = await openFor(t, open);
      assert.deepEqual(await store.complete([]), []);
    });
  });
}
