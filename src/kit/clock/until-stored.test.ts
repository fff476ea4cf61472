import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { untilStored } from './backoff.ts';
import { ManualClock } from './testing/manual-clock.ts';

const full = () => new ReveilleError('unavailable', 'the disk is full');

test('a write is repeated while it fails temporarily, with longer pauses, until it succeeds', async () => {
  const clock = new ManualClock(0);
  const tried: number[] = [];
  const stored = untilStored(
    async () => {
      tried.push(clock.monotonic());
      if (tried.length < 5) throw full();
      return tried.length;
    },
    { clock, pausesMs: [100, 500], signal: new AbortController().signal, onRetry: () => {} },
  );
  for (let n = 0; n < 16; n++) await clock.advance(100);
  assert.equal(await stored, 5);
  assert.deepEqual(
    tried.map((at) => at - tried[0]!),
    [0, 100, 600, 1100, 1600],
  );
});

test('a permanent failure, and any failure after the end, is thrown', async () => {
  const clock = new ManualClock(0);
  const over = new AbortController();
  const retried: unknown[] = [];
  const store = (error: Error) =>
    untilStored(() => Promise.reject(error), {
      ...{ clock, pausesMs: [100], signal: over.signal },
      onRetry: (thrown) => retried.push(thrown),
    });
  await assert.rejects(store(new Error('a defect')), /a defect/);
  assert.equal(retried.length, 0);
  const waiting = store(full());
  over.abort();
  await assert.rejects(waiting, /the disk is full/);
});
