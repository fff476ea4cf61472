import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { startBench } from '../../../src/router/testing/bench.ts';
import { startRouterProcess } from '../../../src/router/testing/router-process.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeDocker } from '../../support/stand-ins/fake-docker.ts';
import { startFakeFly } from '../../support/stand-ins/fake-fly.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { keepingLog } from './provider-under-test.ts';

const USER = 'alice';
const FLY_TOKEN = 'FlyV1 fm2_canaryOfTheRouter00000';
const APP = 'agents';
const MACHINE_ID = '148ed1234567';

/** An engine with one container, the settings of a router that finds it, and its machine. */
async function dockerSetup(t: TestContext) {
  const path = join(temporaryFolder(t), 'docker.sock');
  const engine = await startFakeDocker({ listen: { path }, containers: ['neo'], port: 8080 });
  atEnd(t, () => engine.close());
  const machine = { provider: 'docker', spec: { container: 'neo', port: 8080 } };
  return { engine, container: engine.container('neo'), settings: { DOCKER_HOST: `unix://${path}` }, machine };
}

async function flySetup(t: TestContext, clock = new ShiftingClock()) {
  const fly = await startFakeFly({ clock, app: APP, machineId: MACHINE_ID, token: FLY_TOKEN });
  atEnd(t, () => fly.close());
  const settings = { FLY_API_TOKEN: FLY_TOKEN, FLY_API_BASE_URL: fly.url };
  const machine = { provider: 'fly', spec: { app: APP, machine_id: MACHINE_ID, port: fly.machine.daemon.port } };
  return { fly, settings, machine, clock };
}

describe('a thousand simultaneous wakes for one sleeping machine', () => {
  test('start a container once', async (t) => {
    const { container, settings, machine } = await dockerSetup(t);
    const router = await startBench(t, { settings });
    await router.put(USER, machine);
    const answers = await Promise.all(Array.from({ length: 1000 }, () => router.wakeTaken(USER)));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202]);
    assert.deepEqual([container.starts, new Set(container.daemon.chats).size], [1, 1000]);
  });

  test('start a Fly machine once, within its rate limits', async (t) => {
    const { fly, settings, machine } = await flySetup(t);
    fly.machine.slow = true;
    const router = await startBench(t, { settings });
    await router.put(USER, machine);
    const wakes = Array.from({ length: 1000 }, () => router.wakeTaken(USER));
    await eventually('it starts', () => fly.count('wait') > 0);
    await fly.settle();
    const answers = await Promise.all(wakes);
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202]);
    assert.deepEqual([fly.machine.starts, fly.count('start'), fly.limited], [1, 1, 0]);
    assert.equal(new Set(fly.machine.daemon.chats).size, 1000);
  });
});

describe('a wake', () => {
  test('for a machine that is not ready in time reports the pending state, in the text of its provider', async (t) => {
    const { fly, settings, machine } = await flySetup(t);
    await fly.set('replacing');
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock, settings: { ...settings, ROUTER_WAKE_TIMEOUT_MS: '1000' } });
    await router.put(USER, machine);
    const first = router.wake(USER);
    await eventually('it looks', () => fly.count('get') > 1);
    clock.advance(1000);
    const answer = await first;
    assert.deepEqual(
      [answer.status, answer.json.error.message],
      [503, `the machine was not ready within 1000 ms: the Fly machine ${MACHINE_ID} is replacing`],
    );
    const second = router.wake(USER);
    const queries = fly.count('get');
    await eventually('it looks', () => fly.count('get') > queries);
    clock.advance(999);
    await eventually('it looks again', () => fly.count('get') > queries + 1);
    clock.advance(3000);
    const { status, json } = await second;
    assert.ok([503, 504].includes(status), String(status));
    assert.match(json.error.message, /: the Fly machine 148ed1234567 is replacing$/);
  });

  test('unpauses a container that another client paused since the last wake', async (t) => {
    const { engine, container, settings, machine } = await dockerSetup(t);
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock, settings });
    await router.put(USER, machine);
    assert.equal((await router.wake(USER)).status, 202);
    await engine.set('neo', 'paused');
    clock.advance(5000);
    assert.equal((await router.wake(USER)).status, 202);
    assert.deepEqual([container.status, container.starts, engine.count('unpause')], ['running', 1, 1]);
  });

  test('starts a container that another client stopped since the last wake', async (t) => {
    const { engine, container, settings, machine } = await dockerSetup(t);
    const router = await startBench(t, { settings });
    await router.put(USER, machine);
    assert.equal((await router.wake(USER)).status, 202);
    await engine.set('neo', 'exited');
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(container.starts, 2);
  });
});

