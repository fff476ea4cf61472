import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedQueue } from './keyed-queue.ts';

test('work under one key runs in order, also after a failure, and other keys do not wait', async () => {
  const queue = new KeyedQueue();
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const work =
    (name: string, until: Promise<void> = Promise.resolve()) =>
    async () => {
      log.push(`${name} begins`);
      await until;
      log.push(`${name} ends`);
      return name;
    };
  const first = queue.run('a', async () => {
    await work('one', gate.promise)();
    throw new Error('one failed');
  });
  const second = queue.run('a', work('two'));
  const other = queue.run('b', work('three'));
  assert.deepEqual(log, ['one begins', 'three begins']);
  assert.equal(await other, 'three');
  gate.resolve();
  await assert.rejects(first, /one failed/);
  assert.equal(await second, 'two');
  assert.deepEqual(log, ['one begins', 'three begins', 'three ends', 'one ends', 'two begins', 'two ends']);
  await queue.idle();
});
