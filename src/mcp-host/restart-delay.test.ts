import assert from 'node:assert/strict';
import { test } from 'node:test';
import { restartDelayMs } from './restart-delay.ts';

test('a server that keeps failing is tried less and less often, but at least every minute', () => {
  const delays = [1, 2, 3, 4, 5, 6, 7, 8, 2000].map(restartDelayMs);
  assert.deepEqual(delays, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});
