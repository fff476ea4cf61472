import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapInOrder } from './verify-receipt.ts';

test('results come in the order of the items, and at most `width` items are in progress', async () => {
  const begun: (() => void)[] = [];
  const results = mapInOrder(
    [0, 1, 2, 3],
    2,
    (item) => new Promise<number>((resolve) => begun.push(() => resolve(item * 10))),
  );
  const first = results.next();
  assert.equal(begun.length, 2);
  begun[1]!();
  begun[0]!();
  assert.deepEqual(await first, { value: 0, done: false });
  const rest = Array.fromAsync(results);
  assert.equal(begun.length, 3);
  begun[2]!();
  while (begun.length < 4) await new Promise(setImmediate);
  begun[3]!();
  assert.deepEqual(await rest, [10, 20, 30]);
});

test('an error is thrown at the turn of its item, after all started work has ended', async () => {
  let underWay = 0;
  const results = mapInOrder([0, 1, 2, 3], 4, async (item) => {
    underWay++;
    await new Promise(setImmediate);
    if (item === 3) await new Promise(setImmediate);
    underWay--;
    if (item === 1) throw new Error('no');
    return item;
  });
  const seen: number[] = [];
  await assert.rejects(async () => {
    for await (const done of results) seen.push(done);
  }, /no/);
  assert.deepEqual([seen, underWay], [[0], 0]);
});
