import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { rendezvous, Team } from './team.ts';

const BUCKETS = 64;

test('each bucket is preferred by one, about as many by each, and only those of who goes change hands', () => {
  const three = rendezvous(['a', 'b', 'c'], BUCKETS);
  const shares = Map.groupBy(three, (member) => member);
  for (const member of ['a', 'b', 'c']) assert.ok(shares.get(member)!.length >= 10, `${member} is left out`);
  const two = rendezvous(['c', 'a'], BUCKETS);
  three.forEach((member, bucket) => {
    if (member !== 'b') assert.equal(two[bucket], member);
  });
});

/** Replicas that hear each other, and may be cut off. */
function makeTeam(clock: ManualClock, names: readonly string[]) {
  const cut = new Set<string>();
  const teams = new Map<string, Team>();
  for (const self of names) {
    const tell = (word: string) => {
      for (const [name, team] of teams) if (name !== self && !cut.has(self) && !cut.has(name)) team.hear(self, word);
    };
    teams.set(self, new Team({ self, buckets: BUCKETS, clock, tell }));
  }
  const of = (name: string) => Array.from({ length: BUCKETS }, (_, n) => n).filter((n) => teams.get(name)!.prefers(n));
  const run = async (ms: number, looking: readonly string[]) => {
    for (let passed = 0; passed < ms; passed += 500) {
      for (const name of looking) teams.get(name)!.looks();
      await clock.advance(500);
    }
  };
  return { cut, teams, of, run };
}

test('one alone prefers all; two share; who is frozen, cut off or gone is done without after some seconds', async () => {
  const clock = new ManualClock();
  const { cut, teams, of, run } = makeTeam(clock, ['a', 'b']);
  await run(1500, ['a']);
  assert.equal(of('a').length, BUCKETS);
  await run(1500, ['a', 'b']);
  assert.deepEqual(
    [...of('a'), ...of('b')].sort((one, other) => one - other),
    [...Array(BUCKETS).keys()],
  );
  assert.ok(of('a').length > 0 && of('b').length > 0);

  // It lives, and does not look for anything any more: its own turn is over after 5 s, the others' memory of it after 3.5.
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
  teams.get('b')!.stop();
  assert.equal(of('a').length, BUCKETS);
  teams.get('a')!.hear('z', 'nonsense');
  assert.equal(of('a').length, BUCKETS);
  teams.get('a')!.stop();
});
