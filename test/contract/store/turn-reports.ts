import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StoredTurnReport } from '../../../src/chronos/alarm/fire-history.ts';
import type { AlarmStore, FireTurnReports } from '../../../src/chronos/store/store.ts';
import { partsOfFireId } from '../../../src/wire/fire-id.ts';
import type { TurnReport } from '../../../src/wire/turn-report.ts';
import { ADA, again, attemptOf, BOB, claim, createClaimed, createDue, delivered, keyOf, NOW } from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';

export const STARTED: TurnReport = {
  stage: 'turn_started',
  at: NOW + 30,
  outcome: null,
  error: null,
  turnId: 'turn-1',
  conversationId: 'conv-1',
  retryAt: null,
  reply: null,
  usage: null,
};
export const FINISHED: TurnReport = {
  ...STARTED,
  stage: 'turn_finished',
  at: NOW + 90,
  outcome: 'failed',
  error: 'it said "no" \\ {1,2} 🦘',
  reply: 'Half of it is done.\n🦘',
  usage: '{"input_tokens":1200,"output_tokens":80,"cost_usd":0.0123}',
};

function report(fire: { owner: string; alarmId: string; fireId: string }, change: Partial<FireTurnReports> = {}) {
  const { owner, alarmId, fireId } = fire;
  const { dueEpochMs: dueAt } = partsOfFireId(fireId);
  return { owner, alarmId, fireId, dueAt, reports: [STARTED, FINISHED], recordedAt: NOW + 100, ...change };
}

