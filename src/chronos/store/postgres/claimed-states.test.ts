import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Claim } from '../store.ts';
import { ClaimedStates } from './state.ts';

function claimOf(n: number): Claim {
  const occurrence = {
    fireId: `fire-${n}`,
    alarmId: `alarm-${n}`,
    owner: 'ada',
    fence: 3,
    claimedAt: 1,
  };
  return { alarm: { id: `alarm-${n}`, owner: 'ada' }, occurrence } as unknown as Claim;
}

const keyOf = (n: number, fence = 3, owner = 'ada') => ({ owner, alarmId: `alarm-${n}`, fireId: `fire-${n}`, fence });

test('a state is returned once, for the current claim', () => {
  const states = new ClaimedStates();
  states.remember(claimOf(1), 7);
  const { alarm, occurrence } = claimOf(1);
  assert.deepEqual(states.take(keyOf(1)), { revision: 7, state: { alarm, occurrences: [occurrence] } });
  assert.equal(states.take(keyOf(1)), undefined);
  for (const [fence, owner] of [
    [2, 'ada'],
    [4, 'ada'],
    [3, 'bob'],
  ] as const) {
    states.remember(claimOf(1), 7);
    assert.equal(states.take(keyOf(1, fence, owner)), undefined);
  }
});

test('claims without an outcome are removed, the oldest first', () => {
  const states = new ClaimedStates();
  for (let n = 0; n < 1500; n++) states.remember(claimOf(n), n);
  assert.equal(states.take(keyOf(100)), undefined);
  assert.equal(states.take(keyOf(1499))?.revision, 1499);
});
