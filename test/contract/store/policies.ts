import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { waitsForTurn } from '../../../src/chronos/alarm/alarm.ts';
import { addBackfill, occurrencesBetween } from '../../../src/chronos/alarm/backfill.ts';
import { draftAlarm, firstOccurrence } from '../../../src/chronos/alarm/definition.ts';
import { afterTurn, releaseWaiting } from '../../../src/chronos/alarm/policies.ts';
import { settleDeferred, settleDelivered, settleFailed, settleSkipped } from '../../../src/chronos/alarm/settlement.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import type { AlarmCreate } from '../../../src/wire/alarm.ts';
import { ADA, attemptOf, claim, create, keyOf, NOW, newId } from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';
import { FINISHED, STARTED } from './turn-reports.ts';

const LIMITS = { minIntervalSeconds: 10, maxFailures: 100 };
const MINUTE = 60_000;

/** A series that fires every minute. */
async function createSeries(store: AlarmStore, fields: Partial<AlarmCreate> = {}) {
  const body = { kind: 'cron', cron_expr: '* * * * *', wake_message: 'water', label: 'plants', ...fields };
  const alarm = draftAlarm(body as AlarmCreate, { id: newId(), owner: ADA, now: NOW, limits: LIMITS });
  return create(store, { alarm, occurrence: firstOccurrence(alarm, NOW, LIMITS) });
}

/** Delivers everything that is due, until nothing is; returns the instants in their order. */
async function deliverDue(store: AlarmStore, now: number): Promise<number[]> {
  const delivered: number[] = [];
  for (;;) {
    const claims = await claim(store, { now });
    if (claims.length === 0) return delivered;
    for (const each of claims) {
      const { fireId } = each.occurrence;
      delivered.push(each.occurrence.scheduledFor);
      const settle = (state: Parameters<typeof settleDelivered>[0]) => settleDelivered(state, fireId, now);
      assert.deepEqual(await store.complete([{ key: keyOf(each), attempt: attemptOf(each), settle }]), ['applied']);
    }
  }
}

