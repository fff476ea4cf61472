/** SQLite’s own list behaviour: two query plans for the next fires. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { deliveryEffect, settleDelivered } from '../../../src/chronos/alarm/settlement.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { type Clock, systemClock } from '../../../src/kit/clock/clock.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { atEnd, type Owner, temporaryFolder } from '../../support/temporary.ts';
import { ADA, attemptOf, BOB, createClaimed, createDue, keyOf, NOW, occurrenceOf } from './fixtures.ts';

function opened(owner: Owner, clock: Clock = systemClock) {
  const store = openSqliteStore({ path: join(temporaryFolder(owner), 'a.db'), clock, log: silentLogger });
  atEnd(owner, () => store.close());
  return store;
}

test('many alarms of one owner, and few beside many of another, are listed in due order', async (t) => {
  const store = opened(t);
  const many = await Promise.all(
    Array.from({ length: 1100 }, (_, at) => createDue(store, NOW + ((at * 7919) % 1100) * 1000)),
  );
  const few = await Promise.all([5, 3, 4, 3].map((at) => createDue(store, NOW + at * 100_000, { owner: BOB })));
  const listAll = async (owner: string, limit: number) => {
    const ids: string[] = [];
    let after: { dueAt: number; alarmId: string } | undefined;
    for (;;) {
      const page = await store.upcoming(owner, { limit, ...(after && { after }) });
      ids.push(...page.map(({ alarm }) => alarm.id));
      const last = page.at(-1);
      if (!last || page.length < limit) return ids;
      after = { dueAt: last.occurrences.find(({ source }) => source === 'schedule')!.dueAt!, alarmId: last.alarm.id };
    }
  };
  const inOrder = (states: typeof many) =>
    states
      .map(({ alarm, occurrences }) => ({ id: alarm.id, due: occurrences[0]!.dueAt! }))
      .sort((one, other) => one.due - other.due || (one.id < other.id ? -1 : 1))
      .map(({ id }) => id);
  assert.deepEqual(await listAll(ADA, 300), inOrder(many));
  for (const limit of [1, 3, 100]) assert.deepEqual(await listAll(BOB, limit), inOrder(few));
});

test('an alarm that is reopened right after its delivery stays in the lists of active alarms', async (t) => {
  const clock = new ManualClock(NOW);
  const store = opened(t, clock);
  const [reopened, ended] = [await createClaimed(store), await createClaimed(store)];
  const completions = [reopened, ended].map((claim) => {
    const { fireId } = claim.occurrence;
    return {
      key: keyOf(claim),
      attempt: attemptOf(claim),
      settle: (state: Parameters<typeof settleDelivered>[0]) => settleDelivered(state, fireId, NOW),
      direct: { claim, effect: deliveryEffect(claim.alarm, claim.occurrence, NOW)! },
    };
  });
  assert.deepEqual(await store.complete(completions), ['applied', 'applied']);
  const later = NOW + 3_600_000;
  await store.update(ADA, reopened.alarm.id, ({ alarm, occurrences }) => ({
    alarm: { ...alarm, status: 'active', fireAt: later },
    occurrences: [...occurrences, occurrenceOf(alarm, later)],
  }));
  await clock.advance(5000);
  await store.ping();
  const active = await store.list(ADA, { status: 'active', limit: 9 });
  const upcoming = await store.upcoming(ADA, { limit: 9 });
  for (const found of [active, upcoming])
    assert.deepEqual(
      found.map(({ alarm: { id } }) => id),
      [reopened.alarm.id],
    );
});
