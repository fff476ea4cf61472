import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { atEnd, temporaryFolder } from '../../test/support/temporary.ts';
import {
  ADMIN_TOKEN,
  DAEMON_FIXTURE,
  eventsOf,
  fixtureMachine,
  isAlive,
  startBench,
  WAKE_TOKEN,
} from './testing/bench.ts';
import { startRouterProcess } from './testing/router-process.ts';
import { ShiftingClock } from './testing/shifting-clock.ts';

const USER = 'alice';
/** Changes the registry of a stopped router. */
function edit(dataDir: string, sql: string, ...values: (string | number | null)[]): void {
  const db = new DatabaseSync(join(dataDir, 'router.db'));
  db.prepare(sql).run(...values);
  db.close();
}

/** A router that was killed while its machine ran: data folder, machine folder and machine pid. */
async function orphaned(t: TestContext, machine = (folder: string): object => fixtureMachine(folder)) {
  const dataDir = temporaryFolder(t);
  const folder = temporaryFolder(t);
  const router = await startRouterProcess(t, dataDir);
  await router.put(USER, machine(folder));
  assert.equal((await router.wake(USER)).status, 202);
  await router.kill();
  const pid = eventsOf(folder, 'start')[0]!.pid;
  atEnd(t, () => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  assert.ok(isAlive(pid), 'the machine outlives the router');
  return { dataDir, folder, pid };
}

describe('a router that starts after a killed one', () => {
  test('adopts the machine that still runs, and stops it on its own shutdown', async (t) => {
    const { dataDir, folder, pid } = await orphaned(t);
    const router = await startRouterProcess(t, dataDir);
    const answer = await router.wake(USER);
    assert.equal(answer.status, 202, answer.text);
    assert.equal(answer.headers.get('x-reveille-machine-start-ms'), '0');
    assert.deepEqual(
      eventsOf(folder, 'start').map((start) => start.pid),
      [pid],
    );
    router.child.kill('SIGTERM');
    await eventually('the machine is gone', () => !isAlive(pid));
    assert.equal(eventsOf(folder, 'end').length, 1);
  });

  test('adopts the machines of a router that was stopped with ROUTER_KEEP_MACHINES', async (t) => {
    const dataDir = temporaryFolder(t);
    const folder = temporaryFolder(t);
    const first = await startRouterProcess(t, dataDir, { ROUTER_KEEP_MACHINES: '1' });
    await first.put(USER, fixtureMachine(folder));
    assert.equal((await first.wake(USER)).status, 202);
    const ended = new Promise((resolve) => first.child.once('exit', resolve));
    first.child.kill('SIGTERM');
    assert.equal(await ended, 0);
    const pid = eventsOf(folder, 'start')[0]!.pid;
    assert.ok(isAlive(pid), 'the machine runs on');
    const second = await startRouterProcess(t, dataDir);
    assert.equal((await second.wake(USER)).headers.get('x-reveille-machine-start-ms'), '0');
    second.child.kill('SIGTERM');
    await eventually('the machine is gone', () => !isAlive(pid));
    assert.equal(eventsOf(folder, 'start').length, 1);
  });

  test('notices when an adopted machine ends', async (t) => {
    const { dataDir, folder, pid } = await orphaned(t);
    const router = await startBench(t, { settings: { ROUTER_DATA_DIR: dataDir } });
    assert.equal((await router.wake(USER)).status, 202);
    process.kill(pid, 'SIGKILL');
    await eventually(
      'it is noticed',
      async () => (await router.admin('GET', `/${USER}`)).json.data.running === 'asleep',
    );
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(eventsOf(folder, 'start').length, 2);
    assert.equal(eventsOf(folder, 'second').length, 0);
  });

  test('finds the machine when the router was killed before it stored the pid', async (t) => {
    const { dataDir, folder, pid } = await orphaned(t);
    edit(dataDir, 'UPDATE processes SET pid = NULL, birth = NULL');
    const router = await startBench(t, { settings: { ROUTER_DATA_DIR: dataDir } });
    assert.equal((await router.wake(USER)).status, 202);
    assert.deepEqual(
      eventsOf(folder, 'start').map((start) => start.pid),
      [pid],
    );
  });

  test('does not touch an unrelated process that has the pid of an ended machine', async (t) => {
    const { dataDir, folder, pid } = await orphaned(t);
    process.kill(pid, 'SIGKILL');
    await eventually('it is gone', () => !isAlive(pid));
    const unrelated = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
    atEnd(t, () => unrelated.kill('SIGKILL'));
    edit(dataDir, 'UPDATE processes SET pid = ?', unrelated.pid!);
    const router = await startBench(t, { settings: { ROUTER_DATA_DIR: dataDir } });
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(eventsOf(folder, 'start').length, 2);
    await router.close();
    assert.ok(isAlive(unrelated.pid!));
  });

  test('ends a machine that was suspended, changed or moved to another provider meanwhile', async (t) => {
    const changes = [
      `UPDATE machines SET state = 'suspended'`,
      `UPDATE machines SET token = 'a-token-that-it-does-not-know'`,
      `UPDATE machines SET provider = 'http', spec = '{"url":"http://127.0.0.1:9"}'`,
    ];
    for (const change of changes) {
      const { dataDir, pid } = await orphaned(t);
      edit(dataDir, change);
      const router = await startBench(t, { settings: { ROUTER_DATA_DIR: dataDir } });
      await eventually('it is ended', () => !isAlive(pid));
      await router.close();
    }
  });

  test('ends a machine that does not answer any more, and starts it again', async (t) => {
    const { dataDir, folder, pid } = await orphaned(t);
    process.kill(pid, 'SIGSTOP');
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock, settings: { ROUTER_DATA_DIR: dataDir } });
    assert.equal((await router.admin('GET', `/${USER}`)).json.data.running, 'starting');
    clock.advance(11_000);
    const answer = await router.wake(USER);
    assert.equal(answer.status, 202, answer.text);
    assert.ok(!isAlive(pid));
    assert.equal(eventsOf(folder, 'start').length, 2);
    assert.equal(eventsOf(folder, 'second').length, 0);
  });

  test('ends the remaining processes of a machine whose first process has ended', async (t) => {
    const { dataDir, folder, pid } = await orphaned(t, (at) => {
      const machine = fixtureMachine(at);
      const command = ['/bin/sh', '-c', '"$1" "$2" & wait', 'sh', process.execPath, DAEMON_FIXTURE];
      return { ...machine, spec: { ...machine.spec, command } };
    });
    const shell = Number(/\) . (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
    process.kill(shell, 'SIGKILL');
    await eventually('the shell is gone', () => !isAlive(shell));
    assert.ok(isAlive(pid));
    const router = await startBench(t, { settings: { ROUTER_DATA_DIR: dataDir } });
    assert.equal((await router.wake(USER)).status, 202);
    assert.ok(!isAlive(pid));
    assert.equal(eventsOf(folder, 'second').length, 0);
  });

  test('never has two daemons of one machine, whenever the earlier router was killed', async (t) => {
    const dataDir = temporaryFolder(t);
    const folder = temporaryFolder(t);
    for (let round = 0; round < 8; round++) {
      const router = await startRouterProcess(t, dataDir);
      if (round === 0) await router.put(USER, fixtureMachine(folder));
      const wake = router.wake(USER).catch(() => undefined);
      // The kill times range from right after the request to well after the delivery.
      const starts = eventsOf(folder, 'start').length;
      const events = eventsOf(folder).length;
      if (round % 4 === 1) await eventually('something happens', () => eventsOf(folder).length > events);
      if (round % 4 === 2) await wake;
      await router.kill();
      await wake;
      assert.ok(eventsOf(folder, 'start').length - starts <= 1);
      // In every second round the next router finds no running process.
      const running = eventsOf(folder, 'start')
        .map(({ pid }) => pid)
        .filter(isAlive);
      assert.ok(running.length <= 1, String(running));
      if (round % 2 === 1) for (const pid of running) process.kill(pid, 'SIGKILL');
    }
    const last = await startRouterProcess(t, dataDir);
    assert.equal((await last.wake(USER)).status, 202);
    assert.equal(eventsOf(folder, 'second').length, 0);
    last.child.kill('SIGTERM');
    await eventually('nothing is left', () => eventsOf(folder, 'start').every(({ pid }) => !isAlive(pid)));
  });
});

