import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MOVE_STEP } from '../../../src/chronos/store/store.ts';
import { arrivalFor, createWaiting, eventOf } from './events.ts';
import {
  ADA,
  again,
  alarmDue,
  attemptOf,
  BOB,
  cancelled,
  claim,
  createClaimed,
  createDue,
  delivered,
  everythingOf,
  keyOf,
  NO_LIMIT,
  NOW,
  paused,
  triggered,
} from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';

const MOVE = { from: ADA, to: BOB, limits: {}, now: NOW + 500 };
const withoutOwner = (stored: unknown) =>
  JSON.parse(JSON.stringify(stored), (name, value) => (name === 'owner' || name === 'updatedAt' ? undefined : value));

export function moveContract(open: OpenStore): void {
  describe('a move of alarms to another owner', () => {
    test('takes all rows of an alarm, with fire ids, fences and history', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const first = await createClaimed(store, { idempotencyKey: 'k' });
      const { alarm, occurrence } = first;
      await store.complete([{ key: keyOf(first), attempt: attemptOf(first), settle: again(occurrence.fireId, NOW) }]);
      const [second] = await claim(store);
      const retry = { key: keyOf(second!), attempt: attemptOf(second!, { startedAt: NOW + 30, finishedAt: NOW + 40 }) };
      await store.complete([{ ...retry, settle: again(occurrence.fireId, NOW + 60) }]);
      await store.update(ADA, alarm.id, triggered(NOW + 50));
      const report = { stage: 'turn_started', at: NOW, outcome: null, error: null } as const;
      const about = { turnId: 't', conversationId: 'c', retryAt: null, reply: null, usage: null };
      const fire = { owner: ADA, alarmId: alarm.id, fireId: occurrence.fireId, dueAt: NOW };
      await store.recordTurnReports({ ...fire, reports: [{ ...report, ...about }], recordedAt: NOW + 3 });
      const before = await everythingOf(store, ADA, alarm.id);
      const reports = await store.turnReportsOf(ADA, alarm.id, [occurrence.fireId]);
      assert.deepEqual([before.attempts.length, reports.length, before.state?.occurrences.length], [2, 1, 2]);

      assert.deepEqual(await store.moveAlarms(MOVE), { result: 'moved', moved: 1 });
      const opened = await reopen();
      assert.deepEqual(withoutOwner(await everythingOf(opened, BOB, alarm.id)), withoutOwner(before));
      assert.deepEqual(
        withoutOwner(await opened.turnReportsOf(BOB, alarm.id, [occurrence.fireId])),
        withoutOwner(reports),
      );
      assert.equal((await opened.findByKey(BOB, 'k'))?.alarm.id, alarm.id);
      assert.equal(await opened.findByKey(ADA, 'k'), undefined);
      assert.deepEqual(await everythingOf(opened, ADA, alarm.id), { state: undefined, attempts: [] });
      assert.deepEqual(await opened.moveAlarms(MOVE), { result: 'moved', moved: 0 });

      const claims = await claim(opened, { now: NOW + 1000 });
      assert.deepEqual(claims.map(({ occurrence: { owner, fence } }) => [owner, fence]).sort(), [
        [BOB, 1],
        [BOB, 3],
      ]);
      assert.deepEqual(await opened.complete(claims.map(delivered)), ['applied', 'applied']);
    });

    test('takes waiting events and known ids along, and what they count', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store);
      await store.recordEvents(arrivalFor(waiting, [eventOf(1), eventOf(2)]));
      await store.dropEvents(ADA, waiting.alarm.id, 1);
      assert.deepEqual(await store.moveAlarms(MOVE), { result: 'moved', moved: 1 });
      const everything = { from: 1, to: 9, maxBytes: 1000 };
      assert.deepEqual(await store.eventsOf(BOB, waiting.alarm.id, everything), [eventOf(2)]);
      assert.deepEqual(await store.eventsOf(ADA, waiting.alarm.id, everything), []);
      const moved = (await store.get(BOB, waiting.alarm.id))!;
      assert.equal((await store.recordEvents(arrivalFor(moved, [eventOf(1), eventOf(2), eventOf(3)])))?.fresh, 1);
      assert.deepEqual(await store.eventsOf(BOB, waiting.alarm.id, everything), [eventOf(2), eventOf(3)]);
      await store.update(BOB, waiting.alarm.id, (state) => ({ ...cancelled(state), occurrences: [] }));
      assert.equal(await store.deleteCancelled(BOB, 10), 1);
      assert.equal((await store.usage()).bytes, 0);
    });

    test('moves totals, and the alarms of every status', async (t) => {
      const { store } = await openFor(t, open);
      const states = [];
      for (let n = 0; n < 4; n++) states.push(await createDue(store, NOW + n, { idempotencyKey: `k${n}` }));
      const [, second, third] = states.map(({ alarm }) => alarm.id);
      await store.update(ADA, second!, cancelled);
      await store.update(ADA, third!, paused);
      await store.complete([delivered((await claim(store, { now: NOW }))[0]!)]);
      const before = await store.usage();
      assert.deepEqual(await store.moveAlarms(MOVE), { result: 'moved', moved: 4 });
      const after = await store.usage();
      assert.deepEqual([after.alarms, after.bytes], [before.alarms, before.bytes]);
      assert.deepEqual(await store.countOpen(ADA), { open: 0, active: 0 });
      assert.deepEqual(await store.countOpen(BOB), { open: 2, active: 1 });
      for (const [status, count] of [
        ['active', 1],
        ['paused', 1],
        ['cancelled', 1],
        ['fired', 1],
      ] as const)
        assert.equal((await store.list(BOB, { status, limit: 10 })).length, count, status);
      assert.deepEqual(await store.list(ADA, { limit: 10 }), []);
      const news = (await store.changesSince(BOB, MOVE.now)) ?? assert.fail();
      assert.deepEqual(
        news.map(({ kind }) => kind),
        ['edited', 'edited'],
      );
      const refused = await store.create(alarmDue(NOW, { owner: BOB }), { maxActive: 2 });
      assert.deepEqual(refused, { result: 'too_many', active: 2 });
      assert.equal((await store.create(alarmDue(NOW), { maxActive: 1, maxStored: 1 })).result, 'created');
      assert.equal(await store.deleteCancelled(BOB, 10), 1);
    });

    test('refuses with counts, and moves nothing', async (t) => {
      const { store } = await openFor(t, open);
      await createDue(store, NOW + 1000, { idempotencyKey: 'k' });
      await createDue(store, NOW + 1000, { idempotencyKey: 'other' });
      await createDue(store, NOW + 1000, { owner: BOB, idempotencyKey: 'k' });
      const claimed = await createClaimed(store);
      const refused = await store.moveAlarms({ ...MOVE, limits: { maxActive: 3 } });
      const { bytes, ...counts } = refused.result === 'refused' ? refused : assert.fail();
      assert.deepEqual(counts, { result: 'refused', inFlight: 1, sharedKeys: 1, open: 4, stored: 4, exceeded: true });
      assert.equal(bytes, (await store.usage()).bytes);
      assert.equal((await store.list(ADA, { limit: 10 })).length, 3);
      assert.deepEqual(await store.complete([delivered(claimed)]), ['applied']);
    });

    test('moves many alarms in steps, each due once', async (t) => {
      const { store } = await openFor(t, open);
      const count = MOVE_STEP + 3;
      await Promise.all(Array.from({ length: count }, (_, n) => store.create(alarmDue(NOW + n), NO_LIMIT)));
      assert.deepEqual(await store.moveAlarms(MOVE), { result: 'moved', moved: MOVE_STEP });
      assert.deepEqual(await store.moveAlarms(MOVE), { result: 'moved', moved: 3 });
      const claims = await claim(store, { now: NOW + count });
      assert.equal(new Set(claims.map(({ occurrence }) => occurrence.fireId)).size, count);
      assert.ok(claims.every(({ alarm }) => alarm.owner === BOB));
    });

    test('races with claims, changes and creates, and loses and doubles nothing', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const ids: string[] = [];
      for (let n = 0; n < 60; n++) ids.push((await createDue(store, NOW)).alarm.id);
      const fires: string[] = [];
      const work = async (n: number) => {
        for (let round = 0; round < 15; round++) {
          const claims = await pick(n).claim({ now: NOW, limit: 3, perOwner: 3, inFlight: new Map() });
          fires.push(...claims.map(({ occurrence }) => occurrence.fireId));
          await pick(n).complete(claims.map(delivered));
        }
      };
      let moved = 0;
      const move = async (n: number) => {
        for (let round = 0; round < 15; round++) {
          const answer = await pick(n).moveAlarms(MOVE);
          if (answer.result === 'moved') moved += answer.moved;
          await pick(n).update(ADA, ids[(7 * round) % 60]!, (state) => state);
        }
      };
      await Promise.all([work(0), move(1), work(1)]);
      const claims = await claim(store);
      fires.push(...claims.map(({ occurrence }) => occurrence.fireId));
      await store.complete(claims.map(delivered));
      assert.equal(fires.length, 60);
      assert.equal(new Set(fires).size, 60);
      const [left, there] = await Promise.all([ADA, BOB].map((owner) => store.list(owner, { limit: 100 })));
      assert.deepEqual([left!.length + there!.length, there!.length], [60, moved]);
    });

    test('of an unknown owner moves nothing', async (t) => {
      const { store } = await openFor(t, open);
      assert.deepEqual(await store.moveAlarms({ ...MOVE, from: 'unknown-owner' }), { result: 'moved', moved: 0 });
      assert.deepEqual(await store.countOpen('unknown-owner'), { open: 0, active: 0 });
    });
  });
}

/** A store on several servers moves nothing. */
export function noMoveContract(open: OpenStore): void {
  test('refuses to move alarms, with the remedy', async (t) => {
    const { store } = await openFor(t, open);
    const { alarm } = await createDue(store, NOW + 1000);
    await assert.rejects(store.moveAlarms(MOVE), /enrol a new key for their label instead/);
    assert.ok(await store.get(ADA, alarm.id));
  });
}
