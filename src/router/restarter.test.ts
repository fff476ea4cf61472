import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { type Bench, eventsOf, fixtureMachine, isAlive, startBench } from './testing/bench.ts';
import { startPlainDaemon } from './testing/plain-daemon.ts';
import { startRouterProcess } from './testing/router-process.ts';
import { ShiftingClock } from './testing/shifting-clock.ts';

const USER = 'alice';

const startsOf = (folder: string) => eventsOf(folder, 'listening').length;
const runningOf = async (router: Bench) => (await router.admin('GET', `/${USER}`)).json.data.running;

/** The stored pending turns. */
function pendingOf(dataDir: string): unknown[] {
  const db = new DatabaseSync(join(dataDir, 'router.db'), { readOnly: true });
  const rows = db.prepare('SELECT user_id FROM owed_turns').all() as { user_id: string }[];
  db.close();
  return rows.map(({ user_id }) => user_id);
}

/** A machine that was woken once; `busy`: it executes the turn until the file of that name is deleted. */
async function woken(t: TestContext, { busy, more = {} }: { busy: boolean; more?: object }) {
  const clock = new ShiftingClock();
  const router = await startBench(t, { clock });
  const folder = temporaryFolder(t);
  if (busy) writeFileSync(join(folder, 'busy'), '');
  await router.put(USER, fixtureMachine(folder, undefined, more));
  assert.equal((await router.wake(USER)).status, 202);
  return { clock, router, folder };
}

/** Advances the clock while the machine sleeps, a second at a time, until it has been started this often. */
async function untilStarted(starts: number, { clock, router, folder }: Awaited<ReturnType<typeof woken>>) {
  await eventually(`start ${starts}`, async () => {
    if (startsOf(folder) >= starts) return true;
    if ((await runningOf(router)) === 'asleep') clock.advance(1000);
    return false;
  });
  assert.equal(startsOf(folder), starts);
}

describe('a machine in the middle of a turn is started again without another wake', () => {
  test('when its token is replaced', async (t) => {
    const setup = await woken(t, { busy: true });
    const { router, folder } = setup;
    await router.admin('POST', `/${USER}/rotate-token`);
    await eventually('the first is gone', () => eventsOf(folder, 'end').length === 1);
    await untilStarted(2, setup);
    await eventually('it is ready', async () => (await runningOf(router)) === 'ready');
    const [first, second] = eventsOf(folder, 'start');
    assert.notEqual(first?.env?.NEO_DAEMON_TOKEN, second?.env?.NEO_DAEMON_TOKEN);
    assert.equal(eventsOf(folder, 'chat').length, 1);
  });

  test('when its daemon is killed, repeatedly, with growing pauses', async (t) => {
    const setup = await woken(t, { busy: true });
    const { clock, router, folder } = setup;
    for (let starts = 2; starts <= 4; starts++) {
      process.kill(eventsOf(folder, 'start').at(-1)!.pid, 'SIGKILL');
      await eventually('it is noticed', async () => (await runningOf(router)) === 'asleep');
      const before = clock.monotonic();
      await untilStarted(starts, setup);
      assert.ok(clock.monotonic() - before >= 1000 * 2 ** (starts - 2));
      await eventually('it is ready', async () => (await runningOf(router)) === 'ready');
    }
    assert.equal(eventsOf(folder, 'second').length, 0);
  });

  test('when it was suspended, after its restore', async (t) => {
    const setup = await woken(t, { busy: true });
    const { clock, router, folder } = setup;
    await router.admin('POST', `/${USER}/suspend`);
    for (let second = 0; second < 20; second++) clock.advance(1000);
    assert.equal(await runningOf(router), 'asleep');
    assert.equal(startsOf(folder), 1);
    await router.admin('POST', `/${USER}/restore`);
    await untilStarted(2, setup);
  });

  test('when its start fails at first, until one succeeds', async (t) => {
    const setup = await woken(t, { busy: true });
    const { clock, router, folder } = setup;
    writeFileSync(join(folder, 'fail'), 'not now');
    process.kill(eventsOf(folder, 'start')[0]!.pid, 'SIGKILL');
    await eventually('three starts have failed', async () => {
      if ((await runningOf(router)) === 'asleep') clock.advance(1000);
      return eventsOf(folder, 'start').length >= 4;
    });
    rmSync(join(folder, 'fail'));
    await untilStarted(2, setup);
    await eventually('it is ready', async () => (await runningOf(router)) === 'ready');
  });

  test('when it sleeps until a turn is retried, and not before', async (t) => {
    const setup = await woken(t, { busy: false, more: { idle_seconds: 60 } });
    const { clock, router, folder } = setup;
    const due = clock.now() + 600_000;
    writeFileSync(join(folder, 'next'), new Date(due).toISOString());
    clock.advance(61_000);
    await eventually('it sleeps', async () => (await runningOf(router)) === 'asleep');
    assert.deepEqual(pendingOf(router.dataDir), [USER], 'the pending turn is on disk');
    while (clock.now() < due - 60_000) clock.advance(60_000);
    assert.equal(startsOf(folder), 1);
    rmSync(join(folder, 'next'));
    clock.advance(60_000);
    await untilStarted(2, setup);
    clock.advance(6000);
    await eventually('no turn is pending', () => pendingOf(router.dataDir).length === 0);
  });

  test('a turn that is retried soon keeps it awake', async (t) => {
    const { clock, router, folder } = await woken(t, { busy: false, more: { idle_seconds: 60 } });
    writeFileSync(join(folder, 'next'), new Date(clock.now() + 90_000).toISOString());
    clock.advance(61_000);
    await eventually('the health check', () => pendingOf(router.dataDir).length === 1);
    assert.equal(await runningOf(router), 'ready');
    rmSync(join(folder, 'next'));
    await eventually('it sleeps', async () => {
      clock.advance(6000);
      return (await runningOf(router)) === 'asleep';
    });
    assert.deepEqual(pendingOf(router.dataDir), []);
    assert.equal(startsOf(folder), 1);
  });

  test('when its router is stopped and started', async (t) => {
    const dataDir = temporaryFolder(t);
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'busy'), '');
    const first = await startRouterProcess(t, dataDir);
    await first.put(USER, fixtureMachine(folder));
    assert.equal((await first.wake(USER)).status, 202);
    assert.equal((await first.wake(USER)).status, 202);
    first.child.kill('SIGTERM');
    await eventually('the router has ended', () => first.child.exitCode === 0);
    assert.ok(!isAlive(eventsOf(folder, 'start')[0]!.pid));
    assert.deepEqual(pendingOf(dataDir), [USER]);
    const second = await startRouterProcess(t, dataDir);
    await eventually('it runs again', () => startsOf(folder) === 2);
    await eventually('it is ready', async () => (await second.admin('GET', `/${USER}`)).json.data.running === 'ready');
    rmSync(join(folder, 'busy'));
    second.child.kill('SIGTERM');
    await eventually('the router has ended', () => second.child.exitCode === 0);
    assert.deepEqual(pendingOf(dataDir), []);
  });
});

