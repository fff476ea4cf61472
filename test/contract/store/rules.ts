import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { draftAlarm, editAlarm, firstOccurrence } from '../../../src/chronos/alarm/definition.ts';
import { pauseAlarm, resumeAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { catchUp } from '../../../src/chronos/alarm/series.ts';
import { settleDelivered, settleReplaced } from '../../../src/chronos/alarm/settlement.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { ADA, attemptOf, claim, create, everythingOf, keyOf, NOW, newId } from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

const DAY_MS = 86_400_000;
const LIMITS = { minIntervalSeconds: 10, maxFailures: 100 };
const RULE = 'FREQ=DAILY;INTERVAL=2;BYHOUR=10;BYMINUTE=0;BYSECOND=0;COUNT=4\nEXDATE;VALUE=DATE:21270308';

async function setRule(store: AlarmStore): Promise<string> {
  const asked = { kind: 'rrule', wake_message: 'water the plants', rrule: RULE, timezone: 'Europe/Berlin' } as const;
  const alarm = draftAlarm(asked, { id: newId(), owner: ADA, now: NOW, limits: LIMITS });
  await create(store, { alarm, occurrence: firstOccurrence(alarm, NOW, LIMITS) });
  return alarm.id;
}

/** Claims what is due and delivers it, for the latest occurrence. @returns its instant and the missed ones */
async function deliver(store: AlarmStore, now: number): Promise<[string, number]> {
  const [claimed] = await claim(store, { now });
  assert.ok(claimed, 'an occurrence is due');
  const { alarm, occurrence } = claimed;
  const latest = catchUp(alarm, occurrence, now);
  if (latest) {
    const replaced = await store.complete([
      { key: keyOf(claimed), attempt: null, settle: (state) => settleReplaced(state, occurrence.fireId, latest) },
    ]);
    assert.deepEqual(replaced, ['applied']);
    return deliver(store, now);
  }
  const settle = (state: Parameters<typeof settleDelivered>[0]) => settleDelivered(state, occurrence.fireId, now);
  assert.deepEqual(await store.complete([{ key: keyOf(claimed), attempt: attemptOf(claimed), settle }]), ['applied']);
  return [new Date(occurrence.scheduledFor).toISOString(), occurrence.missedCount];
}

export function rulesContract(open: OpenStore): void {
  describe('a series by recurrence rules', () => {
    test('fires at its instants, also after a new start, and ends by COUNT', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const id = await setRule(store);
      assert.deepEqual(await deliver(store, NOW + 2 * DAY_MS + DAY_MS / 2), ['2127-03-06T09:00:00.000Z', 1]);
      const again = await reopen();
      assert.deepEqual(await deliver(again, NOW + 20 * DAY_MS), ['2127-03-10T09:00:00.000Z', 0]);
      const { state, attempts } = await everythingOf(again, ADA, id);
      assert.deepEqual([state?.alarm.status, state?.occurrences, attempts.length], ['fired', [], 2]);
    });

    test('is paused, resumed and edited', async (t) => {
      const { store } = await openFor(t, open);
      const id = await setRule(store);
      await store.update(ADA, id, (state) => pauseAlarm(state, NOW + 1));
      assert.deepEqual(await claim(store, { now: NOW + 3 * DAY_MS }), []);
      const now = NOW + 3 * DAY_MS;
      const resumed = await store.update(ADA, id, (state) => resumeAlarm(state, now));
      assert.equal(resumed?.occurrences[0]?.nominal, Date.parse('2127-03-10T09:00:00Z'));
      const patch = { rrule: 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0' };
      const edited = await store.update(ADA, id, (state) => editAlarm(state, patch, now, LIMITS));
      assert.equal(edited?.occurrences[0]?.nominal, Date.parse('2127-03-28T16:00:00Z'));
      assert.deepEqual(await deliver(store, now + 30 * DAY_MS), ['2127-03-28T16:00:00.000Z', 0]);
    });
  });
}
