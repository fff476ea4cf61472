import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionOf, endingOf } from './fly.ts';

test('every documented state of Fly has a meaning, and an unknown one is queried again', () => {
  const meaning = (states: string) => [...new Set(states.split(' ').map(conditionOf))];
  assert.deepEqual(meaning('started'), ['up']);
  assert.deepEqual(meaning('starting restarting'), ['rising']);
  assert.deepEqual(meaning('created stopped suspended failed'), ['down']);
  assert.deepEqual(meaning('creating stopping suspending updating replacing'), ['changing']);
  assert.deepEqual(meaning('destroying destroyed launch_failed replaced migrated'), ['lost']);
  assert.deepEqual(meaning('hibernating toString __proto__'), ['changing']);
});

test('the latest exit event says how the program ended, if Fly reports it', () => {
  const exit = (timestamp: number, exit_event: object) => ({ type: 'exit', timestamp, request: { exit_event } });
  assert.equal(endingOf({ state: 'stopped' }), '');
  assert.equal(endingOf({ state: 'stopped', events: [{ type: 'launch' }] }), '');
  const events = [exit(1, { exit_code: 1 }), exit(3, { exit_code: 137, oom_killed: true }), exit(2, {})];
  assert.equal(endingOf({ state: 'stopped', events }), '; its program exited with code 137, out of memory');
  const guest = [exit(1, { exit_code: 0, guest_exit_code: 78, error: 'no such file' })];
  assert.equal(endingOf({ state: 'failed', events: guest }), '; its program exited with code 78, no such file');
  assert.equal(endingOf({ state: 'stopped', events: [exit(1, { exit_code: 0 })] }), '; its program exited with code 0');
});