export function policyContract(open: OpenStore): void {
  describe('policies', () => {
    test('a backfill is one row, fires in order, and leaves nothing behind', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createSeries(store);
      const { bytes } = await store.usage();
      const occurrences = [...occurrencesBetween(alarm, NOW - 40 * MINUTE, NOW)];
      await store.update(ADA, alarm.id, (stored) => addBackfill(stored, { alarm, occurrences }, NOW)!.state);
      const state = await store.get(ADA, alarm.id);
      assert.deepEqual(
        state?.occurrences.map(({ source, scheduledFor }) => [source, scheduledFor]),
        [
          ['trigger', occurrences[0]?.scheduledFor],
          ['schedule', occurrences.at(-1)!.scheduledFor + MINUTE],
        ],
      );
      assert.ok((await store.usage()).bytes > bytes);
      const repeated = addBackfill(state!, { alarm: state!.alarm, occurrences }, NOW);
      assert.deepEqual(repeated, { state, added: [] });
      assert.equal(addBackfill(state!, { alarm, occurrences }, NOW), undefined, 'the alarm has changed');
      assert.deepEqual(
        await deliverDue(store, NOW),
        occurrences.map(({ scheduledFor }) => scheduledFor),
      );
      const after = await store.get(ADA, alarm.id);
      assert.deepEqual([after?.alarm.options, after?.occurrences.length], [null, 1]);
      assert.equal(after?.alarm.fireCount, 40);
      assert.equal((await store.usage()).bytes, bytes);
      assert.equal((await store.attempts(ADA, alarm.id, { limit: 100 })).length, 40);
    });

    test('a skipped occurrence is in the ledger, and the series goes on', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createSeries(store, { overlap: 'skip' });
      const at = NOW + MINUTE;
      const [claimed] = await claim(store, { now: at });
      const { fireId } = claimed!.occurrence;
      const attempt = attemptOf(claimed!, { outcome: 'skipped', httpStatus: null, error: 'a turn runs' });
      await store.complete([{ key: keyOf(claimed!), attempt, settle: (state) => settleSkipped(state, fireId, at) }]);
      assert.deepEqual(await store.attempts(ADA, alarm.id, { limit: 9 }), [attempt]);
      const after = await store.get(ADA, alarm.id);
      assert.deepEqual([after?.alarm.lastError, after?.alarm.fireCount, after?.alarm.status], [null, 0, 'active']);
      assert.equal(after?.occurrences[0]?.scheduledFor, claimed!.occurrence.scheduledFor + MINUTE);
    });

    test('turn reports come with the options of their alarm', async (t) => {
      const { store } = await openFor(t, open);
      for (const fields of [{}, { pause_on_failure: true }]) {
        const { alarm } = await createSeries(store, fields);
        const [claimed] = await claim(store, { now: NOW + MINUTE });
        const { fireId, scheduledFor: dueAt } = claimed!.occurrence;
        const given = { owner: ADA, alarmId: alarm.id, fireId, dueAt, reports: [STARTED], recordedAt: NOW };
        const { options } = alarm;
        assert.deepEqual(await store.recordTurnReports(given), { fresh: new Set(['turn_started']), options });
        await deliverOf(store, claimed!);
        assert.deepEqual(await store.recordTurnReports(given), { fresh: new Set(), options });
      }
    });

    test('the end of a turn makes a waiting occurrence due, or pauses the series', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createSeries(store, { overlap: 'buffer_one', pause_on_failure: true });
      const at = NOW + MINUTE;
      const [claimed] = await claim(store, { now: at });
      const deferral = { until: at + 5000, dueAt: at + 5000, reason: null };
      const { fireId } = claimed!.occurrence;
      const settle = (state: Parameters<typeof settleDeferred>[0]) => settleDeferred(state, fireId, deferral);
      await store.complete([{ key: keyOf(claimed!), attempt: null, settle }]);
      const [waiting] = (await store.get(ADA, alarm.id))!.occurrences;
      assert.ok(waitsForTurn(waiting!));
      assert.deepEqual(await claim(store, { now: at }), []);
      await store.update(ADA, alarm.id, (state) => releaseWaiting(state, at + 1));
      const [again] = await claim(store, { now: at + 1 });
      assert.equal(again?.occurrence.attempt, 1);
      await deliverOf(store, again!);
      const failed = { ...FINISHED, outcome: 'failed', error: 'no such file' } as const;
      const paused = await store.update(ADA, alarm.id, (state) => afterTurn(state, failed, at + 9));
      assert.deepEqual([paused?.alarm.status, paused?.alarm.updatedAt], ['paused', at + 9]);
      assert.deepEqual(await store.get(ADA, alarm.id), paused);
      assert.deepEqual(await claim(store, { now: at + 10 * MINUTE }), []);
    });

    test('a failure that pauses its series is a change of the alarm', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createSeries(store, { pause_on_failure: true });
      const at = NOW + MINUTE;
      const [claimed] = await claim(store, { now: at });
      const { fireId } = claimed!.occurrence;
      const failure = { error: 'gone', at, final: true, retryAt: () => at };
      const attempt = attemptOf(claimed!, { outcome: 'failed', error: 'gone' });
      await store.complete([
        { key: keyOf(claimed!), attempt, settle: (state) => settleFailed(state, fireId, failure) },
      ]);
      assert.equal((await store.get(ADA, alarm.id))?.alarm.status, 'paused');
      const changes = await store.changesSince(ADA, at);
      assert.ok(changes?.some(({ kind, at: changedAt }) => kind === 'edited' && changedAt === at));
      assert.equal((await store.list(ADA, { status: 'paused', limit: 5 })).length, 1);
    });
  });
}

async function deliverOf(store: AlarmStore, claimed: Awaited<ReturnType<typeof claim>>[number]): Promise<void> {
  const { fireId, scheduledFor } = claimed.occurrence;
  const settle = (state: Parameters<typeof settleDelivered>[0]) => settleDelivered(state, fireId, scheduledFor);
  await store.complete([{ key: keyOf(claimed), attempt: attemptOf(claimed, { startedAt: scheduledFor }), settle }]);
}