/** The stored turn reports of some fires, in one order. */
async function kept(store: AlarmStore, alarmId: string, fireIds: readonly string[], owner = ADA) {
  const nameOf = ({ fireId, stage }: StoredTurnReport) => `${fireId} ${stage}`;
  const found = await store.turnReportsOf(owner, alarmId, fireIds);
  return found.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

export function receiptsContract(open: OpenStore): void {
  describe('hasConversation', () => {
    test('knows the conversations that alarms of a credential name, or had a turn in', async (t) => {
      const { store } = await openFor(t, open);
      const madeBy = 'client chat';
      await createDue(store, NOW + 5000, { madeBy, conversationId: 'named' });
      await createDue(store, NOW + 5000, { conversationId: 'of others' });
      await createDue(store, NOW, { madeBy });
      const claimed = (await claim(store))[0]!;
      await store.complete([delivered(claimed)]);
      assert.equal(await store.hasConversation(ADA, madeBy, 'conv-1'), false);
      await store.recordTurnReports(report(keyOf(claimed)));
      for (const [id, expected] of Object.entries({ named: true, 'conv-1': true, 'of others': false, absent: false }))
        assert.equal(await store.hasConversation(ADA, madeBy, id), expected, id);
      assert.equal(await store.hasConversation(ADA, 'client other', 'conv-1'), false);
      assert.equal(await store.hasConversation(BOB, madeBy, 'conv-1'), false);
    });
  });

  describe('recordReceipts', () => {
    test('stores every member of the first report of each stage, and returns the new ones', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.complete([delivered(claimed)]);
      const fire = keyOf(claimed);
      const { owner, alarmId, fireId } = fire;
      assert.deepEqual(
        (await store.recordTurnReports(report(fire, { reports: [STARTED] })))?.fresh,
        new Set(['turn_started']),
      );
      const later = { ...STARTED, at: NOW + 5000, turnId: null, conversationId: null };
      const both = report(fire, { reports: [later, FINISHED], recordedAt: NOW + 200 });
      assert.deepEqual((await store.recordTurnReports(both))?.fresh, new Set(['turn_finished']));
      assert.deepEqual((await store.recordTurnReports(both))?.fresh, new Set());
      const wanted = [
        { owner, alarmId, fireId, ...FINISHED, recordedAt: NOW + 200 },
        { owner, alarmId, fireId, ...STARTED, recordedAt: NOW + 100 },
      ];
      assert.deepEqual(await kept(store, alarmId, [fireId]), wanted);
      assert.deepEqual(await kept(await reopen(), alarmId, [fireId]), wanted);
    });

    test('of a waiting turn the latest report counts, and its end is stored beside it', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.complete([delivered(claimed)]);
      const fire = keyOf(claimed);
      const waits = (at: number, error: string): TurnReport => ({
        ...STARTED,
        ...{ stage: 'turn_waits', at, error, retryAt: at + 1000 },
      });
      const first = waits(NOW + 40, 'the endpoint is away');
      const second = waits(NOW + 60, 'it is still away');
      const post = (reports: TurnReport[], recordedAt: number) => report(fire, { reports, recordedAt });
      assert.deepEqual(
        (await store.recordTurnReports(post([STARTED, first], NOW + 100)))?.fresh,
        new Set(['turn_started', 'turn_waits']),
      );
      assert.deepEqual((await store.recordTurnReports(post([second], NOW + 200)))?.fresh, new Set(['turn_waits']));
      assert.deepEqual(
        (await store.recordTurnReports(post([first], NOW + 300)))?.fresh,
        new Set(),
        'an older one changes nothing',
      );
      await store.recordTurnReports(post([FINISHED], NOW + 400));
      const { owner, alarmId, fireId } = fire;
      assert.deepEqual(await kept(store, alarmId, [fireId]), [
        { owner, alarmId, fireId, ...FINISHED, recordedAt: NOW + 400 },
        { owner, alarmId, fireId, ...STARTED, recordedAt: NOW + 100 },
        { owner, alarmId, fireId, ...second, recordedAt: NOW + 200 },
      ]);
    });

    test('accepts reports of a fire whose delivery is not recorded yet, and none of a fire without attempts', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm, occurrences } = await createDue(store, NOW);
      const fire = { owner: ADA, alarmId: alarm.id, fireId: occurrences[0]!.fireId };
      assert.equal(await store.recordTurnReports(report(fire)), undefined);
      assert.equal(await store.hasFire(report(fire)), false);
      const [claimed] = await claim(store);
      assert.equal(await store.hasFire(report(fire)), true);
      assert.deepEqual(
        (await store.recordTurnReports(report(fire)))?.fresh,
        new Set(['turn_started', 'turn_finished']),
      );
      await store.complete([delivered(claimed!)]);
      assert.equal((await kept(store, alarm.id, [fire.fireId])).length, 2);
      assert.equal(await store.hasFire(report(fire)), true);
      assert.equal(await store.hasFire(report({ ...fire, owner: BOB })), false);
      assert.equal(await store.hasFire(report(fire, { dueAt: NOW + 1_000_000 })), false, 'no attempt since then');
    });

    test('finds an attempt among many others of the alarm', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      const fire = keyOf(claimed);
      await store.complete([{ key: fire, attempt: attemptOf(claimed), settle: again(fire.fireId, NOW + 10) }]);
      const [second] = await claim(store, { now: NOW + 10 });
      await store.complete([
        { ...delivered(second!), attempt: attemptOf(second!, { startedAt: NOW + 11, finishedAt: NOW + 12 }) },
      ]);
      assert.equal((await store.recordTurnReports(report(fire)))?.fresh.size, 2);
      const other = { ...fire, fireId: `${fire.alarmId}@${NOW + 1}` };
      assert.equal(await store.recordTurnReports(report(other)), undefined);
    });

    test("reveals nothing of another owner's fire, or of an absent one", async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.complete([delivered(claimed)]);
      const fire = keyOf(claimed);
      assert.equal(await store.recordTurnReports(report({ ...fire, owner: BOB })), undefined);
      assert.equal(await store.recordTurnReports(report({ ...fire, alarmId: 'no-such-alarm' })), undefined);
      assert.equal(await store.recordTurnReports(report({ ...fire, owner: 'a\0b' })), undefined);
      assert.equal((await store.recordTurnReports(report(fire)))?.fresh.size, 2);
      assert.deepEqual(await kept(store, fire.alarmId, [fire.fireId], BOB), []);
      assert.deepEqual(await kept(store, fire.alarmId, []), []);
      assert.deepEqual(await kept(store, fire.alarmId, ['x@1', 'a\0b']), []);
    });

    test('of many simultaneous reports of one stage, one is the first', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const claimed = await createClaimed(store);
      const fire = keyOf(claimed);
      const reports = Array.from({ length: 8 }, (_, n) => [{ ...STARTED, at: NOW + n }, FINISHED]);
      const answers = await Promise.all(
        reports.map((each, n) => pick(n).recordTurnReports(report(fire, { reports: each }))),
      );
      const fresh = answers.flatMap((recorded) => [...recorded!.fresh]);
      assert.deepEqual(fresh.sort(), ['turn_finished', 'turn_started']);
      assert.equal((await kept(store, fire.alarmId, [fire.fireId])).length, 2);
    });
  });

  describe('pruneReceipts', () => {
    test('deletes the oldest that were recorded before an instant, up to a limit, and returns their number', async (t) => {
      const { store } = await openFor(t, open);
      const fires = [];
      for (let n = 0; n < 3; n++) {
        const claimed = await createClaimed(store);
        const fire = keyOf(claimed);
        await store.recordTurnReports(report(fire, { reports: [STARTED], recordedAt: NOW + n }));
        fires.push(fire);
      }
      assert.equal(await store.pruneTurnReports({ before: NOW + 2, limit: 1 }), 1);
      assert.deepEqual(await kept(store, fires[0]!.alarmId, [fires[0]!.fireId]), []);
      assert.equal(await store.pruneTurnReports({ before: NOW + 2, limit: 10 }), 1);
      assert.equal(await store.pruneTurnReports({ before: NOW + 2, limit: 10 }), 0);
      assert.equal((await kept(store, fires[2]!.alarmId, [fires[2]!.fireId])).length, 1);
    });
  });
}
