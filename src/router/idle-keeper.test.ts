import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { eventsOf, fixtureMachine, isAlive, startBench } from './testing/bench.ts';
import { startPlainDaemon } from './testing/plain-daemon.ts';
import { ShiftingClock } from './testing/shifting-clock.ts';

const USER = 'alice';

/** A machine that was woken once and goes to sleep after a minute. */
async function awake(t: TestContext) {
  const clock = new ShiftingClock();
  const router = await startBench(t, { clock });
  const folder = temporaryFolder(t);
  await router.put(USER, fixtureMachine(folder, undefined, { idle_seconds: 60 }));
  assert.equal((await router.wake(USER)).status, 202);
  const healthChecks = () => eventsOf(folder, 'health').length;
  /** Advances the clock and waits for a health check of the daemon. */
  const advanceToHealthCheck = async (ms: number) => {
    const before = healthChecks();
    clock.advance(ms);
    await eventually('the health check of the daemon', () => healthChecks() > before);
  };
  return {
    clock,
    router,
    folder,
    advanceToLook: advanceToHealthCheck,
    running: async () => (await router.admin('GET', `/${USER}`)).json.data.running,
  };
}

describe('an idle machine', () => {
  test('is put to sleep after its idle time, and started again by the next wake', async (t) => {
    const { router, folder, advanceToLook: advanceToHealthCheck, running } = await awake(t);
    await advanceToHealthCheck(61_000);
    await eventually('it sleeps', async () => (await running()) === 'asleep');
    assert.ok(!isAlive(eventsOf(folder, 'start')[0]!.pid));
    const answer = await router.wake(USER);
    assert.equal(answer.status, 202);
    assert.ok(Number(answer.headers.get('x-reveille-machine-start-ms')) > 0);
    assert.equal(eventsOf(folder, 'start').length, 2);
  });

  test('stays awake while it is busy or has queued work', async (t) => {
    const { folder, advanceToLook: advanceToHealthCheck, running } = await awake(t);
    for (const state of ['busy', 'queued']) {
      writeFileSync(join(folder, state), '');
      await advanceToHealthCheck(61_000);
      await advanceToHealthCheck(6000);
      assert.equal(await running(), 'ready');
      rmSync(join(folder, state));
    }
    await advanceToHealthCheck(6000);
    await eventually('it sleeps', async () => (await running()) === 'asleep');
  });

  test('counts its idle time from the last wake', async (t) => {
    const { clock, router, folder, running } = await awake(t);
    for (let wakes = 0; wakes < 3; wakes++) {
      clock.advance(50_000);
      assert.equal((await router.wake(USER)).status, 202);
    }
    clock.advance(50_000);
    assert.equal(await running(), 'ready');
    assert.equal(eventsOf(folder, 'start').length, 1);
  });

  test('that is stopping when a wake arrives is started again after it; no wake is lost', async (t) => {
    const { clock, router, folder, running } = await awake(t);
    writeFileSync(join(folder, 'slow-end'), '');
    clock.advance(61_000);
    await eventually('it is asked to end', () => eventsOf(folder, 'term').length > 0);
    assert.equal(await running(), 'stopping');
    const answers = await Promise.all([router.wake(USER), router.wake(USER), router.wake(USER)]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [202, 202, 202],
    );
    assert.deepEqual(
      eventsOf(folder)
        .map(({ event }) => event)
        .filter((event) => event !== 'health'),
      ['start', 'listening', 'chat', 'term', 'end', 'start', 'listening', 'chat', 'chat', 'chat'],
    );
  });

  test('is not put to sleep when a wake arrives during its health check', async (t) => {
    const { clock, router, folder } = await awake(t);
    for (let round = 1; round <= 5; round++) {
      clock.advance(61_000);
      // The health check is under way. In either order, the wake is delivered and the machine is started once.
      assert.equal((await router.wake(USER)).status, 202);
    }
    assert.equal(eventsOf(folder, 'chat').length, 6);
    assert.equal(eventsOf(folder, 'second').length, 0);
  });

  test('without an idle time stays awake, and an always-on one gets no health checks', async (t) => {
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock });
    const folder = temporaryFolder(t);
    const daemon = await startPlainDaemon(t);
    await router.put('steady', fixtureMachine(folder));
    await router.put('always-on', { provider: 'http', spec: { url: daemon.url }, idle_seconds: 10 });
    await router.wake('steady');
    await router.wake('always-on');
    clock.advance(1_000_000);
    await router.wake('steady');
    await router.wake('always-on');
    assert.equal(eventsOf(folder, 'start').length, 1);
    assert.equal(eventsOf(folder, 'term').length, 0);
    assert.equal(daemon.healthChecks, 1);
  });
});
