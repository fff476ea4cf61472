import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmState } from './alarm.ts';
import { cancelAlarm, pauseAlarm, redriveAlarm, resumeAlarm, triggerAlarm } from './lifecycle.ts';
import { catchUp } from './series.ts';
import { settleDeferred, settleDelivered, settleFailed, settleInterrupted, settleMissed } from './settlement.ts';
import { type Body, claim, complete, edit, NOW, scheduled, setAlarm } from './testing/alarm-state.ts';
import { viewAlarm } from './view.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DUE = NOW + MINUTE;
const HOLD = {
  until: NOW + 8 * HOUR,
  dueAt: NOW + 8 * HOUR,
  reason: 'held back: quiet hours of this user until 07:00 Europe/Berlin',
};

/** An alarm whose only occurrence the router has deferred. */
function deferredAlarm(body: Body = { kind: 'once', delay_seconds: 60 }): AlarmState {
  const state = setAlarm(body);
  const { fireId } = scheduled(state);
  return complete(claim(state, fireId, DUE), fireId, (given) => settleDeferred(given, fireId, HOLD));
}

/** The same, tried again after the end of the deferral. */
function retried(): { state: AlarmState; fireId: string } {
  const deferral = deferredAlarm();
  const { fireId } = scheduled(deferral);
  return { state: claim(deferral, fireId, HOLD.until), fireId };
}

