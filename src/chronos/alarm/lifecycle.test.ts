import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { fireIdOf } from '../../wire/fire-id.ts';
import type { AlarmState } from './alarm.ts';
import { addBackfill, occurrencesBetween } from './backfill.ts';
import { cancelAlarm, MAX_WAITING_TRIGGERS, pauseAlarm, redriveAlarm, resumeAlarm, triggerAlarm } from './lifecycle.ts';
import { settleDelivered, settleFailed, settleMissed } from './settlement.ts';
import { ALARM_ID, type Body, claim, complete, NOW, scheduled, setAlarm } from './testing/alarm-state.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DUE = NOW + MINUTE;
const single = (more: Body = {}) => setAlarm({ kind: 'once', delay_seconds: 60, ...more });
const hourly = (more: Body = {}) => setAlarm({ kind: 'cron', cron_expr: '0 * * * *', ...more });

const gaveUp = { error: 'gone', final: true, retryAt: () => Number.NaN };
const retryIn = (ms: number, now: number) => ({ error: 'busy', final: false, retryAt: () => now + ms });

/** The alarm after one attempt at its scheduled occurrence. */
function attempted(
  state: AlarmState,
  now: number,
  settle: (state: AlarmState, fireId: string) => AlarmState,
): AlarmState {
  const { fireId } = scheduled(state);
  return complete(claim(state, fireId, now), fireId, (given) => settle(given, fireId));
}
const fired = () => attempted(single(), DUE, (state, fireId) => settleDelivered(state, fireId, DUE));
const failed = () => attempted(single(), DUE, (state, fireId) => settleFailed(state, fireId, gaveUp));

function conflict(act: () => unknown): string {
  try {
    act();
  } catch (thrown) {
    assert.ok(thrown instanceof ReveilleError && thrown.code === 'conflict', String(thrown));
    return thrown.message;
  }
  assert.fail('it was accepted');
}

describe('cancelling', () => {
  test('a waiting alarm has no pending occurrence any more', () => {
    for (const state of [single(), pauseAlarm(hourly(), NOW), triggerAlarm(hourly(), NOW).state]) {
      const after = cancelAlarm(state, NOW + 1);
      assert.equal(after.alarm.status, 'cancelled');
      assert.equal(after.alarm.updatedAt, NOW + 1);
      assert.deepEqual(after.occurrences, []);
    }
  });

  test('a running attempt ends and is not repeated', () => {
    const inFlight = claim(single(), undefined, DUE);
    const after = cancelAlarm(inFlight, DUE + 1);
    assert.deepEqual(after.occurrences, [{ ...scheduled(inFlight), dueAt: null }]);
  });

  test('a final alarm stays unchanged', () => {
    for (const state of [fired(), failed(), cancelAlarm(single(), NOW)])
      assert.deepEqual(cancelAlarm(state, NOW + HOUR), state);
  });

  test('waiting triggers of an alarm that has fired or failed are cancelled', () => {
    for (const settle of [
      (state: AlarmState, fireId: string) => settleDelivered(state, fireId, DUE),
      (state: AlarmState, fireId: string) => settleFailed(state, fireId, gaveUp),
    ]) {
      const ended = attempted(triggerAlarm(single(), DUE).state, DUE, settle);
      assert.equal(ended.occurrences.filter(({ dueAt }) => dueAt !== null).length, 1);
      const after = cancelAlarm(ended, DUE + 1);
      assert.equal(after.alarm, ended.alarm);
      assert.deepEqual(after.occurrences, scheduledOf(ended));
    }
  });

  const scheduledOf = ({ occurrences }: AlarmState) => occurrences.filter(({ source }) => source === 'schedule');
});

