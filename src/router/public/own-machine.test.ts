import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { fixtureMachine, startBench } from '../testing/bench.ts';
import type { Users } from './users.ts';

test("the pages get a signal when a user's machine starts, sleeps or is changed, and none about other users", async (t) => {
  let users: Users | undefined;
  const router = await startBench(t, {
    pagesOf: (given) => {
      users = given;
      return async () => new Response('');
    },
  });
  await router.put('alice', fixtureMachine(temporaryFolder(t)));
  await router.put('bob', fixtureMachine(temporaryFolder(t)));
  const seen: string[] = [];
  const look = async () => {
    const { state, running } = await users!.machineOf('alice').show('alice');
    if (seen.at(-1) !== `${state} ${running}`) seen.push(`${state} ${running}`);
  };
  const stop = users!.onMachine('alice', () => void look());
  let aboutBob = 0;
  users!.onMachine('bob', () => aboutBob++);
  assert.equal((await router.wake('alice')).status, 202);
  await router.admin('POST', '/alice/suspend');
  await eventually('it is suspended and stopped', () => seen.at(-1) === 'suspended asleep');
  assert.deepEqual(seen, [
    ...['active starting', 'active ready', 'suspended ready', 'suspended stopping', 'suspended asleep'],
  ]);
  assert.equal(aboutBob, 0);
  stop();
  await router.admin('POST', '/alice/restore');
  await router.put('bob', fixtureMachine(temporaryFolder(t), 'other'));
  assert.equal(seen.at(-1), 'suspended asleep');
  assert.equal(aboutBob, 1);
});
