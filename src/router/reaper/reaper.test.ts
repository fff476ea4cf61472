import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { atEnd, listening, temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { eventsOf, fixtureMachine, isAlive, startBench } from '../testing/bench.ts';
import { startRouterProcess } from '../testing/router-process.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';
import { settleOrphans } from './reap.ts';

const USER = 'alice';

/** The reapers of a data folder. */
function reapersOf(dataDir: string): number[] {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  return pids.map(Number).filter((pid) => {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return args.includes(dataDir) && args.some((word) => word.endsWith('reaper/main.ts'));
    } catch {
      return false;
    }
  });
}

/** A router with a running machine; `orphanSeconds` 0: without a reaper. */
async function withMachine(t: TestContext, orphanSeconds: number, mode?: string) {
  const dataDir = temporaryFolder(t);
  const folder = temporaryFolder(t);
  const settings = { ROUTER_ORPHAN_SECONDS: String(orphanSeconds) };
  const router = await startRouterProcess(t, dataDir, settings);
  await router.put(USER, fixtureMachine(folder, mode));
  assert.equal((await router.wake(USER)).status, 202);
  const { pid } = eventsOf(folder, 'start')[0]!;
  atEnd(t, () => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  return { dataDir, folder, router, pid, settings };
}

/** Handles the orphans of a dead router after the time for another router has passed. */
function settling(dataDir: string) {
  const clock = new ShiftingClock();
  const ended = settleOrphans({ dataDir, graceMs: 60_000, clock, log: silentLogger });
  clock.advance(60_000);
  return { clock, ended };
}

describe('a machine of a killed router', () => {
  test('gets SIGTERM when no other router starts, and no process remains', async (t) => {
    const { dataDir, folder, router, pid } = await withMachine(t, 1);
    await eventually('somebody watches', () => reapersOf(dataDir).length === 1);
    await router.kill();
    assert.ok(isAlive(pid), 'not at once: another router may start');
    await eventually('the machine is gone', () => !isAlive(pid));
    assert.equal(eventsOf(folder, 'end').length, 1);
    await eventually('the reaper is gone', () => reapersOf(dataDir).length === 0);
    assert.match(readFileSync(join(dataDir, 'machine-logs', 'undertaker.log'), 'utf8'), /whose router has died/);
  });

  test('is left to a router that starts in time', async (t) => {
    const { dataDir, router, pid, settings } = await withMachine(t, 3600);
    const [first] = await eventually('somebody watches', () => {
      const found = reapersOf(dataDir);
      return found.length === 1 && found;
    });
    await router.kill();
    const next = await startRouterProcess(t, dataDir, settings);
    assert.equal((await next.wake(USER)).headers.get('x-reveille-machine-start-ms'), '0');
    await eventually('the next router has its own reaper, and only one', () => {
      const found = reapersOf(dataDir);
      return found.length === 1 && found[0] !== first;
    });
    assert.ok(isAlive(pid));
    next.child.kill('SIGTERM');
    await eventually('nothing is left', () => !isAlive(pid) && reapersOf(dataDir).length === 0);
  });

  test('is ended when the next router was refused its port', async (t) => {
    const { dataDir, router, pid } = await withMachine(t, 0);
    await router.kill();
    const { port } = new URL(await listening(t, createServer()));
    const settings = { ROUTER_DATA_DIR: dataDir, ROUTER_ORPHAN_SECONDS: '1', ROUTER_PORT: port };
    await assert.rejects(startBench(t, { settings }), /cannot listen/);
    assert.ok(isAlive(pid), 'not at once: another router may start');
    await eventually('the machine and its reaper are gone', () => !isAlive(pid) && reapersOf(dataDir).length === 0);
  });

  test('may finish its turn', async (t) => {
    const { dataDir, folder, router, pid } = await withMachine(t, 0);
    writeFileSync(join(folder, 'busy'), '');
    await router.kill();
    const healthChecks = () => eventsOf(folder, 'health').length;
    const before = healthChecks();
    const ended = settleOrphans({ dataDir, graceMs: 0, clock: systemClock, log: silentLogger, busyMs: 20 });
    await eventually('it is asked again and again', () => healthChecks() > before + 3);
    assert.ok(isAlive(pid));
    rmSync(join(folder, 'busy'));
    assert.equal(await ended, 1);
    assert.equal(eventsOf(folder, 'end').length, 1);
  });

  test('is ended after an hour of being busy', async (t) => {
    const { dataDir, folder, router, pid } = await withMachine(t, 0);
    writeFileSync(join(folder, 'busy'), '');
    await router.kill();
    const healthChecks = eventsOf(folder, 'health').length;
    const { clock, ended } = settling(dataDir);
    await eventually('it is asked', () => eventsOf(folder, 'health').length > healthChecks);
    clock.advance(3_600_000);
    await eventually('it is ended', () => {
      clock.advance(500);
      return !isAlive(pid);
    });
    assert.equal(await ended, 1);
  });

  test('is found when the router died before it stored the pid, and an unrelated process is not touched', async (t) => {
    const { dataDir, router, pid } = await withMachine(t, 0);
    await router.kill();
    const unrelated = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
    atEnd(t, () => unrelated.kill('SIGKILL'));
    const db = new DatabaseSync(join(dataDir, 'router.db'));
    db.prepare(`INSERT INTO processes VALUES ('bob', 'another', '', 1, ?, 'born at another time')`).run(unrelated.pid!);
    db.prepare(`UPDATE processes SET pid = NULL, birth = NULL WHERE user_id = ?`).run(USER);
    db.close();
    assert.equal(await settling(dataDir).ended, 1);
    assert.ok(!isAlive(pid));
    assert.ok(isAlive(unrelated.pid!));
  });

  test('is ignored when the data folder is missing', async (t) => {
    const { dataDir, router, pid } = await withMachine(t, 0);
    await router.kill();
    rmSync(dataDir, { recursive: true });
    assert.equal(await settling(dataDir).ended, 0);
    assert.ok(isAlive(pid));
    assert.throws(() => readdirSync(dataDir), /ENOENT/, 'it was not created again');
  });
});

describe('the reaper', () => {
  test('runs while machines run, and ends with the last of them', async (t) => {
    const clock = new ShiftingClock();
    const dataDir = temporaryFolder(t);
    const settings = { ROUTER_DATA_DIR: dataDir, ROUTER_ORPHAN_SECONDS: '3600' };
    const router = await startBench(t, { clock, settings });
    assert.equal(reapersOf(dataDir).length, 0);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder, undefined, { idle_seconds: 60 }));
    for (let round = 0; round < 2; round++) {
      assert.equal((await router.wake(USER)).status, 202);
      await eventually('the reaper runs', () => reapersOf(dataDir).length === 1);
      await eventually('the machine sleeps, and the reaper ends', () => {
        clock.advance(61_000);
        return reapersOf(dataDir).length === 0;
      });
    }
  });

  test('is replaced when it is killed', async (t) => {
    const dataDir = temporaryFolder(t);
    const settings = { ROUTER_DATA_DIR: dataDir, ROUTER_ORPHAN_SECONDS: '3600' };
    const router = await startBench(t, { settings });
    await router.put(USER, fixtureMachine(temporaryFolder(t)));
    assert.equal((await router.wake(USER)).status, 202);
    const [first] = await eventually('the reaper runs', () => {
      const found = reapersOf(dataDir);
      return found.length === 1 && found;
    });
    process.kill(first!, 'SIGKILL');
    await eventually('another reaper runs', () => {
      const found = reapersOf(dataDir);
      return found.length === 1 && found[0] !== first;
    });
    await router.close();
    await eventually('no reaper runs', () => reapersOf(dataDir).length === 0);
  });
});
