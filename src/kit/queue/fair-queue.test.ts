import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from './fair-queue.ts';

const PLACES = { inAll: 4, ofHost: 2, ofUser: 3 };
const entry = (host: string, userId: string, n = 0) => ({ host, userId, n });
const take = (queue: FairQueue<ReturnType<typeof entry>>) => {
  const taken = [];
  for (let next = queue.next(); next; next = queue.next()) taken.push(next);
  return taken;
};
const names = (entries: readonly ReturnType<typeof entry>[]) =>
  entries.map(({ host, userId, n }) => `${host}${userId}${n}`);

test('hosts take turns, and the users of a host take turns, within the places of all, host and user', () => {
  const queue = new FairQueue<ReturnType<typeof entry>>(PLACES);
  for (let n = 0; n < 10; n++) queue.add(entry('x', 'a', n));
  queue.add(entry('x', 'b'));
  queue.add(entry('y', 'c'));
  queue.add(entry('z', 'a'));
  const first = take(queue);
  assert.deepEqual(names(first), ['xa0', 'yc0', 'za0', 'xb0']);
  queue.done(first[1]!);
  assert.deepEqual(names(take(queue)), [], 'the host x is full');
  queue.done(first[3]!);
  assert.deepEqual(names(take(queue)), ['xa1']);
  queue.done(first[0]!);
  queue.add(entry('y', 'a', 1));
  queue.add(entry('y', 'b', 1));
  assert.deepEqual(names(take(queue)), ['xa2', 'yb1'], 'the user a has three places');
});

test('an entry waits once, and one that is removed is not taken', () => {
  const queue = new FairQueue<ReturnType<typeof entry>>(PLACES);
  const [one, other] = [entry('x', 'a', 1), entry('x', 'a', 2)];
  for (let n = 0; n < 3; n++) queue.add(one);
  queue.add(other);
  queue.remove(one);
  queue.remove(one);
  assert.deepEqual(names(take(queue)), ['xa2']);
  queue.done(other);
  queue.add(one);
  assert.deepEqual(names(take(queue)), ['xa1']);
});

test('a user with a hundred thousand entries delays another user by one turn', () => {
  const queue = new FairQueue<ReturnType<typeof entry>>({ inAll: 1, ofHost: 1, ofUser: 1 });
  for (let n = 0; n < 100_000; n++) queue.add(entry(`h${n % 50}`, 'a', n));
  queue.add(entry('h0', 'b'));
  const taken: string[] = [];
  while (!taken.includes('b')) {
    const next = queue.next()!;
    taken.push(next.userId);
    queue.done(next);
  }
  assert.ok(taken.length <= 52, `${taken.length}`);
});