describe('a machine is not started again', () => {
  test('when it had become idle before its daemon was killed', async (t) => {
    const { clock, router, folder } = await woken(t, { busy: true });
    rmSync(join(folder, 'busy'));
    clock.advance(6000);
    await eventually('no turn is pending', () => pendingOf(router.dataDir).length === 0);
    process.kill(eventsOf(folder, 'start')[0]!.pid, 'SIGKILL');
    await eventually('it is noticed', async () => (await runningOf(router)) === 'asleep');
    for (let second = 0; second < 20; second++) clock.advance(1000);
    assert.equal(await runningOf(router), 'asleep');
    assert.equal(eventsOf(folder, 'start').length, 1);
  });

  test('when it is idle as its token is replaced, or is put to sleep', async (t) => {
    const { clock, router, folder } = await woken(t, { busy: false, more: { idle_seconds: 60 } });
    await router.admin('POST', `/${USER}/rotate-token`);
    await eventually('it sleeps', async () => (await runningOf(router)) === 'asleep');
    assert.deepEqual(pendingOf(router.dataDir), []);
    assert.equal((await router.wake(USER)).status, 202);
    assert.deepEqual(pendingOf(router.dataDir), [USER]);
    clock.advance(61_000);
    await eventually('it sleeps', async () => (await runningOf(router)) === 'asleep');
    for (let second = 0; second < 20; second++) clock.advance(1000);
    assert.equal(await runningOf(router), 'asleep');
    assert.equal(startsOf(folder), 2);
    assert.deepEqual(pendingOf(router.dataDir), []);
  });

  test('when it was deleted, or has become an always-on one', async (t) => {
    const daemon = await startPlainDaemon(t);
    const changes: ((router: Bench) => Promise<unknown>)[] = [
      (router) => router.admin('DELETE', `/${USER}`),
      (router) => router.put(USER, { provider: 'http', spec: { url: daemon.url } }),
    ];
    for (const change of changes) {
      const { clock, router, folder } = await woken(t, { busy: true });
      await change(router);
      await eventually('no turn is pending', () => {
        clock.advance(1000);
        return pendingOf(router.dataDir).length === 0;
      });
      assert.equal(startsOf(folder), 1);
    }
  });

  test('by a router that is closing', async (t) => {
    const { clock, router, folder } = await woken(t, { busy: true });
    process.kill(eventsOf(folder, 'start')[0]!.pid, 'SIGKILL');
    await eventually('it is noticed', async () => (await runningOf(router)) === 'asleep');
    const closed = router.close();
    for (let second = 0; second < 20; second++) clock.advance(1000);
    await closed;
    assert.equal(startsOf(folder), 1);
    assert.deepEqual(pendingOf(router.dataDir), [USER]);
  });
});

test('a wake and a pending restart are one start', async (t) => {
  const { clock, router, folder } = await woken(t, { busy: true });
  process.kill(eventsOf(folder, 'start')[0]!.pid, 'SIGKILL');
  await eventually('it is noticed', async () => (await runningOf(router)) === 'asleep');
  clock.advance(1000);
  clock.advance(1000);
  assert.equal((await router.wake(USER)).status, 202);
  assert.equal(eventsOf(folder, 'start').length, 2);
  assert.equal(eventsOf(folder, 'second').length, 0);
});
