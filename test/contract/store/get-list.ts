import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { ALARM_KINDS, ALARM_STATUSES } from '../../../src/wire/alarm-fields.ts';
import { ADA, BOB, claim, createDue, NOW, newId, triggered } from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

/** Three alarms of every status and kind; their ids, oldest first. */
async function createAllSorts(store: AlarmStore) {
  const alarms = [];
  for (let round = 0; round < 3; round++) {
    for (const status of ALARM_STATUSES) {
      for (const kind of ALARM_KINDS) alarms.push((await createDue(store, NOW, { status, kind })).alarm);
    }
  }
  return alarms;
}

export function getContract(open: OpenStore): void {
  describe('get', () => {
    test('returns nothing for an absent alarm', async (t) => {
      const { store } = await openFor(t, open);
      assert.equal(await store.get(ADA, newId()), undefined);
    });

    test('returns all due occurrences of the alarm, claims included', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW);
      await store.update(ADA, alarm.id, triggered(NOW + 1000));
      const [claimed] = await claim(store);
      const state = await store.get(ADA, alarm.id);
      assert.equal(state?.occurrences.length, 2);
      assert.deepEqual(
        state.occurrences.find(({ fireId }) => fireId === claimed?.occurrence.fireId),
        claimed?.occurrence,
      );
    });
  });
}

export function listContract(open: OpenStore): void {
  describe('list', () => {
    test('returns the newest first, complete and with their occurrences', async (t) => {
      const { store } = await openFor(t, open);
      const states = [
        await createDue(store, NOW + 5),
        await createDue(store, NOW + 1),
        await createDue(store, NOW + 9),
      ];
      assert.deepEqual(await store.list(ADA, { limit: 10 }), states.reverse());
    });

    test('is empty for an owner without alarms', async (t) => {
      const { store } = await openFor(t, open);
      await createDue(store, NOW);
      assert.deepEqual(await store.list(BOB, { limit: 10 }), []);
    });

    test('filters by status, by kind, and by both', async (t) => {
      const { store } = await openFor(t, open);
      const alarms = await createAllSorts(store);
      await createDue(store, NOW, { owner: BOB });
      for (const status of [undefined, ...ALARM_STATUSES]) {
        for (const kind of [undefined, ...ALARM_KINDS]) {
          const wanted = alarms
            .filter((alarm) => (!status || alarm.status === status) && (!kind || alarm.kind === kind))
            .map(({ id }) => id)
            .reverse();
          const filter = { ...(status && { status }), ...(kind && { kind }) };
          const listed = await store.list(ADA, { ...filter, limit: 100 });
          assert.deepEqual(
            listed.map(({ alarm }) => alarm.id),
            wanted,
            `${status} ${kind}`,
          );
        }
      }
    });

    test('pages list every alarm once, with any filter', async (t) => {
      const { store } = await openFor(t, open);
      const alarms = await createAllSorts(store);
      for (const filter of [{}, { status: 'fired' }, { kind: 'cron' }, { status: 'active', kind: 'once' }] as const) {
        const all = await store.list(ADA, { ...filter, limit: 100 });
        const paged = [];
        for (let before: string | undefined; ; ) {
          const page = await store.list(ADA, { ...filter, limit: 4, ...(before && { before }) });
          assert.ok(page.length <= 4);
          if (page.length === 0) break;
          paged.push(...page);
          before = page.at(-1)?.alarm.id;
        }
        assert.deepEqual(paged, all);
      }
      assert.equal(alarms.length, 15 * ALARM_KINDS.length);
    });

    test('a cursor need not be the id of an alarm that exists', async (t) => {
      const { store } = await openFor(t, open);
      const older = await createDue(store, NOW);
      const between = newId();
      await createDue(store, NOW);
      assert.deepEqual(await store.list(ADA, { limit: 10, before: between }), [older]);
      assert.deepEqual(await store.list(ADA, { limit: 10, before: '' }), []);
    });
  });
}
