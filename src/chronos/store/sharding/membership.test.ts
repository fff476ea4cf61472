import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { ReplicaMembership, rendezvous } from './membership.ts';

const BUCKETS = 64;

test('each bucket has one preferred replica, evenly distributed, and only the buckets of a removed replica move', () => {
  const three = rendezvous(['a', 'b', 'c'], BUCKETS);
  const shares = Map.groupBy(three, (member) => member);
  for (const member of ['a', 'b', 'c']) assert.ok(shares.get(member)!.length >= 10, `${member} is left out`);
  const two = rendezvous(['c', 'a'], BUCKETS);
  three.forEach((member, bucket) => {
    if (member !== 'b') assert.equal(two[bucket], member);
  });
});

/** Replicas that notify each other, and may be cut off. */
function makeReplicas(clock: ManualClock, names: readonly string[]) {
  const cut = new Set<string>();
  const replicas = new Map<string, ReplicaMembership>();
  for (const self of names) {
    const notify = (word: string) => {
      for (const [name, members] of replicas)
        if (name !== self && !cut.has(self) && !cut.has(name)) members.receive(self, word);
    };
    replicas.set(self, new ReplicaMembership({ self, buckets: BUCKETS, clock, notify: notify }));
  }
  const of = (name: string) =>
    Array.from({ length: BUCKETS }, (_, n) => n).filter((n) => replicas.get(name)!.prefers(n));
  const run = async (ms: number, claiming: readonly string[]) => {
    for (let passed = 0; passed < ms; passed += 500) {
      for (const name of claiming) replicas.get(name)!.recordClaim();
      await clock.advance(500);
    }
  };
  return { cut, replicas, of, run };
}

test('a single replica prefers all; two share; frozen, cut off or stopped ones are removed after some seconds', async () => {
  const clock = new ManualClock();
  const { cut, replicas, of, run } = makeReplicas(clock, ['a', 'b']);
  await run(1500, ['a']);
  assert.equal(of('a').length, BUCKETS);
  await run(1500, ['a', 'b']);
  assert.deepEqual(
    [...of('a'), ...of('b')].sort((one, other) => one - other),
    [...Array(BUCKETS).keys()],
  );
  assert.ok(of('a').length > 0 && of('b').length > 0);

  // It lives but no longer claims. It stops its heartbeat after 5 s, and the others remove it after 3.5 s more.
  await run(10_000, ['a']);
  assert.equal(of('a').length, BUCKETS);
  await run(1500, ['a', 'b']);
  assert.ok(of('a').length < BUCKETS);
  cut.add('b');
  await run(5_000, ['a', 'b']);
  assert.deepEqual([of('a').length, of('b').length], [BUCKETS, BUCKETS]);
  cut.clear();
  await run(1500, ['a', 'b']);
  assert.ok(of('a').length < BUCKETS);
  replicas.get('b')!.stop();
  assert.equal(of('a').length, BUCKETS);
  replicas.get('a')!.receive('z', 'nonsense');
  assert.equal(of('a').length, BUCKETS);
  replicas.get('a')!.stop();
});
