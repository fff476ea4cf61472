import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { storedBytes } from '../../../src/chronos/alarm/alarm.ts';
import { cancelAlarm, redriveAlarm, triggerAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { settleDelivered, settleFailed } from '../../../src/chronos/alarm/settlement.ts';
import type { AlarmStore, Claim } from '../../../src/chronos/store/store.ts';
import {
  ADA,
  agentKey,
  alarmDue,
  attemptOf,
  BOB,
  claim,
  createClaimed,
  createDue,
  edited,
  keyOf,
  NO_LIMIT,
  NOW,
  withCode,
} from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

const DAY_MS = 86_400_000;
const cancelled = (state: Parameters<typeof cancelAlarm>[0]) => cancelAlarm(state, NOW);

async function fire(store: AlarmStore, claimed: Claim, at = NOW): Promise<void> {
  const { fireId } = claimed.occurrence;
  const attempt = attemptOf(claimed, { startedAt: at, finishedAt: at });
  await store.complete([{ key: keyOf(claimed), attempt, settle: (state) => settleDelivered(state, fireId, at) }]);
}

async function fail(store: AlarmStore, claimed: Claim, at = NOW): Promise<void> {
  const { fireId } = claimed.occurrence;
  const attempt = attemptOf(claimed, { startedAt: at, finishedAt: at, outcome: 'failed', error: 'gone' });
  const failure = { error: 'gone', at, final: true, retryAt: () => at };
  await store.complete([{ key: keyOf(claimed), attempt, settle: (state) => settleFailed(state, fireId, failure) }]);
}

export function boundsContract(open: OpenStore): void {
  describe("an owner's limits", () => {
    test('alarms of any status count until they are deleted; a repeated request still finds its alarm', async (t) => {
      const { store } = await openFor(t, open);
      const limits = { ...NO_LIMIT, maxStored: 2 };
      const first = await createDue(store, NOW, { idempotencyKey: 'k' });
      const second = await createDue(store, NOW);
      await store.update(ADA, second.alarm.id, cancelled);
      const bytes = storedBytes(first.alarm) + storedBytes(second.alarm);
      const refused = { result: 'too_much', alarms: 2, bytes };
      assert.deepEqual(await store.create(alarmDue(NOW), limits), refused);
      const repeated = await store.create(alarmDue(NOW, { idempotencyKey: 'k' }), limits);
      assert.equal(repeated.result, 'key_taken');
      assert.deepEqual(await store.usage(), { owners: 1, alarms: 2, bytes });
      assert.equal((await store.create(alarmDue(NOW, { owner: BOB }), limits)).result, 'created');

      assert.equal(await store.deleteCancelled(ADA, 10), 1);
      assert.equal(await store.get(ADA, second.alarm.id), undefined);
      assert.equal((await store.create(alarmDue(NOW), limits)).result, 'created');
      assert.deepEqual(await store.create(alarmDue(NOW), limits), refused);
    });

    test('bytes count too, also bytes that an edit adds', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW, { wakeMessage: 'ü'.repeat(500) });
      const maxBytes = storedBytes(alarm) + 100;
      const refused = { result: 'too_much', alarms: 1, bytes: storedBytes(alarm) };
      assert.deepEqual(await store.create(alarmDue(NOW), { ...NO_LIMIT, maxBytes }), refused);
      const longer = edited({ wakeMessage: 'ü'.repeat(551) });
      await assert.rejects(store.update(ADA, alarm.id, longer, { maxBytes }), withCode('rate_limited'));
      assert.equal((await store.get(ADA, alarm.id))?.alarm.wakeMessage.length, 500);
      await store.update(ADA, alarm.id, edited({ wakeMessage: 'ü'.repeat(550) }), { maxBytes });
      assert.equal((await store.usage()).bytes, maxBytes);
      await store.update(ADA, alarm.id, edited({ wakeMessage: 'x' }), { maxBytes: 0 });
      assert.equal((await store.usage()).bytes, storedBytes({ ...alarm, wakeMessage: 'x' }));
    });

    test('of many simultaneous creates as many are stored as the limit allows', async (t) => {
      const { store } = await openFor(t, open);
      const limits = { ...NO_LIMIT, maxStored: 5 };
      const results = await Promise.all(Array.from({ length: 12 }, () => store.create(alarmDue(NOW), limits)));
      assert.equal(results.filter(({ result }) => result === 'created').length, 5);
      assert.equal((await store.usage()).alarms, 5);
    });

    test('a redriven alarm counts against the active ones', async (t) => {
      const { store } = await openFor(t, open);
      const failed = await createClaimed(store);
      await fail(store, failed);
      await createDue(store, NOW + 1);
      const redrive = (maxActive: number) =>
        store.update(ADA, failed.alarm.id, (state) => redriveAlarm(state, NOW), { maxActive });
      await assert.rejects(redrive(1), withCode('rate_limited'));
      assert.equal((await store.get(ADA, failed.alarm.id))?.alarm.status, 'failed');
      assert.equal((await redrive(2))?.alarm.status, 'active');
    });

    test('pending triggers count over all alarms of the owner', async (t) => {
      const { store } = await openFor(t, open);
      const alarms = [await createDue(store, NOW + DAY_MS), await createDue(store, NOW + DAY_MS)];
      const trigger = (n: number) =>
        store.update(ADA, alarms[n]!.alarm.id, (state) => triggerAlarm(state, NOW).state, { maxTriggers: 2 });
      await trigger(0);
      await trigger(1);
      await assert.rejects(trigger(0), withCode('rate_limited'));
      const [first] = await claim(store);
      const { fireId } = first!.occurrence;
      await store.complete([
        { key: keyOf(first!), attempt: attemptOf(first!), settle: (state) => settleDelivered(state, fireId, NOW) },
      ]);
      const [second] = await claim(store, { limit: 1 });
      assert.equal(second, undefined, 'both should have been claimed');
      await trigger(0);
    });

    test('first keys are limited per hour and in total; known owners and operators are not', async (t) => {
      const { store } = await openFor(t, open);
      const pin = (owner: string, enrolledAt: number, keysInAll = 100) =>
        store.pinFirstKey(agentKey({ owner, enrolledAt }), { perHour: 2, keysInAll });
      assert.equal(await pin('a', NOW), true);
      assert.equal(await pin('b', NOW + 1), true);
      await assert.rejects(pin('c', NOW + 2), withCode('rate_limited'));
      assert.deepEqual(await store.keysOf('c'), []);
      assert.equal(await pin('a', NOW + 3), true);
      await store.enrollKey(agentKey({ owner: 'd', source: 'enrolled', enrolledAt: NOW + 4 }));
      assert.equal(await pin('c', NOW + 3_600_001), true);
      await assert.rejects(pin('e', NOW + DAY_MS, 4), withCode('rate_limited'));
      assert.equal(await pin('e', NOW + DAY_MS, 5), true);
    });
  });

  test('rotated keys are no further agents', async (t) => {
    const { store } = await openFor(t, open);
    const limits = { perHour: 2, keysInAll: 2 };
    let from = agentKey({ owner: 'a', enrolledAt: NOW });
    assert.equal(await store.pinFirstKey(from, limits), true);
    for (let round = 1; round <= 5; round++) {
      const next = agentKey({ owner: 'a', publicKey: `${round}`.repeat(64) });
      const keys = { from: from.publicKey, to: next.publicKey };
      assert.equal(await store.rotateKey({ owner: 'a', ...keys, now: NOW + round, enrolledOnly: false }), 'rotated');
      from = next;
    }
    assert.equal(await store.pinFirstKey(agentKey({ owner: 'b', enrolledAt: NOW + 9 }), limits), true);
    await assert.rejects(
      store.pinFirstKey(agentKey({ owner: 'c', enrolledAt: NOW + 9 }), limits),
      withCode('rate_limited'),
    );
  });

  describe('deleting ended alarms', () => {
    test('deletes earlier fired, failed or cancelled ones, with ledger, turn reports and key, and no other', async (t) => {
      const { store } = await openFor(t, open);
      const old = NOW - 2 * DAY_MS;
      const before = NOW - DAY_MS;
      // Each was set long ago; the end counts.
      const change = { createdAt: old, updatedAt: old, fireAt: old };
      const make = async (owner: string, key: string) => {
        await createDue(store, old, { ...change, owner, idempotencyKey: key });
        return (await claim(store, { now: old }))[0]!;
      };
      const fired = await make(ADA, 'fired');
      await fire(store, fired, old);
      const { fireId, alarmId } = fired.occurrence;
      const at = { owner: ADA, alarmId, fireId, dueAt: old };
      const report = {
        stage: 'turn_started',
        at: old,
        outcome: null,
        error: null,
        turnId: null,
        conversationId: null,
        retryAt: null,
        reply: null,
        usage: null,
      };
      await store.recordTurnReports({ ...at, reports: [report as never], recordedAt: old });
      const failed = await make(BOB, 'failed');
      await fail(store, failed, old);
      const deleted = await createDue(store, NOW, { ...change, fireAt: NOW + 9999 * DAY_MS });
      await store.update(ADA, deleted.alarm.id, (state) => cancelAlarm(state, old));
      const late = await make(ADA, 'late');
      await fail(store, late, NOW);
      const active = await createDue(store, NOW, change);
      const firing = await make(ADA, 'firing');
      await store.update(ADA, firing.alarm.id, (state) => cancelAlarm(state, old));

      assert.equal(await store.pruneAlarms({ before, limit: 2 }), 2);
      assert.equal(await store.pruneAlarms({ before, limit: 2 }), 1);
      assert.equal(await store.pruneAlarms({ before, limit: 2 }), 0);
      for (const { alarm } of [fired, failed, deleted]) {
        assert.equal(await store.get(alarm.owner, alarm.id), undefined);
        assert.deepEqual(await store.attempts(alarm.owner, alarm.id, { limit: 9 }), []);
      }
      assert.deepEqual(await store.turnReportsOf(ADA, alarmId, [fireId]), []);
      assert.equal(await store.findByKey(ADA, 'fired'), undefined);
      for (const { alarm } of [late, active, firing]) assert.ok(await store.get(ADA, alarm.id));
      assert.equal((await store.usage()).alarms, 3);
      assert.equal((await store.create(alarmDue(NOW, { idempotencyKey: 'fired' }), NO_LIMIT)).result, 'created');
    });
  });
}
