import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type QueuedTurn, TurnQueues } from './target-queues.ts';

let made = 0;
const entry = (userId: string, conversation: string, notBefore = 0): QueuedTurn => ({
  id: String(++made).padStart(6, '0'),
  userId,
  queue: conversation,
  notBefore,
});
const ids = (entries: readonly QueuedTurn[]) => entries.map(({ id }) => id);

test('a conversation has one turn at a time, in order, also when the first one waits', () => {
  const queues = new TurnQueues(4);
  const [one, two, other] = [entry('alice', 'a'), entry('alice', 'a'), entry('alice', 'b')];
  for (const each of [one, two, other]) queues.add(each);
  assert.deepEqual(ids(queues.take(0)), ids([one, other]));
  assert.deepEqual(queues.take(0), []);
  queues.putBack(one, 100);
  assert.deepEqual(queues.take(99), []);
  assert.equal(queues.nextAt(), 100);
  assert.deepEqual(ids(queues.take(100)), ids([one]));
  queues.release(one);
  assert.deepEqual(ids(queues.take(100)), ids([two]));
  assert.equal(queues.nextAt(), undefined);
});

test('a user has a limited number of concurrent turns, the oldest first, and delays no other user', () => {
  const queues = new TurnQueues(2);
  const turnsOfAlice = ['a', 'b', 'c', 'd'].map((conversation) => entry('alice', conversation));
  const bob = entry('bob', 'a');
  for (const each of [...turnsOfAlice, bob]) queues.add(each);
  assert.deepEqual(ids(queues.take(0)), ids([turnsOfAlice[0]!, turnsOfAlice[1]!, bob]));
  // A conversation that continues after its first turn does not overtake older ones.
  queues.add(entry('alice', 'a'));
  queues.release(turnsOfAlice[0]!);
  assert.deepEqual(ids(queues.take(0)), ids([turnsOfAlice[2]!]));
  assert.equal(queues.waitingOf('alice'), 2);
  assert.equal(queues.waiting({ userId: 'alice', queue: 'd' }), 1);
});

test('a running turn blocks its conversation, and no entry remains at the end', () => {
  const queues = new TurnQueues(1);
  const [one, two] = [entry('alice', 'a'), entry('alice', 'a')];
  queues.occupy(one);
  queues.add(two);
  assert.deepEqual(queues.take(0), []);
  queues.release(one);
  assert.deepEqual(ids(queues.take(0)), ids([two]));
  queues.release(two);
  assert.equal(queues.waitingOf('alice'), 0);
  assert.equal(queues.nextAt(), undefined);
});
