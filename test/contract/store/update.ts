import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Alarm, Occurrence, Transition } from '../../../src/chronos/alarm/alarm.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import {
  ADA,
  attemptOf,
  BOB,
  cancelled,
  claim,
  createClaimed,
  createDue,
  edited,
  everythingOf,
  NOW,
  newId,
  OTHER_DEFINITION,
  occurrenceOf,
  triggered,
  withCode,
} from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';

/** Another value for everything that a transition may change. */
const CHANGES: Omit<Alarm, 'id' | 'owner' | 'kind' | 'idempotencyKey' | 'madeBy' | 'createdAt'> = {
  ...OTHER_DEFINITION,
  anchor: NOW + 1,
  setBy: 'Ada "the first" \\',
  status: 'paused',
  failureCount: 2,
  lastError: 'the machine said 500',
  updatedAt: NOW + 2,
  lastFiredAt: NOW + 3,
  fireCount: 8,
  scheduledFires: 6,
};

const ILLEGAL: Record<string, Transition> = {
  'the id': edited({ id: newId() }),
  'the owner': edited({ owner: BOB }),
  'the kind': edited({ kind: 'cron' }),
  'the idempotency key': edited({ idempotencyKey: 'another' }),
  'the credential that made it': edited({ madeBy: 'client another' }),
  'the instant of creation': edited({ createdAt: NOW + 1 }),
  'a fence': changedOccurrence({ fence: 7 }),
  'a claim': changedOccurrence({ claimedAt: NOW }),
  'the owner of an occurrence': changedOccurrence({ owner: BOB }),
  'the alarm of an occurrence': changedOccurrence({ alarmId: newId() }),
  'the number of scheduled occurrences to two': ({ alarm, occurrences }) => ({
    alarm,
    occurrences: [...occurrences, occurrenceOf(alarm, NOW + 50)],
  }),
  'an occurrence to a claimed one': ({ alarm, occurrences }) => ({
    alarm,
    occurrences: [...occurrences, occurrenceOf(alarm, NOW + 50, { source: 'trigger', claimedAt: NOW })],
  }),
};

function changedOccurrence(change: Partial<Occurrence>): Transition {
  return ({ alarm, occurrences }) => ({
    alarm,
    occurrences: occurrences.map((occurrence) => ({ ...occurrence, ...change })),
  });
}

