import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { retryDelayMs } from './settlement.ts';

const ALMOST_ONE = 1 - 2 ** -32;

test('the delay doubles from 30 seconds up to 15 minutes', () => {
  const ladder = [0, 1, 2, 3, 4, 5, 6, 99, 5_000].map((failure) => retryDelayMs(failure, { random: 0 }) / 1000);
  assert.deepEqual(ladder, [30, 60, 120, 240, 480, 900, 900, 900, 900]);
});

test('jitter shortens a wait by up to a tenth and never lengthens it', () => {
  assert.equal(retryDelayMs(0, { random: ALMOST_ONE }), 27_000);
  fc.assert(
    fc.property(fc.nat(2_000), fc.double({ min: 0, max: ALMOST_ONE, noNaN: true }), (failure, random) => {
      const longest = Math.min(30_000 * 2 ** failure, 900_000);
      const delay = retryDelayMs(failure, { random });
      assert.ok(Number.isInteger(delay));
      assert.ok(delay >= longest * 0.9 && delay <= longest, `${delay} of ${longest}`);
    }),
  );
});

test('a hundred failures, the default, take about a day', () => {
  let total = 0;
  for (let failure = 0; failure < 100; failure++) total += retryDelayMs(failure, { random: 0.5 });
  assert.ok(total > 22 * 3_600_000 && total < 25 * 3_600_000, `${total / 3_600_000} hours`);
});

test('Retry-After is kept to the millisecond, whatever the computed delay', () => {
  for (const failure of [0, 50]) {
    assert.equal(retryDelayMs(failure, { random: 0.7, retryAfterSeconds: 5 }), 5_000);
    assert.equal(retryDelayMs(failure, { random: 0.7, retryAfterSeconds: 1.0001 }), 1_001);
  }
});

test('Retry-After is limited to 1 second to 15 minutes', () => {
  assert.equal(retryDelayMs(0, { random: 0, retryAfterSeconds: 86_400 }), 900_000);
  assert.equal(retryDelayMs(0, { random: 0, retryAfterSeconds: Number.POSITIVE_INFINITY }), 900_000);
  assert.equal(retryDelayMs(0, { random: 0, retryAfterSeconds: 0 }), 1_000);
});

test('an invalid Retry-After is ignored', () => {
  assert.equal(retryDelayMs(1, { random: 0, retryAfterSeconds: -1 }), 60_000);
  assert.equal(retryDelayMs(1, { random: 0, retryAfterSeconds: Number.NaN }), 60_000);
  assert.equal(retryDelayMs(1, { random: 0, retryAfterSeconds: undefined }), 60_000);
});
