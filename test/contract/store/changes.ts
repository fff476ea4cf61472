import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { encodeOptions } from '../../../src/chronos/alarm/options.ts';
import { createAlarmIds } from '../../../src/chronos/http/alarm-id.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import type { StoredChange } from '../../../src/chronos/store/stored-change.ts';
import { eventually } from '../../support/eventually.ts';
import { eventOf } from './events.ts';
import { ADA, attemptOf, BOB, claim, createDue, delivered, edited, firedForGood, keyOf } from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';
import { STARTED } from './turn-reports.ts';

const ids = createAlarmIds();

/** Less than the interval of the rare, wide polls of PostgreSQL: the usual ones must find a change. */
const LIMIT_MS = 4500;

/** Follows owners and collects what is reported. */
async function follow(t: TestContext, store: AlarmStore, ...owners: string[]) {
  const found: StoredChange[] = [];
  const state = { isClosed: false };
  const following = await store.follow({
    owners: new Set(owners),
    onChanges: (changes) => void found.push(...changes),
    onClosed: () => {
      state.isClosed = true;
    },
  });
  await following.refresh();
  t.after(() => following.end());
  const kinds = () => found.map(({ kind }) => kind);
  const until = (...wanted: StoredChange['kind'][]) =>
    eventually(`the changes ${wanted}`, () => String(kinds().toSorted()) === String(wanted.toSorted()), LIMIT_MS);
  return { found, state, until };
}

/** An alarm that is due now, by the clock of the store: the changes of instants in the past are not looked for. */
const due = (store: AlarmStore, owner = ADA) => {
  const now = store.now();
  return createDue(store, now, { id: ids(now), owner, createdAt: now, updatedAt: now });
};

/** Claims and completes everything that is due. */
async function fire(store: AlarmStore) {
  const claims = await claim(store, { now: store.now() });
  const at = store.now();
  await store.complete(
    claims.map((each) => ({ ...delivered(each), attempt: attemptOf(each, { startedAt: at, finishedAt: at }) })),
  );
  return claims;
}

export function changesContract(open: OpenStore): void {
  describe('follow', () => {
    test('reports what happens to the alarms of an owner, by any instance, and to those of no other', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const { found, until } = await follow(t, pick(1), ADA);
      const reported = (kind: string) => eventually(kind, () => found.some((change) => change.kind === kind), LIMIT_MS);
      await due(store, BOB);
      const { alarm } = await due(store);
      await until('created');
      await store.update(ADA, alarm.id, edited({ label: 'other', updatedAt: store.now() + 1 }));
      await reported('edited');
      const claims = await fire(store);
      const { fireId } = claims.find(({ alarm: { owner } }) => owner === ADA)!.occurrence;
      await reported('attempt');
      const recordedAt = store.now();
      const report = { owner: ADA, alarmId: alarm.id, fireId, dueAt: 0, reports: [STARTED], recordedAt };
      assert.equal((await store.recordTurnReports(report))?.fresh.size, 1);
      await reported('report');
      await store.update(ADA, alarm.id, edited({ status: 'cancelled', updatedAt: store.now() + 2 }));
      await reported('cancelled');
      assert.deepEqual(
        found.map(({ kind }) => kind).filter((kind) => kind !== 'claimed'),
        ['created', 'edited', 'attempt', 'report', 'cancelled'],
      );
      assert.ok(found.every(({ owner }) => owner === ADA));
      const attempt = found.find((change) => change.kind === 'attempt');
      assert.deepEqual(attempt?.attempt, (await store.attempts(ADA, alarm.id, { limit: 1 }))[0]);
    });

    test('reports a claim before its attempt ends, and a deferral', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const { found, until } = await follow(t, pick(1), ADA);
      const { alarm } = await due(store);
      const [claimed] = await claim(store, { now: store.now() });
      await until('created', 'claimed');
      const key = keyOf(claimed!);
      const later = store.now() + 60_000;
      const held = { dueAt: later, heldUntil: later, heldReason: 'quiet hours' };
      await store.complete([
        {
          ...{ key, attempt: null },
          settle: ({ alarm: same, occurrences }) => ({
            alarm: same,
            occurrences: occurrences.map((each) => ({ ...each, ...held, attempt: 0 })),
          }),
        },
      ]);
      await until('created', 'claimed', 'deferred');
      const deferral = found.at(-1)!;
      assert.deepEqual(deferral, {
        ...{ kind: 'deferred', owner: ADA, alarmId: alarm.id, at: deferral.at },
        ...{ fireId: key.fireId, until: later, reason: 'quiet hours' },
      });
    });

    test('an event that waits is no edit of its alarm', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const { alarm } = await due(store);
      const { until } = await follow(t, pick(1), ADA);
      const event_state = { last: 1, next: 1, bytes: 10 };
      const recorded = await store.recordEvents({
        ...{ owner: ADA, alarmId: alarm.id, events: [eventOf(1)] },
        arrive: edited({ options: encodeOptions({ event_state }) }),
      });
      assert.equal(recorded?.fresh, 1);
      await store.update(ADA, alarm.id, edited({ label: 'other', updatedAt: store.now() + 1 }));
      await until('edited');
    });

    test('reports nothing that was stored before, and nothing that was rejected', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await due(store);
      await fire(store);
      const { until } = await follow(t, store, ADA);
      await assert.rejects(
        store.update(ADA, alarm.id, () => {
          throw new Error('refused');
        }),
      );
      await due(store);
      await until('created');
    });

    test('reports to its followers that the store is closed', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const { state } = await follow(t, store, ADA);
      await reopen();
      assert.ok(state.isClosed);
    });
  });

  describe('changesSince', () => {
    test('returns the stored changes of one owner since an instant, also to a later process', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const began = store.now();
      const { alarm } = await due(store);
      await due(store, BOB);
      await fire(store);
      await store.update(ADA, alarm.id, edited({ label: 'other', status: 'paused', updatedAt: store.now() + 1 }));
      const kinds = async (since: number) =>
        (await (await reopen()).changesSince(ADA, since))?.map(({ kind }) => kind).toSorted();
      assert.deepEqual(await kinds(began), ['attempt', 'created', 'edited']);
      assert.deepEqual(await kinds(store.now() + 60_000), []);
    });

    test('returns nothing where it would read too many rows', async (t) => {
      const { store } = await openFor(t, open);
      await due(store);
      const [claimed] = await claim(store, { now: store.now() });
      const { fireId } = claimed!.occurrence;
      const at = store.now();
      await store.complete([
        { key: keyOf(claimed!), attempt: attemptOf(claimed!, { finishedAt: at }), settle: firedForGood(fireId) },
      ]);
      assert.deepEqual((await store.changesSince(ADA, at))?.at(-1)?.kind, 'attempt');
      const many = Array.from({ length: 5000 }, () => due(store, BOB));
      await Promise.all(many);
      assert.equal(await store.changesSince(BOB, at), undefined);
    });
  });
}
