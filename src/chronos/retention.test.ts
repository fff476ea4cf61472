import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../kit/log/log.ts';
import { startRetention } from './retention.ts';
import type { AlarmStore } from './store/store.ts';

const DAY_MS = 86_400_000;

test('attempts, turn reports and events are pruned by one age and alarms by another, each completely, and again later', async () => {
  const clock = new ManualClock();
  const left = { pruneAttempts: 1200, pruneReceipts: 700, pruneEvents: 300, pruneAlarms: 150 };
  const calls: [what: string, daysAgo: number][] = [];
  const prune = (what: keyof typeof left) => async (request: { before: number; limit: number }) => {
    calls.push([what, Math.round((clock.now() - request.before) / DAY_MS)]);
    const forgotten = Math.min(left[what], request.limit);
    left[what] -= forgotten;
    return forgotten;
  };
  const store = {
    now: () => clock.now(),
    pruneAttempts: prune('pruneAttempts'),
    pruneTurnReports: prune('pruneReceipts'),
    pruneEvents: prune('pruneEvents'),
    pruneAlarms: prune('pruneAlarms'),
  } as AlarmStore;
  const stop = startRetention(store, { ledgerDays: 30, alarmDays: 90, clock, log: silentLogger });
  await clock.advance(60_000);
  assert.deepEqual(left, { pruneAttempts: 0, pruneReceipts: 0, pruneEvents: 0, pruneAlarms: 0 });
  assert.deepEqual(
    calls.map(([what]) => what),
    [
      ...Array(7).fill('pruneAttempts'),
      ...Array(4).fill('pruneReceipts'),
      ...Array(2).fill('pruneEvents'),
      ...Array(7).fill('pruneAlarms'),
    ],
  );
  assert.ok(calls.every(([what, days]) => days === (what === 'pruneAlarms' ? 90 : 30)));
  left.pruneReceipts = 1;
  await clock.advance(10 * 60_000);
  assert.equal(left.pruneReceipts, 0);
  const stopped = stop();
  await clock.advance(1000);
  await stopped;
});

test('ids of events stay as long as a signature may be valid, however short the retention is', async () => {
  const clock = new ManualClock();
  const ages: number[] = [];
  const none = async () => 0;
  const store = {
    ...{ now: () => clock.now(), pruneAttempts: none, pruneTurnReports: none, pruneAlarms: none },
    async pruneEvents({ before }: { before: number }) {
      ages.push(clock.now() - before);
      return 0;
    },
  } as unknown as AlarmStore;
  const stop = startRetention(store, { ledgerDays: 1e-6, alarmDays: 0, clock, log: silentLogger });
  await clock.advance(60_000);
  assert.ok(ages.length > 10);
  // Five minutes on each side of the sender's clock are accepted.
  assert.ok(ages.every((age) => age >= 10 * 60_000));
  const stopped = stop();
  await clock.advance(1000);
  await stopped;
});

test('a retention of ten minutes is checked every minute', async () => {
  const clock = new ManualClock();
  let rounds = 0;
  const store = {
    now: () => clock.now(),
    pruneAttempts: async () => {
      rounds++;
      return 0;
    },
    pruneTurnReports: async () => 0,
    pruneEvents: async () => 0,
    pruneAlarms: async () => 0,
  } as unknown as AlarmStore;
  const stop = startRetention(store, { ledgerDays: 10 / 1440, alarmDays: 0, clock, log: silentLogger });
  await clock.advance(10 * 60_000);
  assert.ok(rounds >= 9 && rounds <= 11, `${rounds} rounds`);
  const stopped = stop();
  await clock.advance(1000);
  await stopped;
});
