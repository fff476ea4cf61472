import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pauseMs, verdictOf } from './verdict.ts';

const HOUR = 3600_000;

test('a receipt is kept as long as an answer may get better, and a day at most', () => {
  for (const status of [200, 202]) assert.equal(verdictOf(status, 90 * HOUR), 'taken');
  for (const status of [undefined, 408, 429, 500, 502, 503]) {
    assert.equal(verdictOf(status, 23 * HOUR), 'all_later');
    assert.equal(verdictOf(status, 24 * HOUR), 'given_up');
  }
  for (const status of [401, 403, 302]) {
    assert.equal(verdictOf(status, 23 * HOUR), 'later');
    assert.equal(verdictOf(status, 24 * HOUR), 'given_up');
  }
  assert.equal(verdictOf(404, 59_000), 'later');
  assert.equal(verdictOf(404, 60_000), 'given_up');
  for (const status of [400, 405, 413]) assert.equal(verdictOf(status, 0), 'given_up');
});

test('pauses double from a second to five minutes, each in the upper half', () => {
  assert.deepEqual(
    [1, 2, 3, 9, 10, 1000].map((failures) => pauseMs(failures, 0)),
    [500, 1000, 2000, 128_000, 150_000, 150_000],
  );
  assert.ok(pauseMs(1, 0.999) < 1000);
  assert.ok(pauseMs(50, 0.999) < 300_000);
});
