import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, settle } from '../../../kit/clock/testing/manual-clock.ts';
import { createApprovers } from './approvers.ts';

const { signal } = new AbortController();

test("a stream of a conversation, or of all, counts for the conversation's gates", () => {
  const approvers = createApprovers(new ManualClock());
  assert.equal(approvers.isPresent('a'), false);
  const leave = approvers.addStream('a');
  assert.deepEqual([approvers.isPresent('a'), approvers.isPresent('b')], [true, false]);
  const leaveAll = approvers.addStream(undefined);
  assert.equal(approvers.isPresent('b'), true);
  leaveAll();
  leave();
  leave();
  assert.equal(approvers.isPresent('a'), false);
});

test('two streams of one conversation are counted: when one ends the other still counts', () => {
  const approvers = createApprovers(new ManualClock());
  const leave = approvers.addStream('a');
  approvers.addStream('a');
  leave();
  assert.equal(approvers.isPresent('a'), true);
});

test('a wait ends when a stream of the conversation opens, not for another one', async () => {
  const clock = new ManualClock();
  const approvers = createApprovers(clock);
  let resolved: boolean | undefined;
  void approvers.waitFor('a', 5000, signal).then((present) => {
    resolved = present;
  });
  approvers.addStream('b');
  await clock.advance(4999);
  assert.equal(resolved, undefined);
  approvers.addStream('a');
  await settle();
  assert.equal(resolved, true);
  assert.equal(clock.timers, 0);
});

test('without a stream the wait ends at its limit, or when the call is aborted', async () => {
  const clock = new ManualClock();
  const approvers = createApprovers(clock);
  const late = approvers.waitFor('a', 5000, signal);
  await clock.advance(5000);
  assert.equal(await late, false);
  const expired = new AbortController();
  const given = approvers.waitFor('a', 5000, expired.signal);
  expired.abort();
  assert.equal(await given, false);
});