describe('a machine on another host', () => {
  test('is put to sleep, suspended or deleted when it is idle', async (t) => {
    const { container, settings, machine } = await dockerSetup(t);
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock, settings });
    await router.put(USER, { ...machine, idle_seconds: 60 });
    await router.wake(USER);
    clock.advance(61_000);
    await eventually('it sleeps', () => container.status === 'exited');
    await router.wake(USER);
    await router.admin('POST', `/${USER}/suspend`);
    assert.equal(container.status, 'exited');
    await router.admin('POST', `/${USER}/restore`);
    await router.wake(USER);
    await router.admin('DELETE', `/${USER}`);
    assert.deepEqual([container.status, container.starts], ['exited', 3]);
  });

  test('continues when the router closes, and the next router puts it to sleep in time', async (t) => {
    const { container, settings, machine } = await dockerSetup(t);
    const dataDir = temporaryFolder(t);
    const first = await startBench(t, { settings: { ...settings, ROUTER_DATA_DIR: dataDir } });
    await first.put(USER, { ...machine, idle_seconds: 60 });
    await first.wake(USER);
    await first.close();
    assert.equal(container.status, 'running');
    const clock = new ShiftingClock();
    const next = await startBench(t, { clock, settings: { ...settings, ROUTER_DATA_DIR: dataDir } });
    await eventually(
      'the next router has adopted it',
      async () => (await next.admin('GET', `/${USER}`)).json.data.running === 'ready',
    );
    clock.advance(61_000);
    await eventually('it sleeps', () => container.status === 'exited');
    assert.equal(container.starts, 1);
  });

  test('is started again without another wake when it ended before it was idle', async (t) => {
    const { engine, container, settings, machine } = await dockerSetup(t);
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock, settings });
    await router.put(USER, machine);
    assert.equal((await router.wake(USER)).status, 202);
    await engine.set('neo', 'exited');
    const running = async () => (await router.admin('GET', `/${USER}`)).json.data.running;
    clock.advance(6000);
    await eventually('it is noticed', async () => (await running()) === 'asleep');
    await eventually('it runs again', async () => {
      if ((await running()) === 'asleep') clock.advance(1000);
      return container.status === 'running';
    });
    assert.deepEqual([container.starts, container.daemon.chats.length], [2, 1]);
  });

  test('is put to sleep by the next router when it moved to another provider while no router ran', async (t) => {
    const { container, settings, machine } = await dockerSetup(t);
    const { machine: other } = await flySetup(t);
    const dataDir = temporaryFolder(t);
    const first = await startRouterProcess(t, dataDir, settings);
    await first.put(USER, machine);
    await first.wake(USER);
    await first.kill();
    const db = new DatabaseSync(join(dataDir, 'router.db'));
    db.prepare(`UPDATE machines SET provider = 'fly', spec = ? WHERE user_id = ?`).run(
      JSON.stringify(other.spec),
      USER,
    );
    db.close();
    await startBench(t, { settings: { ...settings, ROUTER_DATA_DIR: dataDir } });
    await eventually('it sleeps', () => container.status === 'exited');
  });

  test('is started once although the router is killed at any stage of a wake', async (t) => {
    const { engine, container, settings, machine } = await dockerSetup(t);
    const dataDir = temporaryFolder(t);
    for (const stage of ['inspect', 'start', 'healthy'] as const) {
      await engine.set('neo', 'exited');
      const before = container.starts;
      const router = await startRouterProcess(t, dataDir, settings);
      await router.put(USER, machine);
      container.daemon.healthStatus = stage === 'healthy' ? 500 : 200;
      const release = stage === 'healthy' ? () => {} : engine.hold(stage);
      const requests = engine.count(stage);
      const wake = router.wake(USER).catch(() => undefined);
      await eventually('the wake has arrived', () =>
        stage === 'healthy' ? container.status === 'running' : engine.count(stage) > requests,
      );
      await router.kill();
      await wake;
      container.daemon.healthStatus = 200;
      release();
      const next = await startRouterProcess(t, dataDir, settings);
      assert.equal((await next.wake(USER)).status, 202, stage);
      assert.equal(container.starts, before + 1, stage);
      await next.kill();
    }
  });
});

test('neither the token for the Fly API nor a nonce is ever logged or shown', async (t) => {
  const { fly, settings, machine } = await flySetup(t);
  const { log, logged } = keepingLog();
  const clock = new ShiftingClock();
  const router = await startBench(t, { clock, log, settings });
  const nonce = 'canary-nonce-of-a-lease';
  const seen: string[] = [];
  seen.push((await router.put(USER, { ...machine, spec: { ...machine.spec, lease_nonce: nonce } })).text);
  fly.next('get', { status: 401, body: { error: `bad token ${FLY_TOKEN} and ${nonce}` } });
  seen.push((await router.wake(USER)).text);
  fly.next('start', { status: 422, body: `you sent: Bearer ${FLY_TOKEN.slice(6)} ${nonce}` });
  seen.push((await router.wake(USER)).text);
  seen.push((await router.wake(USER)).text);
  seen.push((await router.admin('GET', `/${USER}`)).text);
  seen.push(
    (await router.admin('PUT', `/${USER}`, { ...machine, spec: { ...machine.spec, lease_nonce: '[redacted]' } })).text,
  );
  seen.push(
    (await router.admin('PUT', `/${USER}`, { ...machine, spec: { ...machine.spec, lease_nonce: `${nonce} ` } })).text,
  );
  seen.push((await router.admin('POST', `/${USER}/suspend`)).text);
  await router.close();
  const everything = seen.join('\n') + logged();
  assert.match(everything, /\[redacted\]/);
  assert.match(everything, /spec\.lease_nonce must be the value itself/);
  for (const canary of [FLY_TOKEN, FLY_TOKEN.slice(6), nonce]) assert.ok(!everything.includes(canary), canary);
});
