import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import { type AlarmStore, SEARCH_STEP, type UpcomingRequest } from '../../../src/chronos/store/store.ts';
import { ADA, alarmDue, BOB, claim, createDue, NO_LIMIT, NOW, triggered } from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

const MINUTE = 60_000;

/** All upcoming alarms, by pages. */
async function allUpcoming(store: AlarmStore, request: Omit<UpcomingRequest, 'after' | 'limit'>, limit: number) {
  const found = [];
  for (let after: UpcomingRequest['after']; ; ) {
    const page = await store.upcoming(ADA, { ...request, limit, ...(after && { after }) });
    found.push(...page);
    const last = page.at(-1);
    if (page.length < limit || last === undefined) return found.map(({ alarm }) => alarm.id);
    after = { dueAt: last.occurrences.find(({ source }) => source === 'schedule')!.dueAt!, alarmId: last.alarm.id };
  }
}

export function findContract(open: OpenStore): void {
  describe('search', () => {
    const ids = (found: { alarm: { id: string } }[]) => found.map(({ alarm }) => alarm.id);

    test('finds a text in the label and in the message, newest first, A to Z case-insensitively', async (t) => {
      const { store } = await openFor(t, open);
      const label = await createDue(store, NOW, { label: 'The BACKUP of Monday', wakeMessage: 'look' });
      const byMessage = await createDue(store, NOW, { label: '', wakeMessage: 'Did the backup run?\nÄpfel' });
      await createDue(store, NOW, { label: 'plants', wakeMessage: 'water them' });
      await createDue(store, NOW, { owner: BOB, label: 'backup' });
      const search = (text: string) => store.search(ADA, { text, limit: 10 });
      assert.deepEqual(await search('Backup'), { found: [byMessage, label], reached: undefined });
      assert.deepEqual(ids((await search('Äpfel')).found), [byMessage.alarm.id]);
      assert.deepEqual(ids((await search('äpfel')).found), []);
      for (const nothing of ['%', '\\', '303', '_', '.*']) assert.deepEqual(ids((await search(nothing)).found), []);
      assert.deepEqual(await store.search(BOB, { text: 'Monday', limit: 10 }), { found: [], reached: undefined });
    });

    test('respects status and kind, and continues where a page ended', async (t) => {
      const { store } = await openFor(t, open);
      const made: AlarmState[] = [];
      for (let n = 0; n < 6; n++)
        made.push(await createDue(store, NOW, { label: `tea ${n}`, status: n % 2 === 0 ? 'active' : 'failed' }));
      const wanted = made.filter(({ alarm }) => alarm.status === 'failed').reverse();
      const first = await store.search(ADA, { text: 'tea', status: 'failed', limit: 2 });
      assert.deepEqual(ids(first.found), ids(wanted.slice(0, 2)));
      const next = await store.search(ADA, { text: 'tea', status: 'failed', limit: 2, before: first.reached! });
      assert.deepEqual(ids(next.found), ids(wanted.slice(2)));
      assert.equal(next.reached, undefined);
      assert.deepEqual(ids((await store.search(ADA, { text: 'tea', kind: 'cron', limit: 9 })).found), []);
    });

    test('examines a limited number of alarms per call', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW, { label: 'the needle' });
      const others = Array.from({ length: SEARCH_STEP + 1 }, () => alarmDue(NOW, { label: 'hay' }));
      await Promise.all(others.map((one) => store.create(one, NO_LIMIT)));
      const first = await store.search(ADA, { text: 'needle', limit: 5 });
      assert.deepEqual(first, { found: [], reached: others[1]!.alarm.id });
      const next = await store.search(ADA, { text: 'needle', limit: 5, before: first.reached! });
      assert.deepEqual([ids(next.found), next.reached], [[alarm.id], undefined]);
    });
  });

  describe('upcoming', () => {
    test('returns active alarms by due time, in pages of any size, and none twice', async (t) => {
      const { store } = await openFor(t, open);
      const made: AlarmState[] = [];
      for (const minutes of [9, 3, 3, 7, 1, 3, 5]) made.push(await createDue(store, NOW + minutes * MINUTE));
      for (const status of ['paused', 'fired', 'failed', 'cancelled'] as const) await createDue(store, NOW, { status });
      await createDue(store, NOW, { owner: BOB });
      const inOrder = [4, 1, 2, 5, 6, 3, 0].map((at) => made[at]!.alarm.id);
      for (const limit of [1, 2, 3, 100]) assert.deepEqual(await allUpcoming(store, {}, limit), inOrder);
      assert.deepEqual(await allUpcoming(store, { until: NOW + 5 * MINUTE }, 2), inOrder.slice(0, 5));
    });

    test('counts the schedule alone, and occurrences in delivery as well', async (t) => {
      const { store } = await openFor(t, open);
      const later = await createDue(store, NOW + 9 * MINUTE);
      await store.update(ADA, later.alarm.id, triggered(NOW));
      const now = await createDue(store, NOW + 1);
      await claim(store, { now: NOW + 2 });
      assert.deepEqual(await allUpcoming(store, {}, 5), [now.alarm.id, later.alarm.id]);
    });
  });
}
