import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../kit/clock/clock.ts';
import { RestartDelays } from './hosted-server.ts';

test('a server that keeps failing is started less and less often, but at least as often as the setting says', () => {
  const minute = new RestartDelays(systemClock, 60_000);
  const delays = Array.from({ length: 9 }, () => minute.next());
  assert.deepEqual(delays, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  const soon = new RestartDelays(systemClock, 3000);
  assert.deepEqual([soon.next(), soon.next(), soon.next(), soon.next()], [1000, 2000, 3000, 3000]);
});

test('a server that ran for a minute resets its delay; a shorter run does not', () => {
  let now = 5000;
  const delays = new RestartDelays({ ...systemClock, monotonic: () => now }, 60_000);
  const afterRunning = (ms: number) => {
    delays.ready();
    now += ms;
    delays.lost();
    return delays.next();
  };
  assert.deepEqual([delays.next(), delays.next()], [1000, 2000]);
  assert.equal(afterRunning(59_999), 4000);
  assert.equal(afterRunning(60_000), 1000);
  assert.equal(afterRunning(10), 2000);
});