export function updateContract(open: OpenStore): void {
  describe('update', () => {
    test('stores each member that a transition changes, and no other', async (t) => {
      const { store } = await openFor(t, open);
      for (const member of Object.keys(CHANGES) as (keyof typeof CHANGES)[]) {
        const { alarm, occurrences } = await createDue(store, NOW);
        const wanted = { alarm: { ...alarm, [member]: CHANGES[member] }, occurrences };
        assert.deepEqual(await store.update(ADA, alarm.id, edited({ [member]: CHANGES[member] })), wanted, member);
        assert.deepEqual(await store.get(ADA, alarm.id), wanted, member);
      }
    });

    test('stores all of them at once, and can revert them', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const { alarm, occurrences } = await createDue(store, NOW);
      await store.update(ADA, alarm.id, edited(CHANGES));
      const again = await reopen();
      assert.deepEqual(await again.get(ADA, alarm.id), { alarm: { ...alarm, ...CHANGES }, occurrences });
      await again.update(ADA, alarm.id, edited(alarm));
      assert.deepEqual(await again.get(ADA, alarm.id), { alarm, occurrences });
    });

    test('stores added, changed and removed occurrences', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW);
      const byFireId = (one: Occurrence, other: Occurrence) => (one.fireId < other.fireId ? -1 : 1);
      const stored = async () => [...((await store.get(ADA, alarm.id))?.occurrences ?? [])].sort(byFireId);

      const first = occurrenceOf(alarm, NOW);
      const second = occurrenceOf(alarm, NOW + 1, { source: 'trigger' });
      await store.update(ADA, alarm.id, () => ({ alarm, occurrences: [first, second] }));
      assert.deepEqual(await stored(), [first, second]);

      const parked: Occurrence = {
        ...first,
        source: 'trigger',
        dueAt: null,
        attempt: 4,
        missedCount: 2,
        nominal: NOW - 5,
        heldReason: 'held back: "quiet" until 07:00 🦘',
        heldUntil: NOW + 99,
        cause: 'client https://chat.example/client.json',
      };
      const third = occurrenceOf(alarm, NOW + 2);
      await store.update(ADA, alarm.id, () => ({ alarm, occurrences: [third, parked] }));
      assert.deepEqual(await stored(), [parked, third]);

      await store.update(ADA, alarm.id, () => ({ alarm, occurrences: [] }));
      assert.deepEqual(await stored(), []);
    });

    test('changes nothing when the transition changes nothing', async (t) => {
      const { store } = await openFor(t, open);
      const state = await createDue(store, NOW);
      assert.deepEqual(await store.update(ADA, state.alarm.id, (same) => same), state);
      assert.deepEqual(await store.get(ADA, state.alarm.id), state);
    });

    test('returns nothing, and calls nothing, when the owner has no such alarm', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW);
      const never: Transition = () => assert.fail('the transition was called');
      assert.equal(await store.update(ADA, newId(), never), undefined);
      assert.equal(await store.update(BOB, alarm.id, never), undefined);
    });

    test('passes on an error of the transition, and stores nothing', async (t) => {
      const { store } = await openFor(t, open);
      const state = await createDue(store, NOW);
      const refusal = new ReveilleError('conflict', 'not now');
      await assert.rejects(
        store.update(ADA, state.alarm.id, () => {
          throw refusal;
        }),
        refusal,
      );
      assert.deepEqual(await store.get(ADA, state.alarm.id), state);
    });

    test('refuses an occurrence that exists already', async (t) => {
      const { store } = await openFor(t, open);
      const state = await createDue(store, NOW);
      await assert.rejects(store.update(ADA, state.alarm.id, triggered(NOW)), withCode('conflict'));
      assert.deepEqual(await store.get(ADA, state.alarm.id), state);
    });

    for (const [what, transition] of Object.entries(ILLEGAL)) {
      test(`a transition may not change ${what}`, async (t) => {
        const { store } = await openFor(t, open);
        const state = await createDue(store, NOW);
        await assert.rejects(store.update(ADA, state.alarm.id, transition), withCode('internal'));
        assert.deepEqual(await store.get(ADA, state.alarm.id), state);
        assert.deepEqual(await store.list(BOB, { limit: 10 }), []);
      });
    }

    test('a cancelled alarm does not become active again: its key may belong to another', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await createDue(store, NOW, { idempotencyKey: 'k' });
      await store.update(ADA, alarm.id, cancelled);
      await createDue(store, NOW, { idempotencyKey: 'k' });
      await assert.rejects(store.update(ADA, alarm.id, edited({ status: 'active' })), withCode('internal'));
    });

    test('loses none of many simultaneous updates', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const { alarm } = await createDue(store, NOW);
      const count: Transition = (state) => ({
        ...state,
        alarm: { ...state.alarm, fireCount: state.alarm.fireCount + 1 },
      });
      await Promise.all(Array.from({ length: 50 }, (_, n) => pick(n).update(ADA, alarm.id, count)));
      assert.equal((await store.get(ADA, alarm.id))?.alarm.fireCount, 50);
    });

    test('of simultaneous operations, a refused one does not affect the others', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const states = await Promise.all(Array.from({ length: 10 }, () => createDue(store, NOW)));
      const results = await Promise.allSettled(
        states.map(({ alarm }, n) =>
          pick(n).update(ADA, alarm.id, n % 2 === 0 ? edited({ label: 'new' }) : edited({ id: newId() })),
        ),
      );
      for (const [n, { alarm }] of states.entries()) {
        assert.equal(results[n]?.status, n % 2 === 0 ? 'fulfilled' : 'rejected');
        assert.equal((await store.get(ADA, alarm.id))?.alarm.label, n % 2 === 0 ? 'new' : alarm.label);
      }
    });

    test('an occurrence keeps its claim through updates', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.update(ADA, claimed.alarm.id, edited({ label: 'new' }));
      await store.update(ADA, claimed.alarm.id, cancelled);
      const kept = await store.get(ADA, claimed.alarm.id);
      assert.deepEqual(kept?.occurrences, [{ ...claimed.occurrence, dueAt: null }]);
    });

    test('a removed occurrence with a claim leaves its attempt in the ledger as unknown', async (t) => {
      const { store } = await openFor(t, open);
      const claimed = await createClaimed(store);
      await store.update(ADA, claimed.alarm.id, ({ alarm }) => ({ alarm, occurrences: [] }));
      const { attempts } = await everythingOf(store, ADA, claimed.alarm.id);
      assert.equal(attempts.length, 1);
      const { error, ...attempt } = attempts[0]!;
      // The claim's present is later than that of any store.
      assert.ok(claimed.occurrence.claimedAt! > store.now());
      const { error: _, ...wanted } = attemptOf(claimed, {
        outcome: 'unknown',
        httpStatus: null,
        startedAt: claimed.occurrence.claimedAt!,
        finishedAt: claimed.occurrence.claimedAt!,
      });
      assert.deepEqual(attempt, wanted);
      assert.match(error ?? '', /stopped before it could record the outcome/);
      assert.deepEqual(await claim(store, { now: NOW + 1_000_000 }), []);
    });
  });
}