describe('a deferred occurrence', () => {
  test('is due again at the end of the deferral, without a counted failure', () => {
    const before = setAlarm({ kind: 'once', delay_seconds: 60 });
    const { alarm, occurrences } = deferredAlarm();
    assert.deepEqual(alarm, before.alarm);
    const [{ dueAt, heldReason, heldUntil, attempt, fence }] = occurrences as [AlarmState['occurrences'][0]];
    assert.deepEqual([dueAt, heldReason, heldUntil, attempt, fence], [HOLD.dueAt, HOLD.reason, HOLD.until, 0, 1]);
  });

  test('is tried before the end of the deferral, and the owner sees the end', () => {
    const state = setAlarm({ kind: 'once', delay_seconds: 60 });
    const { fireId } = scheduled(state);
    const asked = { ...HOLD, dueAt: NOW + HOUR };
    const deferral = complete(claim(state, fireId, DUE), fireId, (given) => settleDeferred(given, fireId, asked));
    assert.equal(scheduled(deferral).dueAt, NOW + HOUR);
    const shown = viewAlarm(deferral);
    assert.deepEqual([shown.held_back?.until, shown.next_fire_at], Array(2).fill('2026-06-15T16:10:00.000Z'));
    const released = [edit(deferral, { urgent: true }, NOW + 2 * MINUTE), pauseAlarm(deferral, NOW + 2 * MINUTE)];
    for (const after of released) assert.deepEqual(scheduled(after).heldUntil, null);
  });

  test('is shown with its reason and its instant until it is tried again', () => {
    const deferral = viewAlarm(deferredAlarm());
    assert.deepEqual(deferral.held_back, { reason: HOLD.reason, until: '2026-06-15T16:10:00.000Z' });
    assert.deepEqual(
      [deferral.next_fire_at, deferral.failure_count, deferral.in_flight],
      [deferral.held_back?.until, 0, false],
    );
    const under = viewAlarm(retried().state);
    assert.deepEqual([under.held_back, under.in_flight], [undefined, true]);
    assert.equal(viewAlarm(setAlarm({ kind: 'once', delay_seconds: 60 })).held_back, undefined);
  });

  test('can be a triggered occurrence; the one that is due first is shown', () => {
    const { state, fireId } = triggerAlarm(deferredAlarm(), NOW + HOUR);
    const sooner = { until: NOW + 2 * HOUR, dueAt: NOW + 2 * HOUR, reason: 'held back: a limit' };
    const both = complete(claim(state, fireId, NOW + HOUR), fireId, (given) => settleDeferred(given, fireId, sooner));
    assert.equal(viewAlarm(both).held_back?.reason, sooner.reason);
    assert.equal(viewAlarm(both).next_fire_at, '2026-06-15T16:10:00.000Z');
  });

  test('loses its reason when its attempt ends otherwise, and its first attempt has the number 1', () => {
    const failed = { error: 'busy', final: false, retryAt: () => HOLD.until + MINUTE };
    const endings: ((state: AlarmState, fireId: string) => AlarmState)[] = [
      (state, fireId) => settleFailed(state, fireId, failed),
      (state, fireId) => settleFailed(state, fireId, { ...failed, final: true }),
      (state, fireId) => settleInterrupted(state, fireId),
      (state, fireId) => settleMissed(state, fireId, 'too late'),
    ];
    for (const ending of endings) {
      const { state, fireId } = retried();
      assert.equal(scheduled(state).attempt, 1);
      const after = complete(state, fireId, (given) => ending(given, fireId));
      assert.deepEqual([scheduled(after).heldReason, scheduled(after).attempt], [null, 1]);
    }
    const { state, fireId } = retried();
    assert.deepEqual(complete(state, fireId, (given) => settleDelivered(given, fireId, NOW)).occurrences, []);
  });

  test('does not become due after its alarm is paused, cancelled or given another instant', () => {
    const paused = pauseAlarm(deferredAlarm(), NOW + HOUR);
    assert.deepEqual([scheduled(paused).dueAt, scheduled(paused).heldReason], [null, null]);
    const resumed = scheduled(resumeAlarm(paused, NOW + 2 * HOUR));
    assert.deepEqual([resumed.dueAt, resumed.heldReason], [DUE, null]);
    assert.deepEqual(cancelAlarm(deferredAlarm(), NOW + HOUR).occurrences, []);
    const moved = scheduled(edit(deferredAlarm(), { delay_seconds: 7200 }, NOW + HOUR));
    assert.deepEqual([moved.dueAt, moved.heldReason], [NOW + 3 * HOUR, null]);
  });

  test('is tried at once when its alarm becomes urgent, and stays deferred after other edits', () => {
    const urgent = edit(deferredAlarm(), { urgent: true }, NOW + HOUR);
    assert.deepEqual([scheduled(urgent).dueAt, scheduled(urgent).heldReason], [NOW + HOUR, null]);
    assert.equal(viewAlarm(urgent).urgent, true);
    const renamed = edit(deferredAlarm(), { label: 'other', urgent: false }, NOW + HOUR);
    assert.deepEqual([scheduled(renamed).dueAt, scheduled(renamed).heldReason], [HOLD.until, HOLD.reason]);
  });

  test('stays consistent when the deferral arrives after a pause, a cancellation or an edit', () => {
    const state = setAlarm({ kind: 'once', delay_seconds: 60 });
    const { fireId } = scheduled(state);
    const claimed = claim(state, fireId, DUE);
    const hold = (given: AlarmState) => settleDeferred(given, fireId, HOLD);
    const paused = complete(pauseAlarm(claimed, DUE), fireId, hold);
    assert.deepEqual(
      [scheduled(paused).dueAt, scheduled(paused).heldReason, scheduled(paused).attempt],
      [null, null, 0],
    );
    assert.deepEqual(complete(cancelAlarm(claimed, DUE), fireId, hold).occurrences, []);
    const edited = complete(edit(claimed, { delay_seconds: 3600 }, DUE), fireId, hold);
    assert.deepEqual(
      edited.occurrences.map((occurrence) => [occurrence.source, occurrence.heldReason]),
      [['schedule', null]],
    );
  });

  test('of a failed alarm starts anew after a redrive', () => {
    const { state, fireId } = retried();
    const failed = complete(state, fireId, (given) => settleMissed(given, fireId, 'too late'));
    const again = scheduled(redriveAlarm(failed, NOW + 9 * HOUR));
    assert.deepEqual([again.dueAt, again.heldReason], [NOW + 9 * HOUR, null]);
  });

  test('of a series is replaced by the latest occurrence when the deferral was longer than the interval', () => {
    const series = deferredAlarm({ kind: 'cron', cron_expr: '@hourly' });
    const claimed = claim(series, scheduled(series).fireId, HOLD.until);
    const deferral = scheduled(claimed);
    assert.equal(deferral.attempt, 1, 'only first attempts are replaced');
    const replacement = catchUp(claimed.alarm, deferral, HOLD.until);
    assert.deepEqual([replacement?.missedCount, replacement?.heldReason], [7, null]);
  });
});