describe('pausing and resuming', () => {
  test('pausing parks the schedule and leaves triggers unchanged', () => {
    const { state, fireId } = triggerAlarm(hourly(), NOW);
    const after = pauseAlarm(state, NOW + 1);
    assert.equal(after.alarm.status, 'paused');
    assert.equal(scheduled(after).dueAt, null);
    assert.equal(after.occurrences.find((occurrence) => occurrence.fireId === fireId)?.dueAt, NOW);
  });

  test('pausing a paused alarm and resuming an active one change nothing', () => {
    const paused = pauseAlarm(hourly(), NOW);
    assert.equal(pauseAlarm(paused, NOW + 1), paused);
    const active = hourly();
    assert.equal(resumeAlarm(active, NOW + 1), active);
  });

  test('an alarm that has ended can be neither paused nor resumed', () => {
    const ended = [fired(), failed(), cancelAlarm(single(), NOW)];
    for (const [action, verb, needed] of [
      [pauseAlarm, 'paused', 'an active'],
      [resumeAlarm, 'resumed', 'a paused'],
    ] as const) {
      for (const state of ended)
        assert.equal(
          conflict(() => action(state, DUE)),
          `only ${needed} alarm can be ${verb}; this one is ${state.alarm.status}`,
        );
    }
  });

  test('a single alarm fires at its instant, or at once when that passed meanwhile', () => {
    const paused = pauseAlarm(single(), NOW);
    assert.equal(scheduled(resumeAlarm(paused, NOW + 1)).dueAt, DUE);
    assert.equal(scheduled(resumeAlarm(paused, DUE + HOUR)).dueAt, DUE);
  });

  test('a series continues with its next occurrence and does not count passed ones', () => {
    for (const resumedAt of [NOW + 50 * MINUTE, NOW + 51 * MINUTE, NOW + HOUR + 49 * MINUTE]) {
      const after = resumeAlarm(pauseAlarm(hourly(), NOW), resumedAt);
      assert.equal(scheduled(after).dueAt, NOW + 110 * MINUTE);
      assert.equal(scheduled(after).missedCount, 0);
    }
  });

  test('a pause without an instant in it changes no instant, with or without jitter', () => {
    for (const more of [{}, { jitter_seconds: 3600 }]) {
      const state = hourly(more);
      const { nominal, scheduledFor } = scheduled(state);
      const back = resumeAlarm(pauseAlarm(state, NOW), Math.max(nominal, scheduledFor - 1) - 1);
      assert.deepEqual(scheduled(back), scheduled(state));
    }
  });

  test('a series that ended during a pause has fired', () => {
    const state = hourly({ ends_at: new Date(NOW + 2 * HOUR).toISOString() });
    const after = resumeAlarm(pauseAlarm(state, NOW), NOW + 3 * HOUR);
    assert.equal(after.alarm.status, 'fired');
    assert.deepEqual(after.occurrences, []);
  });

  test('an occurrence with an attempt before the pause is retried at once', () => {
    for (const state of [single(), hourly()]) {
      const due = scheduled(state).scheduledFor;
      const retrying = attempted(state, due, (given, fireId) => settleFailed(given, fireId, retryIn(HOUR, due)));
      const after = resumeAlarm(pauseAlarm(retrying, due + 1), due + 2);
      assert.equal(scheduled(after).fireId, scheduled(state).fireId);
      assert.equal(scheduled(after).dueAt, due + 2);
    }
  });

  test('a running attempt keeps its claim through a pause and a resumption', () => {
    const inFlight = claim(hourly(), undefined, NOW + 50 * MINUTE);
    const after = resumeAlarm(pauseAlarm(inFlight, NOW + 50 * MINUTE + 1), NOW + 50 * MINUTE + 2);
    assert.deepEqual(scheduled(after), { ...scheduled(inFlight), dueAt: NOW + 50 * MINUTE + 2, cause: 'agent' });
  });
});

describe('triggering', () => {
  test('fires now, in addition to the schedule, which stays unchanged', () => {
    const before = hourly();
    const { state, fireId } = triggerAlarm(before, NOW + 1);
    assert.equal(fireId, `${ALARM_ID}@${NOW + 1}`);
    assert.deepEqual(scheduled(state), scheduled(before));
    const triggered = state.occurrences.find((occurrence) => occurrence.fireId === fireId);
    assert.equal(triggered?.dueAt, NOW + 1);
    assert.equal(triggered?.source, 'trigger');
  });

  test('a paused alarm can be triggered, one that has ended cannot', () => {
    assert.equal(triggerAlarm(pauseAlarm(single(), NOW), NOW).state.occurrences.length, 2);
    assert.equal(
      conflict(() => triggerAlarm(fired(), DUE)),
      'this alarm is fired and cannot be triggered; set a new one',
    );
    assert.equal(
      conflict(() => triggerAlarm(failed(), DUE)),
      'this alarm is failed and cannot be triggered; redrive it instead',
    );
  });

  test('two triggers in one millisecond are two fires', () => {
    const first = triggerAlarm(hourly(), NOW + 7);
    const second = triggerAlarm(first.state, NOW + 7);
    assert.deepEqual([first.fireId, second.fireId], [`${ALARM_ID}@${NOW + 7}`, `${ALARM_ID}@${NOW + 8}`]);
  });

  test('never takes the fire id of a past, present or future occurrence of the schedule', () => {
    const instants = [
      // Delivered already; still pending; and the one after.
      [hourly(), NOW - 10 * MINUTE],
      [hourly(), NOW + 50 * MINUTE],
      [hourly(), NOW + 110 * MINUTE],
      [setAlarm({ kind: 'cron', cron_expr: '@every 90s' }), NOW + 180_000],
      [single(), DUE],
    ] as const;
    for (const [state, instant] of instants)
      assert.equal(triggerAlarm(state, instant).fireId, `${ALARM_ID}@${instant + 1}`);
    const jittered = hourly({ jitter_seconds: 3600 });
    const { scheduledFor, nominal } = scheduled(jittered);
    const emptied = { ...jittered, occurrences: [] };
    assert.equal(triggerAlarm(emptied, scheduledFor).fireId, `${ALARM_ID}@${scheduledFor + 1}`);
    assert.equal(triggerAlarm(emptied, nominal).fireId, `${ALARM_ID}@${nominal}`);
  });

  test('at most a hundred triggers may wait; running ones do not count', () => {
    let state = hourly();
    for (let n = 0; n < MAX_WAITING_TRIGGERS; n++) state = triggerAlarm(state, NOW).state;
    assert.throws(() => triggerAlarm(state, NOW), { code: 'rate_limited' });
    const parked = {
      ...state,
      occurrences: state.occurrences.map((occurrence) => ({ ...occurrence, dueAt: null })),
    };
    assert.equal(triggerAlarm(parked, NOW).state.occurrences.length, MAX_WAITING_TRIGGERS + 2);
  });
});

