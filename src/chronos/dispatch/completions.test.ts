import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore, Completion, CompletionResult } from '../store/store.ts';
import { CompletionBuffer } from './completions.ts';

const unavailable = () => new ReveilleError('unavailable', 'away', { retryable: true });

/** A buffer over a store that keeps each batch until the test sets its outcome. */
function bufferOf(concurrentBatches: number) {
  const clock = new ManualClock();
  const batches: { fires: number[]; end(refused?: boolean): Promise<void> }[] = [];
  const store = {
    complete(completions: readonly Completion[]) {
      const { promise, resolve, reject } = Promise.withResolvers<CompletionResult[]>();
      const end = async (refused = false) => {
        if (refused) reject(unavailable());
        else resolve(completions.map(() => 'applied'));
        await clock.advance(0);
      };
      batches.push({ fires: completions.map(({ key }) => key.fence), end });
      return promise;
    },
  } as Pick<AlarmStore, 'complete'> as AlarmStore;
  const buffer = new CompletionBuffer(store, clock, silentLogger, {
    batchDelayMs: 5,
    concurrentBatches,
    onFlushed: () => {},
  });
  let fires = 0;
  const stored: number[] = [];
  const add = (count: number) => {
    for (let n = 0; n < count; n++) {
      const fence = fires++;
      const completion = { key: { owner: 'ada', alarmId: 'a', fireId: `a@${fence}`, fence }, attempt: null };
      void buffer.add({ ...completion, settle: (state) => state }).then(() => stored.push(fence));
    }
  };
  const sizes = () => batches.map((batch) => batch.fires.length);
  return { clock, batches, add, sizes, stored };
}

test('while a batch is being written, a second one follows once it is large enough, and no third', async () => {
  const { clock, batches, add, sizes, stored } = bufferOf(2);
  add(3);
  await clock.advance(5);
  add(20);
  await clock.advance(100);
  assert.deepEqual(sizes(), [3], 'twenty wait for the running batch');
  add(76);
  await clock.advance(1);
  assert.deepEqual(sizes(), [3, 96]);
  add(300);
  await clock.advance(100);
  assert.deepEqual(sizes(), [3, 96]);
  await batches[1]!.end();
  await clock.advance(1);
  assert.deepEqual(sizes(), [3, 96, 256]);
  await batches[0]!.end();
  await batches[2]!.end();
  await clock.advance(1);
  assert.deepEqual(sizes(), [3, 96, 256, 44]);
  await batches[3]!.end();
  assert.equal(new Set(stored).size, 399);
  assert.equal(stored.length, 399);
});

test('a refused batch is retried after a pause, alone, and nothing is lost or written twice', async () => {
  const { clock, batches, add, sizes, stored } = bufferOf(2);
  add(10);
  await clock.advance(5);
  add(100);
  await clock.advance(1);
  await batches[0]!.end(true);
  await clock.advance(400);
  assert.deepEqual(sizes(), [10, 100]);
  await batches[1]!.end(true);
  add(200);
  await clock.advance(499);
  assert.deepEqual(sizes(), [10, 100], 'the next try waits');
  await clock.advance(1);
  assert.deepEqual(sizes(), [10, 100, 256]);
  await batches[2]!.end();
  await clock.advance(1);
  assert.deepEqual(sizes(), [10, 100, 256, 54]);
  await batches[3]!.end();
  assert.deepEqual(
    stored.toSorted((one, other) => one - other),
    Array.from({ length: 310 }, (_, n) => n),
  );
});

test('a store whose commits are shared gets one batch at a time', async () => {
  const { clock, batches, add, sizes } = bufferOf(1);
  add(3);
  await clock.advance(5);
  add(256);
  await clock.advance(100);
  assert.deepEqual(sizes(), [3]);
  await batches[0]!.end();
  await clock.advance(1);
  assert.deepEqual(sizes(), [3, 256]);
});
