import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';
import { restAfter, StartBackoff } from './start-backoff.ts';

test('the pause doubles from a second to five minutes', () => {
  assert.deepEqual([1, 2, 3, 9, 10, 1000].map(restAfter), [1000, 2000, 4000, 256_000, 300_000, 300_000]);
});

test('only the same specification of the same machine is paused, until it has succeeded or the pause has ended', () => {
  const clock = new ShiftingClock();
  const backoff = new StartBackoff(clock);
  backoff.failed('alice', 'one', 'it broke');
  backoff.failed('alice', 'one', 'it broke again');
  assert.throws(
    () => backoff.check('alice', 'one'),
    (thrown) =>
      thrown instanceof ReveilleError &&
      thrown.code === 'unavailable' &&
      thrown.retryAfterSeconds === 2 &&
      /^it broke again \(failure 2 in a row; it is started again in 2 s at the earliest\)$/.test(thrown.message),
  );
  backoff.check('alice', 'another');
  backoff.check('bob', 'one');
  clock.advance(2000);
  backoff.check('alice', 'one');
  backoff.failed('alice', 'one', 'it broke');
  backoff.succeeded('alice');
  backoff.check('alice', 'one');
  backoff.failed('alice', 'one', 'it broke');
  backoff.failed('alice', 'another', 'it broke');
  assert.throws(() => backoff.check('alice', 'another'), /: it broke \(it is started again in 1 s at the earliest\)$/);
});
