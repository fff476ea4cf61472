/** The hold dies with whoever holds. The program that would ask logind is a stand-in here; test/system/service has logind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { Awake, waysToHold } from './awake.ts';

/** Refuses some of what is asked of it, else does as systemd-inhibit: runs the rest of its words while it holds. */
function standIn(folder: string, refused: string): string {
  const path = join(folder, 'systemd-inhibit');
  writeFileSync(
    path,
    `#!/bin/sh
case "$1" in ${refused}) echo "Failed to inhibit: Access denied" >&2; exit 1;; esac
echo $$ > ${folder}/pid
while [ "\${1#--}" != "$1" ]; do shift; done
exec "$@"
`,
  );
  chmodSync(path, 0o755);
  return `${folder}:${process.env.PATH}`;
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

test('it holds what it may, says what it may not, and lets go', async (t) => {
  const PATH = standIn(temporaryFolder(t), '*lid*');
  const awake = new Awake({ PATH }, systemClock, 'linux');
  await Promise.all([awake.hold(), awake.hold()]);
  assert.ok(awake.isHeld);
  assert.match(awake.loose!, /closing the lid still/);
  const { pid } = awake;
  await awake.release();
  assert.equal(isAlive(pid!), false);
  const none = new Awake({ PATH: standIn(temporaryFolder(t), '*') }, systemClock, 'linux');
  await none.hold();
  assert.equal(none.isHeld, false);
  assert.match(none.loose!, /not kept awake: Failed to inhibit: Access denied/);
  const missing = new Awake({ PATH: '/nowhere' }, systemClock, 'linux');
  await missing.hold();
  assert.match(missing.loose!, /not kept awake: systemd-inhibit ENOENT/);
});

test('whoever is killed holds nothing any more, and a holder that is killed is seen to be gone', async (t) => {
  const folder = temporaryFolder(t);
  const PATH = standIn(folder, 'nothing');
  const code = `const { Awake } = await import(${JSON.stringify(new URL('./awake.ts', import.meta.url).href)});
const { systemClock } = await import(${JSON.stringify(new URL('../../kit/clock/clock.ts', import.meta.url).href)});
const awake = new Awake({ PATH: ${JSON.stringify(PATH)} }, systemClock, 'linux');
await awake.hold();
console.log(awake.pid);
setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const holder = Number(
    await new Promise<string>((resolve) => child.stdout.once('data', (data) => resolve(`${data}`))),
  );
  assert.ok(isAlive(holder));
  child.kill('SIGKILL');
  await eventually('the hold is gone', () => !isAlive(holder));
  const awake = new Awake({ PATH }, systemClock, 'linux');
  t.after(() => awake.release());
  await awake.hold();
  process.kill(awake.pid!, 'SIGKILL');
  await eventually('it is seen', () => !awake.isHeld);
  await awake.hold();
  assert.ok(awake.isHeld);
});

test('each system is asked in its own words, for half an hour at most', () => {
  const [mac] = waysToHold('darwin', 4711);
  assert.deepEqual(mac!.command, ['caffeinate', '-i', '-s', '-t', '1800', '-w', '4711']);
  const [windows] = waysToHold('win32', 4711);
  assert.match(windows!.command.at(-1)!, /SetThreadExecutionState\(\[uint32\]'0x80000001'\)[\s\S]*Wait\(1800000\)/);
  assert.match(waysToHold('linux', 4711)[0]!.command.join(' '), /handle-lid-switch .*exec timeout 1800 cat/);
  assert.deepEqual(waysToHold('aix', 1), []);
});
