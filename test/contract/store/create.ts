import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmStatus } from '../../../src/wire/alarm-fields.ts';
import {
  ADA,
  alarmDue,
  BOB,
  create,
  createDue,
  edited,
  NO_LIMIT,
  NOW,
  OTHER_DEFINITION,
  occurrenceOf,
  withCode,
} from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';
import { PAYLOADS, TEXTS } from './texts.ts';

const every = (count: number) => Array.from({ length: count }, (_, index) => index);

export function createContract(open: OpenStore): void {
  describe('create', () => {
    test('stores every member of the alarm and of its occurrence', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const { alarm } = alarmDue(NOW + 5, {
        ...OTHER_DEFINITION,
        kind: 'cron',
        idempotencyKey: 'key-1',
        setBy: 'Ada',
        madeBy: 'client https://chat.example/"client".json',
        status: 'paused',
        failureCount: 2,
        lastError: 'the machine said 503',
        updatedAt: NOW + 1,
        lastFiredAt: NOW - 1,
        fireCount: 5,
        scheduledFires: 4,
      });
      const occurrence = occurrenceOf(alarm, NOW + 5, {
        nominal: NOW + 4,
        dueAt: null,
        attempt: 3,
        missedCount: 6,
        heldReason: 'wait',
        heldUntil: NOW + 77,
        cause: 'person',
      });
      const state = { alarm, occurrences: [occurrence] };

      assert.deepEqual(await store.create({ alarm, occurrence }, NO_LIMIT), { result: 'created', state });
      assert.deepEqual(await store.get(ADA, alarm.id), state);
      assert.deepEqual(await (await reopen()).get(ADA, alarm.id), state);
    });

    test('keeps absent members absent', async (t) => {
      const { store } = await openFor(t, open);
      const entry = alarmDue(NOW);
      await create(store, entry);
      assert.deepEqual(await store.get(ADA, entry.alarm.id), { alarm: entry.alarm, occurrences: [entry.occurrence] });
    });

    test('keeps the wake message character for character', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const states = await Promise.all(TEXTS.map((wakeMessage) => createDue(store, NOW, { wakeMessage })));
      const again = await reopen();
      for (const [index, { alarm }] of states.entries()) {
        assert.equal((await again.get(ADA, alarm.id))?.alarm.wakeMessage, TEXTS[index]);
      }
    });

    test('keeps the payload as its source text', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const states = await Promise.all(PAYLOADS.map((payload) => createDue(store, NOW, { payload })));
      const again = await reopen();
      for (const [index, { alarm }] of states.entries()) {
        assert.equal((await again.get(ADA, alarm.id))?.alarm.payload, PAYLOADS[index]);
      }
    });

    test('keeps instants to the millisecond up to the year 9999', async (t) => {
      const { store } = await openFor(t, open);
      const last = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
      const { alarm } = await createDue(store, last);
      const kept = await store.get(ADA, alarm.id);
      assert.equal(kept?.alarm.fireAt, last);
      assert.equal(kept?.occurrences[0]?.dueAt, last);
    });

    test('refuses an id that the owner has already, and leaves the first alarm unchanged', async (t) => {
      const { store } = await openFor(t, open);
      const first = await createDue(store, NOW);
      const second = alarmDue(NOW + 1, { id: first.alarm.id, label: 'another' });
      await assert.rejects(store.create(second, NO_LIMIT), withCode('conflict'));
      assert.deepEqual(await store.get(ADA, first.alarm.id), first);
    });

    test('refuses an occurrence of another alarm, and stores nothing', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = alarmDue(NOW);
      const { occurrence } = alarmDue(NOW);
      await assert.rejects(store.create({ alarm, occurrence }, NO_LIMIT), withCode('internal'));
      assert.equal(await store.get(ADA, alarm.id), undefined);
    });

    test('counts active and paused alarms against the limit, and no others', async (t) => {
      const { store } = await openFor(t, open);
      const statuses: AlarmStatus[] = ['active', 'paused', 'fired', 'cancelled', 'failed'];
      for (const status of statuses) await createDue(store, NOW, { status });
      await createDue(store, NOW, { owner: BOB });

      const refused = await store.create(alarmDue(NOW), { maxActive: 2 });
      assert.deepEqual(refused, { result: 'too_many', active: 2 });
      assert.equal((await store.list(ADA, { limit: 100 })).length, statuses.length);
      assert.equal((await store.create(alarmDue(NOW), { maxActive: 3 })).result, 'created');
    });

    test('accepts a new alarm when another has ended', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW);
      await store.update(ADA, alarm.id, edited({ status: 'paused' }));
      assert.equal((await store.create(alarmDue(NOW), { maxActive: 1 })).result, 'too_many');
      await store.update(ADA, alarm.id, edited({ status: 'failed' }));
      assert.equal((await store.create(alarmDue(NOW), { maxActive: 1 })).result, 'created');
      await store.update(ADA, alarm.id, edited({ status: 'active' }));
      assert.equal((await store.create(alarmDue(NOW), { maxActive: 2 })).result, 'too_many');
    });

    test('of many simultaneous creates no more than the limit are stored', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const results = await Promise.all(every(40).map((n) => pick(n).create(alarmDue(NOW), { maxActive: 10 })));
      assert.equal(results.filter(({ result }) => result === 'created').length, 10);
      assert.equal((await store.list(ADA, { limit: 100 })).length, 10);
    });
  });

  describe('idempotency keys', () => {
    test('a used key returns its alarm, and stores nothing', async (t) => {
      const { store } = await openFor(t, open);
      const first = await createDue(store, NOW, { idempotencyKey: 'k', payload: '1.0' });
      const second = alarmDue(NOW + 1, { idempotencyKey: 'k', label: 'another' });
      assert.deepEqual(await store.create(second, NO_LIMIT), { result: 'key_taken', state: first });
      assert.equal(await store.get(ADA, second.alarm.id), undefined);
      assert.deepEqual(await store.findByKey(ADA, 'k'), first);
    });

    test('a repeated request finds its alarm even at the limit', async (t) => {
      const { store } = await openFor(t, open);
      await createDue(store, NOW, { idempotencyKey: 'k' });
      const repeated = await store.create(alarmDue(NOW, { idempotencyKey: 'k' }), { maxActive: 1 });
      assert.equal(repeated.result, 'key_taken');
    });

    test('a cancelled alarm releases its key; a fired, failed or paused one keeps it', async (t) => {
      const { store } = await openFor(t, open);
      for (const status of ['active', 'paused', 'fired', 'failed'] as const) {
        const { alarm } = await createDue(store, NOW, { idempotencyKey: status });
        await store.update(ADA, alarm.id, edited({ status }));
        assert.equal((await store.findByKey(ADA, status))?.alarm.id, alarm.id);
        const repeated = await store.create(alarmDue(NOW, { idempotencyKey: status }), NO_LIMIT);
        assert.equal(repeated.result, 'key_taken', status);
      }
      const first = await createDue(store, NOW, { idempotencyKey: 'k' });
      await store.update(ADA, first.alarm.id, edited({ status: 'cancelled' }));
      assert.equal(await store.findByKey(ADA, 'k'), undefined);
      const second = await createDue(store, NOW, { idempotencyKey: 'k' });
      await store.update(ADA, second.alarm.id, edited({ status: 'cancelled' }));
      const third = await createDue(store, NOW, { idempotencyKey: 'k' });
      assert.equal((await store.findByKey(ADA, 'k'))?.alarm.id, third.alarm.id);
    });

    test('belong to their owner and are compared exactly', async (t) => {
      const { store } = await openFor(t, open);
      await createDue(store, NOW, { idempotencyKey: 'key' });
      for (const other of ['Key', 'key ', 'ke', '']) {
        assert.equal(await store.findByKey(ADA, other), undefined);
        await createDue(store, NOW, { idempotencyKey: other });
      }
      assert.equal(await store.findByKey(BOB, 'key'), undefined);
      await createDue(store, NOW, { owner: BOB, idempotencyKey: 'key' });
    });

    test('of many simultaneous creates with one key exactly one is stored', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const results = await Promise.all(
        every(50).map((n) => pick(n).create(alarmDue(NOW, { idempotencyKey: 'k' }), NO_LIMIT)),
      );
      const created = results.filter(({ result }) => result === 'created');
      assert.equal(created.length, 1);
      const ids = new Set(results.map((result) => ('state' in result ? result.state.alarm.id : undefined)));
      assert.equal(ids.size, 1);
      assert.equal((await store.list(ADA, { limit: 100 })).length, 1);
    });
  });
}
