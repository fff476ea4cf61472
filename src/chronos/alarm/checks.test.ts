import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedBy, checkMembers, mustWake } from './checks.ts';
import { triggerAlarm } from './lifecycle.ts';
import { optionsOf } from './options.ts';
import { deliveryEffect, settleDelivered, settleFailed, settleSkipped } from './settlement.ts';
import { type Body, claim, edit, NOW, scheduled, setAlarm } from './testing/alarm-state.ts';

const HTTP = { http: { url: 'https://example.org/', etag: 'changed' } } as const;
const hourly = (more: Body = {}) => setAlarm({ kind: 'cron', cron_expr: '0 * * * *', check: HTTP, ...more });
const verdict = (value?: string) =>
  ({ verdict: 'wake', reason: 'it has changed', duration_ms: 5, ...(value && { value }) }) as const;
const no = { verdict: 'skip', reason: 'it has not changed', value: 'seen', duration_ms: 5 } as const;

function after(state: ReturnType<typeof hourly>, end: 'woken' | 'skipped', value?: string) {
  const claimed = claim(state);
  const { fireId } = scheduled(state);
  const checked = checkedBy(claimed.alarm, scheduled(claimed), end === 'skipped' ? no : verdict(value));
  return end === 'skipped'
    ? settleSkipped(claimed, fireId, NOW + 1, checked)
    : settleDelivered(claimed, fireId, NOW + 2, checked);
}

const remembered = ({ alarm }: ReturnType<typeof hourly>) => optionsOf(alarm).check_state;

test('the value moves on only with an accepted wake, which ends the count of skips', () => {
  let state = after(hourly(), 'woken', 'one');
  assert.deepEqual(remembered(state), { value: 'one', wokenAt: NOW + 2 });
  state = after(after(state, 'skipped'), 'skipped');
  assert.deepEqual(remembered(state), { value: 'one', wokenAt: NOW + 2, skips: 2 });
  assert.equal(state.alarm.status, 'active');
  assert.deepEqual([state.alarm.fireCount, state.alarm.scheduledFires, state.alarm.failureCount], [1, 1, 0]);
  // A wake without a value, such as one that could not be decided, keeps the earlier one.
  assert.deepEqual(remembered(after(state, 'woken')), { value: 'one', wokenAt: NOW + 2 });
});

test('a skip ends the failures before it', () => {
  const before = hourly();
  const claimed = claim(before);
  const { fireId } = scheduled(before);
  const failed = settleFailed(claimed, fireId, { error: 'busy', final: false, retryAt: () => NOW + 9 });
  assert.equal(failed.alarm.failureCount, 1);
  const skipped = after(failed, 'skipped');
  assert.deepEqual([skipped.alarm.failureCount, skipped.alarm.lastError], [0, null]);
});

test('a once alarm ends with a skip, and says so', () => {
  const { alarm, occurrences } = after(setAlarm({ kind: 'once', delay_seconds: 60, check: HTTP }), 'skipped');
  assert.deepEqual([alarm.status, alarm.fireCount, occurrences], ['fired', 0, []]);
  assert.equal(alarm.lastError, 'skipped by its check: it has not changed');
});

test('a wake must go through after max_skips, and when the last one is too long ago', () => {
  const bounded = { ...HTTP, max_skips: 2, wake_at_least_every: 'PT1H' };
  const at = (state: object, now: number) => mustWake(bounded, state, { now, since: NOW });
  assert.equal(at({ skips: 1 }, NOW), undefined);
  assert.match(at({ skips: 2 }, NOW)!, /^2 skipped in a row/);
  assert.equal(at({ wokenAt: NOW }, NOW + 3_599_999), undefined);
  assert.match(at({ wokenAt: NOW }, NOW + 3_600_000)!, /^no wake since 2026-06-15T08:10/);
  assert.match(at({}, NOW + 3_600_000)!, /^no wake since/);
});

test('the router is told what is remembered; a trigger by hand has no check', () => {
  const state = after(after(hourly({ check: { ...HTTP, max_skips: 1 } }), 'woken', 'one'), 'skipped');
  const members = checkMembers(state.alarm, scheduled(state));
  assert.deepEqual(members.check, { ...HTTP, max_skips: 1 });
  assert.deepEqual(members.check_state, {
    value: 'one',
    woken_at: '2026-06-15T08:10:00.002Z',
    skips: 1,
    must_wake: '1 skipped in a row (max_skips)',
  });
  const { state: triggered, fireId } = triggerAlarm(state, NOW + 5);
  const trigger = triggered.occurrences.find((one) => one.fireId === fireId)!;
  assert.deepEqual(checkMembers(triggered.alarm, trigger), {});
  // Its wake is one, so the skips end, and the value stays.
  const delivered = settleDelivered(claim(triggered, fireId), fireId, NOW + 6);
  assert.deepEqual(remembered(delivered), { value: 'one', wokenAt: NOW + 6 });
  assert.deepEqual(checkMembers(setAlarm({ kind: 'once', delay_seconds: 9 }).alarm, scheduled(state)), {});
});

test('a changed check forgets the earlier one; a verdict about the earlier one is not stored', () => {
  const state = after(hourly(), 'woken', 'one');
  const check = { path: { path: 'inbox' } };
  assert.equal(remembered(edit(state, { check })), undefined);
  assert.equal(remembered(edit(state, { check: null })), undefined);
  assert.deepEqual(remembered(edit(state, { label: 'x' })), { value: 'one', wokenAt: NOW + 2 });
  const claimed = claim(hourly());
  const { fireId } = scheduled(claimed);
  const checked = checkedBy(claimed.alarm, scheduled(claimed), verdict('one'));
  const edited = edit(claimed, { check });
  assert.deepEqual(remembered(settleDelivered(edited, fireId, NOW + 2, checked)), { wokenAt: NOW + 2 });
  assert.equal(remembered(settleSkipped(edited, fireId, NOW + 2, checked)), undefined);
});

test('an alarm without a check remembers nothing, and its delivery is written in the short way', () => {
  const plain = claim(setAlarm({ kind: 'cron', cron_expr: '0 * * * *' }));
  assert.equal(settleDelivered(plain, scheduled(plain).fireId, NOW).alarm.options, null);
  assert.notEqual(deliveryEffect(plain.alarm, scheduled(plain), NOW), undefined);
  assert.equal(deliveryEffect(claim(hourly()).alarm, scheduled(hourly()), NOW), undefined);
});
