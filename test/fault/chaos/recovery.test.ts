import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Alarm, Attempt, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import { INTERRUPTED } from '../../../src/chronos/alarm/settlement.ts';
import { MACHINE_CLOCK, recoveryMs, waitsOf } from './recovery.ts';

function attempt(id: string, number: number, scheduledFor: number, startedAt: number, error?: string): Attempt {
  return {
    fireId: `${id}@${scheduledFor}`,
    alarmId: id,
    owner: 'ada',
    scheduledFor,
    attempt: number,
    startedAt,
    finishedAt: startedAt + 5,
    outcome: error === undefined ? 'delivered' : 'unknown',
    httpStatus: null,
    error: error ?? null,
    missedCount: 0,
    machineReadyMs: null,
    lateBecause: null,
    cause: null,
  };
}

function waits(attempts: Attempt[], occurrences: Occurrence[] = [], clock = MACHINE_CLOCK) {
  const alarms = attempts.map(({ alarmId }) => ({ id: alarmId, createdAt: 0 }) as Alarm);
  return waitsOf({ alarms, attempts, occurrences, readAt: 50_000 }, clock);
}

test('an occurrence due in an outage is overdue until its attempt starts; a prompt start is not overdue', () => {
  const found = waits([attempt('a', 1, 1000, 1002), attempt('b', 1, 2000, 5000), attempt('c', 1, 2500, 5200)]);
  assert.equal(recoveryMs(found, 4000), 1200);
  assert.equal(recoveryMs(found, 5200), 0);
  assert.equal(recoveryMs(found, 1500), 0);
});

test('an attempt without an outcome leaves its occurrence overdue; the retry ladder does not', () => {
  const found = waits([
    attempt('killed', 1, 1000, 1001, INTERRUPTED),
    attempt('killed', 2, 1000, 16_000),
    attempt('refused', 1, 1000, 1001, 'the router answered 502'),
    attempt('refused', 2, 1000, 31_000),
  ]);
  assert.equal(recoveryMs(found, 1500), 14_500);
});

test('an occurrence due before the end of another backlog belongs to the same recovery', () => {
  const found = waits([attempt('a', 1, 1000, 4000), attempt('b', 1, 3900, 6000), attempt('c', 1, 7000, 8000)]);
  assert.equal(recoveryMs(found, 2000), 4000);
  assert.equal(recoveryMs(found, 2000, 3500), 2000, 'another fault began at 3500');
});

test('an occurrence without an attempt is overdue until the end', () => {
  const owed = { fireId: 'a', alarmId: 'a', owner: 'ada', dueAt: 1000, claimedAt: null, attempt: 0 } as Occurrence;
  assert.equal(recoveryMs(waits([], [owed]), 2000), 48_000);
});

test('with a clock that jumps, waiting is measured in elapsed time', () => {
  // From 1000 on the clock is 100 s ahead.
  const clock = {
    whenReached: (instant: number, since: number) =>
      Math.max(since, Math.min(instant, Math.max(1000, instant - 100_000))),
    whenShown: (instant: number) => (instant > 1000 ? instant - 100_000 : instant),
  };
  const [skipped] = waits([attempt('skipped', 1, 60_000, 101_700)], [], clock);
  assert.deepEqual([skipped?.from, skipped?.until], [1000, 1700]);
});
