import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoff, withJitter } from './backoff.ts';

test('pauses double from a second to five minutes, with jitter in the upper half', () => {
  const pauseOf = backoff({ first: 1000, longest: 300_000 });
  assert.deepEqual(
    [0, 1, 2, 3, 9, 10, 1000].map((failures) => withJitter(pauseOf(failures), 0)),
    [500, 500, 1000, 2000, 128_000, 150_000, 150_000],
  );
  assert.ok(withJitter(pauseOf(1), 0.999) < 1000);
  assert.ok(withJitter(pauseOf(50), 0.999) < 300_000);
});
