import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { DAEMON_FIXTURE, eventsOf, isAlive } from '../testing/bench.ts';
import { ProcessGroup } from './process-group.ts';
import { birthOf, isRunning } from './process-table.ts';

test('a process that ignores SIGTERM is ended by force, also one of an earlier router', async (t) => {
  for (const adopted of [false, true]) {
    const folder = temporaryFolder(t);
    const child = spawn(process.execPath, [DAEMON_FIXTURE], {
      env: { PORT: '0', HOST: '127.0.0.1', FIXTURE_DIR: folder, FIXTURE_MODE: 'ignore-term' },
      detached: true,
      stdio: 'ignore',
    });
    atEnd(t, () => child.kill('SIGKILL'));
    await eventually('it listens', () => eventsOf(folder, 'listening').length === 1);
    const pid = child.pid!;
    const birth = birthOf(pid)!;
    const group = adopted
      ? ProcessGroup.adopted({ pid, birth }, systemClock)
      : ProcessGroup.started(child, systemClock);
    await group.end(100);
    assert.equal(eventsOf(folder, 'term').length, 1);
    assert.equal(await group.ended, adopted ? 'ended by itself' : 'was ended by SIGKILL');
    assert.ok(group.gone.aborted);
    assert.ok(!isAlive(pid) && !isRunning(pid, birth));
    await group.end(100);
  }
});

test('a process keeps its birth, another one has another, and a zombie has none', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const birth = birthOf(child.pid!);
  assert.ok(birth !== undefined && birth === birthOf(child.pid!));
  assert.notEqual(birth, birthOf(process.pid));
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('exit', resolve));
  assert.equal(birthOf(child.pid!), undefined);
});