describe('redriving', () => {
  test('re-arms the failed occurrence, with no failures', () => {
    const state = failed();
    const after = redriveAlarm(state, DUE + HOUR);
    assert.equal(after.alarm.status, 'active');
    assert.equal(after.alarm.failureCount, 0);
    assert.deepEqual(after.occurrences, [{ ...scheduled(state), dueAt: DUE + HOUR, cause: 'agent' }]);
  });

  test('a missed alarm is delivered now, however late', () => {
    const missed = attempted(single({ max_lateness_seconds: 5 }), DUE + HOUR, (state, fireId) =>
      settleMissed(state, fireId, 'late'),
    );
    assert.equal(missed.alarm.status, 'failed');
    assert.equal(redriveAlarm(missed, DUE + HOUR).alarm.maxLatenessSeconds, null);
  });

  test('a series whose next occurrence could not be computed restarts from now', () => {
    const state = hourly();
    const lost = { alarm: { ...state.alarm, status: 'failed' as const }, occurrences: [] };
    const after = redriveAlarm(lost, NOW + 2 * HOUR);
    assert.equal(after.alarm.status, 'active');
    assert.equal(scheduled(after).dueAt, NOW + 2 * HOUR + 50 * MINUTE);
    const over = { ...lost, alarm: { ...lost.alarm, endsAt: NOW + HOUR } };
    assert.equal(
      conflict(() => redriveAlarm(over, NOW + 2 * HOUR)),
      'the series of this alarm has ended; set a new one',
    );
  });

  test('an alarm whose last turn failed fires now, under its own fire id, once', () => {
    const state = fired();
    const again = redriveAlarm(state, DUE + HOUR, 'failed');
    const [occurrence] = again.occurrences;
    assert.equal(again.occurrences.length, 1);
    assert.deepEqual([occurrence!.source, occurrence!.dueAt], ['trigger', DUE + HOUR]);
    assert.notEqual(occurrence!.fireId, fireIdOf(state.alarm.id, DUE));
    assert.deepEqual(again.alarm, state.alarm);
    assert.equal(redriveAlarm(again, DUE + 2 * HOUR, 'failed'), again);
    for (const [turn, why] of [
      ['ok', /has succeeded/],
      ['waits', /retried automatically/],
      ['under_way', /still running/],
    ] as const)
      assert.match(
        conflict(() => redriveAlarm(state, DUE, turn)),
        why,
      );
    const cancelled = cancelAlarm(single(), NOW);
    conflict(() => redriveAlarm(cancelled, DUE, 'failed'));
  });

  test('only a failed alarm can be redriven', () => {
    for (const state of [single(), pauseAlarm(single(), NOW), fired(), cancelAlarm(single(), NOW)])
      assert.equal(
        conflict(() => redriveAlarm(state, DUE)),
        `only a failed alarm, or one whose last turn failed, can be redriven; this one is ${state.alarm.status}`,
      );
  });
});

test('a cancellation ends the backfill of a series, also of one that has ended', () => {
  const begun = setAlarm({ kind: 'cron', cron_expr: '0 * * * *' });
  const occurrences = [...occurrencesBetween(begun.alarm, NOW - 5 * HOUR, NOW)];
  const filled = addBackfill(begun, { alarm: begun.alarm, occurrences }, NOW)!.state;
  for (const status of ['active', 'fired'] as const) {
    const [backfilled] = filled.occurrences.filter(({ source }) => source === 'trigger');
    const running = claim({ ...filled, alarm: { ...filled.alarm, status } }, backfilled!.fireId);
    const cancelled = cancelAlarm(running, NOW);
    assert.equal(cancelled.alarm.options, null);
    const after = complete(cancelled, backfilled!.fireId, (state) => settleDelivered(state, backfilled!.fireId, NOW));
    assert.deepEqual(
      after.occurrences.filter(({ source }) => source === 'trigger'),
      [],
    );
  }
});
