import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Entry, Lanes } from './lanes.ts';

let made = 0;
const entry = (userId: string, lane: string, notBefore = 0): Entry => ({
  id: String(++made).padStart(6, '0'),
  userId,
  lane,
  notBefore,
});
const ids = (entries: readonly Entry[]) => entries.map(({ id }) => id);

test('a conversation has one turn at a time, in order, also when the first one waits', () => {
  const lanes = new Lanes(4);
  const [one, two, other] = [entry('alice', 'a'), entry('alice', 'a'), entry('alice', 'b')];
  for (const each of [one, two, other]) lanes.add(each);
  assert.deepEqual(ids(lanes.take(0)), ids([one, other]));
  assert.deepEqual(lanes.take(0), []);
  lanes.putBack(one, 100);
  assert.deepEqual(lanes.take(99), []);
  assert.equal(lanes.nextAt(), 100);
  assert.deepEqual(ids(lanes.take(100)), ids([one]));
  lanes.release(one);
  assert.deepEqual(ids(lanes.take(100)), ids([two]));
  assert.equal(lanes.nextAt(), undefined);
});

test('a user has a limited number of concurrent turns, the oldest first, and delays no other user', () => {
  const lanes = new Lanes(2);
  const alices = ['a', 'b', 'c', 'd'].map((lane) => entry('alice', lane));
  const bob = entry('bob', 'a');
  for (const each of [...alices, bob]) lanes.add(each);
  assert.deepEqual(ids(lanes.take(0)), ids([alices[0]!, alices[1]!, bob]));
  // A conversation that continues after its first turn does not overtake older ones.
  lanes.add(entry('alice', 'a'));
  lanes.release(alices[0]!);
  assert.deepEqual(ids(lanes.take(0)), ids([alices[2]!]));
  assert.equal(lanes.waitingOf('alice'), 2);
  assert.equal(lanes.waiting({ userId: 'alice', lane: 'd' }), 1);
});

test('a running turn blocks its conversation, and no entry remains at the end', () => {
  const lanes = new Lanes(1);
  const [one, two] = [entry('alice', 'a'), entry('alice', 'a')];
  lanes.occupy(one);
  lanes.add(two);
  assert.deepEqual(lanes.take(0), []);
  lanes.release(one);
  assert.deepEqual(ids(lanes.take(0)), ids([two]));
  lanes.release(two);
  assert.equal(lanes.waitingOf('alice'), 0);
  assert.equal(lanes.nextAt(), undefined);
});
