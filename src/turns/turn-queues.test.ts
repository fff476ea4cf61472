import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type QueuedTurn, TurnQueues } from './turn-queues.ts';

let made = 0;
const entry = (group: string, conversation: string, notBefore = 0): QueuedTurn => ({
  id: String(++made).padStart(6, '0'),
  seq: made,
  group,
  conversation,
  notBefore,
  isParked: false,
});
const putBack = (queues: TurnQueues, one: QueuedTurn, change: Partial<QueuedTurn>) => {
  queues.leave(one);
  queues.add({ ...one, ...change });
};
const ids = (entries: readonly QueuedTurn[]) => entries.map(({ id }) => id);

test('a conversation has one turn at a time, in order, also when the first one waits', () => {
  const queues = new TurnQueues(4);
  const [one, two, other] = [entry('alice', 'a'), entry('alice', 'a'), entry('alice', 'b')];
  for (const each of [one, two, other]) queues.add(each);
  assert.deepEqual(ids(queues.take(0)), ids([one, other]));
  assert.deepEqual(queues.take(0), []);
  putBack(queues, one, { notBefore: 100 });
  assert.deepEqual(queues.take(99), []);
  assert.equal(queues.nextAt(), 100);
  assert.deepEqual(ids(queues.take(100)), ids([one]));
  queues.leave(one);
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
  queues.leave(turnsOfAlice[0]!);
  assert.deepEqual(ids(queues.take(0)), ids([turnsOfAlice[2]!]));
  assert.equal(queues.waitingOf('alice'), 2);
  assert.equal(queues.waiting({ group: 'alice', conversation: 'd' }), 1);
});

test('a running turn blocks its conversation, and no entry remains at the end', () => {
  const queues = new TurnQueues(1);
  const [one, two] = [entry('alice', 'a'), entry('alice', 'a')];
  queues.occupy(one);
  queues.add(two);
  assert.deepEqual(queues.take(0), []);
  queues.leave(one);
  assert.deepEqual(ids(queues.take(0)), ids([two]));
  queues.leave(two);
  assert.equal(queues.waitingOf('alice'), 0);
  assert.equal(queues.nextAt(), undefined);
});

test('later turns overtake a parked one, which has its old position when it is due', () => {
  const queues = new TurnQueues(1);
  const [one, two, three] = [entry('', 'a'), entry('', 'a'), entry('', 'a')];
  for (const each of [one, two]) queues.add(each);
  assert.deepEqual(ids(queues.take(0)), ids([one]));
  putBack(queues, one, { notBefore: 100, isParked: true });
  assert.deepEqual([queues.nextParkedAt(), queues.waitingOf('')], [100, 1]);
  assert.deepEqual(ids(queues.take(0)), ids([two]));
  queues.add(three);
  queues.leave(two);
  assert.deepEqual(ids(queues.take(100)), ids([one]));
  queues.leave(one);
  assert.equal(queues.remove(three.id)?.id, three.id);
  assert.deepEqual([queues.take(100), queues.nextAt(), queues.waitingOf('')], [[], undefined, 0]);
});

test('conversations take turns', () => {
  const queues = new TurnQueues(1);
  const [one, two, other] = [entry('', 'a'), entry('', 'a'), entry('', 'b')];
  for (const each of [one, two, other]) queues.add(each);
  assert.deepEqual(ids(queues.take(0)), ids([one]));
  queues.leave(one);
  assert.deepEqual(ids(queues.take(0)), ids([other]));
});
