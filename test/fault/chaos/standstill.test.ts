import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call, Wake } from '../checker/history.ts';
import { standstillOf } from './standstill.ts';

const call = (answeredAt: number, answer: 'acknowledged' | 'lost' = 'acknowledged') =>
  ({ operation: { op: 'create' }, answer: { answer }, answeredAt }) as unknown as Call;
const wake = (answeredAt: number, status: number) => ({ status, answeredAt }) as unknown as Wake;

test('a standstill is the longest time without an acknowledged create, or an accepted wake, that begins after the strike', () => {
  const client = {
    clockToleranceMs: 0,
    calls: [10, 90, 110, 150, 900, 2000, 9000].map((at) => call(at)).concat(call(500, 'lost')),
  };
  const wakes = [100, 140, 200, 1200, 1300].map((at) => wake(at, 202)).concat(wake(700, 503));
  const receiver = { clockToleranceMs: 0, wakes, turns: null };
  assert.deepEqual(standstillOf(client, receiver, 100, 1900), { creates: 1100, fires: 1000 });
  assert.deepEqual(standstillOf(client, { ...receiver, wakes: [] }, 100, 1900).fires, 1800);
});