test('never logs a token, and shows one only in the answer that creates it', async (t) => {
  const dataDir = temporaryFolder(t);
  const folder = temporaryFolder(t);
  const router = await startRouterProcess(t, dataDir);
  const given = 'canary-given-token-0123456789';
  const secret = 'canary-secret-variable-0123456789';
  const minted = (await router.put('minted', fixtureMachine(folder, 'exit', {}, { FIXTURE_SAYS: 'never mind' }))).json
    .data.token;
  assert.ok(minted);
  assert.match(minted, /^[A-Za-z0-9_-]{43}$/);
  const put = await router.put(USER, fixtureMachine(folder, undefined, { token: given }, { API_KEY: secret }));
  const failing = fixtureMachine(
    folder,
    'exit',
    { token: given },
    { API_KEY: secret, FIXTURE_SAYS: '{NEO_DAEMON_TOKEN} {API_KEY}' },
  );
  const seen = [put.text];
  seen.push((await router.wake(USER)).text);
  seen.push((await router.wake('minted')).text);
  seen.push((await router.put(USER, failing)).text);
  seen.push((await router.wake(USER)).text);
  seen.push((await router.admin('GET', `/${USER}`)).text, (await router.admin('GET', '')).text);
  seen.push((await router.admin('PUT', `/${USER}`, { ...failing, token: 'short-canary' })).text);
  seen.push((await router.send('GET', '/admin/machines', 'canary-wrong-token')).text);
  seen.push((await router.admin('DELETE', `/${USER}`)).text);
  await router.kill();
  const everything = seen.join('\n') + router.log();
  assert.match(everything, /\[redacted\]/);
  for (const canary of [given, secret, minted, 'canary', WAKE_TOKEN, ADMIN_TOKEN]) {
    assert.ok(!everything.includes(canary), canary);
  }
  for (const name of readdirSync(dataDir)) assert.doesNotMatch(name, /alice|minted/);
});
