import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Batcher, ItemFailure } from './batch.ts';

/** A batcher whose batches run until the test completes them. */
function batcherUnderTest(bounds: { batches?: number; items?: number; weight?: number } = {}) {
  const sent: {
    items: readonly number[];
    arrive: (outcomes?: (number | ItemFailure)[]) => void;
    sink: (error: Error) => void;
  }[] = [];
  const batcher = new Batcher<number, number>(
    (items) =>
      new Promise((resolve, reject) => {
        sent.push({ items, arrive: (outcomes) => resolve(outcomes ?? items), sink: reject });
      }),
    { batches: 1, items: 100, weight: 1000, weigh: (item) => item, ...bounds },
  );
  const batches = () => sent.map(({ items }) => [...items]);
  return {
    gatherer: batcher,
    sent,
    batches,
    turn: () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))),
  };
}

test('a lone item is sent at once, together with items of the same turn', async () => {
  const { gatherer: batcher, batches, sent, turn } = batcherUnderTest();
  const results = [batcher.add(1), batcher.add(2)];
  await turn();
  assert.deepEqual(batches(), [[1, 2]]);
  sent[0]?.arrive();
  assert.deepEqual(await Promise.all(results), [1, 2]);
});

test('items that arrive during a batch are sent together after it', async () => {
  const { gatherer: batcher, batches, sent, turn } = batcherUnderTest();
  const first = batcher.add(1);
  await turn();
  const later = [batcher.add(2), batcher.add(3)];
  await turn();
  assert.deepEqual(batches(), [[1]]);
  sent[0]?.arrive();
  await first;
  await turn();
  assert.deepEqual(batches(), [[1], [2, 3]]);
  sent[1]?.arrive();
  await Promise.all(later);
});

test('batches keep their limits, and an item that is too heavy is sent alone', async () => {
  const { gatherer: batcher, batches, turn } = batcherUnderTest({ batches: 9, items: 3, weight: 10 });
  for (const item of [1, 1, 1, 1, 5, 5, 50, 1]) void batcher.add(item);
  for (let n = 0; n < 8; n++) await turn();
  assert.deepEqual(batches(), [[1, 1, 1], [1, 5], [5], [50], [1]]);
});

test('an item that fails does not fail the others', async () => {
  const { gatherer: batcher, sent, turn } = batcherUnderTest();
  const results = Promise.allSettled([batcher.add(1), batcher.add(2)]);
  await turn();
  const refusal = new Error('no');
  sent[0]?.arrive([new ItemFailure(refusal), 2]);
  assert.deepEqual(await results, [
    { status: 'rejected', reason: refusal },
    { status: 'fulfilled', value: 2 },
  ]);
});

test('a batch that fails fails all of its items, and no other', async () => {
  const { gatherer: batcher, sent, turn } = batcherUnderTest({ items: 2 });
  const results = Promise.allSettled([batcher.add(1), batcher.add(2), batcher.add(3)]);
  await turn();
  const failure = new Error('no database');
  sent[0]?.sink(failure);
  await turn();
  sent[1]?.arrive();
  assert.deepEqual(
    (await results).map((result) => (result.status === 'fulfilled' ? result.value : result.reason)),
    [failure, failure, 3],
  );
});

test('draining waits for running and waiting items', async () => {
  const { gatherer: batcher, sent, turn } = batcherUnderTest();
  await batcher.drain();
  void batcher.add(1);
  await turn();
  void batcher.add(2);
  let drained = false;
  const draining = batcher.drain().then(() => {
    drained = true;
  });
  sent[0]?.arrive();
  await turn();
  assert.equal(drained, false);
  sent[1]?.arrive();
  await draining;
});
