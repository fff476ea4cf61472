import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { type FlyUnderTest, openFlyUnderTest } from './fly-under-test.ts';
import { advancing, healthOf, rejectionOf, start } from './under-test.ts';

async function open(t: TestContext, ...options: Parameters<typeof openFlyUnderTest>): Promise<FlyUnderTest> {
  const underTest = await openFlyUnderTest(...options);
  t.after(() => underTest.close());
  return underTest;
}

const failureOf = async (underTest: FlyUnderTest) =>
  (await rejectionOf(advancing(underTest, start(underTest)))).message;

describe('a Fly machine', () => {
  test('that is created, stopped, suspended or failed is started', async (t) => {
    for (const state of ['created', 'stopped', 'suspended', 'failed']) {
      const underTest = await open(t);
      await underTest.fly.set(state);
      assert.equal((await start(underTest)).cold, true, state);
      assert.deepEqual([underTest.fly.machine.state, underTest.fly.machine.starts], ['started', 1]);
    }
  });

  test('is reached at its private address', async (t) => {
    const underTest = await open(t);
    const { url } = await start(underTest);
    const { privateIp, daemon } = underTest.fly.machine;
    assert.equal(new URL(url).host, `${privateIp === '::1' ? '[::1]' : privateIp}:${daemon.port}`);
  });

  test('that is slow to start is waited for where Fly says that it has started', async (t) => {
    const underTest = await open(t);
    underTest.fly.machine.slow = true;
    const starting = start(underTest);
    await eventually('Fly is asked to tell', () => underTest.fly.count('wait') === 1);
    await underTest.fly.settle();
    assert.equal((await starting).cold, true);
    assert.deepEqual([underTest.fly.count('start'), underTest.fly.count('wait')], [1, 1]);
  });

  test('that takes longer than one wait is waited for again', async (t) => {
    const underTest = await open(t);
    underTest.fly.machine.slow = true;
    const starting = start(underTest);
    for (let waits = 1; waits <= 3; waits++) {
      await eventually('Fly is asked to tell', () => {
        underTest.clock.advance(100);
        return underTest.fly.count('wait') >= waits;
      });
      underTest.clock.advance(31_000);
    }
    await underTest.fly.settle();
    await advancing(underTest, starting);
    assert.equal(underTest.fly.count('start'), 1);
  });

  test('that changes by itself is looked at until it has, and then started', async (t) => {
    for (const state of ['creating', 'stopping', 'suspending', 'updating', 'replacing', 'a-state-of-next-year']) {
      const underTest = await open(t);
      await underTest.fly.set(state);
      const heard: string[] = [];
      const starting = start(underTest, heard);
      await eventually('it waits', () => heard.includes(`the Fly machine 148ed1234567 is ${state}`));
      assert.equal(underTest.fly.count('start'), 0, state);
      await underTest.fly.set('stopped');
      await advancing(underTest, starting);
      assert.equal(underTest.fly.machine.starts, 1);
    }
  });

  test('that does not start yet, as its image is being prepared or it is being replaced, is asked again', async (t) => {
    const underTest = await open(t);
    await underTest.fly.set('created');
    underTest.fly.machine.preparing = true;
    const heard: string[] = [];
    const starting = start(underTest, heard);
    await eventually('it is refused', () =>
      heard.some((words) => /412: failed_precondition: unable to start/.test(words)),
    );
    underTest.fly.machine.preparing = false;
    await advancing(underTest, starting);
    await underTest.provider.stop(underTest.machine);
    const error = 'failed_precondition: machine getting replaced, refusing to start';
    underTest.fly.next('start', { status: 412, body: { error } }, 6);
    await advancing(underTest, start(underTest));
    assert.equal(underTest.fly.machine.starts, 2);
  });

  test('that is gone for good is not waited for', async (t) => {
    const underTest = await open(t);
    for (const state of ['destroying', 'destroyed', 'launch_failed', 'replaced', 'migrated']) {
      await underTest.fly.set(state);
      assert.equal(await failureOf(underTest), `the Fly machine 148ed1234567 is ${state}`);
    }
    assert.equal(underTest.fly.count('start'), 0);
  });

  test('that dies at once fails its start with its exit code', async (t) => {
    const underTest = await open(t);
    underTest.fly.machine.diesAtOnce = { code: 78 };
    assert.equal(
      await failureOf(underTest),
      'the Fly machine 148ed1234567 is stopped; its program exited with code 78 before its daemon was ready',
    );
    assert.equal(underTest.fly.count('start'), 1);
  });

  test('without a private address cannot be reached', async (t) => {
    const underTest = await open(t);
    underTest.fly.machine.privateIp = null;
    assert.match(await failureOf(underTest), /is started, but has no private address$/);
    assert.equal(underTest.running(), 0);
  });
});

describe('putting a Fly machine to sleep', () => {
  test('suspends it, so that it goes on where it was', async (t) => {
    const underTest = await open(t);
    await start(underTest);
    await underTest.provider.stop(underTest.machine);
    assert.equal(underTest.fly.machine.state, 'suspended');
    assert.equal((await start(underTest)).cold, true);
    const { daemon } = underTest.fly.machine;
    assert.equal(daemon.boots, underTest.fly.bootsBefore + 1);
  });

  test('does not promise that: a resume that turns into a cold start is a start like any other', async (t) => {
    const underTest = await open(t);
    await start(underTest);
    await underTest.provider.stop(underTest.machine);
    underTest.fly.machine.snapshot = false;
    const { url } = await start(underTest);
    assert.equal(await healthOf(url), 200);
    assert.equal(underTest.fly.machine.daemon.boots, underTest.fly.bootsBefore + 2);
  });

  test('stops it where its specification says so, and where it cannot be suspended', async (t) => {
    const told = await open(t, { sleep: 'stop' });
    await start(told);
    await told.provider.stop(told.machine);
    assert.deepEqual([told.fly.machine.state, told.fly.count('suspend')], ['stopped', 0]);
    const large = await open(t);
    large.fly.machine.canSuspend = false;
    await start(large);
    await large.provider.stop(large.machine);
    assert.deepEqual([large.fly.machine.state, large.fly.count('suspend')], ['stopped', 1]);
    assert.match(large.logged(), /cannot be suspended; stopping it/);
  });

  test('waits until it sleeps', async (t) => {
    const underTest = await open(t);
    await start(underTest);
    underTest.fly.machine.slow = true;
    let done = false;
    const stopping = underTest.provider.stop(underTest.machine).finally(() => {
      done = true;
    });
    const looks = underTest.fly.count('get');
    await eventually('it looks again', () => {
      underTest.clock.advance(200);
      return underTest.fly.count('get') > looks + 2;
    });
    assert.equal(done, false);
    await underTest.fly.settle();
    await advancing(underTest, stopping);
    assert.equal(underTest.fly.count('suspend'), 1);
  });

  test('stops one that is only just starting', async (t) => {
    const underTest = await open(t);
    await underTest.fly.set('starting');
    await underTest.provider.stop(underTest.machine);
    assert.equal(underTest.fly.machine.state, 'stopped');
  });
});
