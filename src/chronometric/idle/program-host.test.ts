import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { readIdle } from './open-idle.ts';
import { programHost } from './program-host.ts';

const NEVER = new AbortController().signal;

/** A program that runs a shell script. */
function program(t: TestContext, script: string): { path: string; folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-program-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'program');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o700);
  return { path, folder };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie no longer runs; it waits until its parent reaps it.
    return !existsSync('/proc/self') || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('a program gets unchanged arguments and an allow-listed environment', async (t) => {
  const { path } = program(t, 'printf "%s\\n" "$@"; env');
  const host = programHost({
    PATH: process.env.PATH,
    DISPLAY: ':7',
    XAUTHORITY: '/home/x/.Xauthority',
    LC_ALL: 'de_DE.UTF-8',
    NEO_MODEL_API_KEY: 'canary',
    LD_PRELOAD: '/tmp/canary.so',
    DBUS_SESSION_BUS_ADDRESS: 'unixexec:path=/tmp/canary',
  });
  const output = await host.run(path, ['$(id); `id`', '--a b'], NEVER);
  assert.deepEqual(output.split('\n').slice(0, 2), ['$(id); `id`', '--a b']);
  assert.match(output, /^DISPLAY=:7$/m);
  assert.match(output, /^XAUTHORITY=\/home\/x\/\.Xauthority$/m);
  assert.match(output, /^LC_ALL=C$/m);
  assert.doesNotMatch(output, /canary/);
});

test('a program is unavailable when it fails, is missing, is not executable or has no absolute path', async (t) => {
  const host = programHost({});
  const { path, folder } = program(
    t,
    'printf "\\n\\033[31mCannot open\\007 display\\342\\200\\256\\nmore" >&2; exit 3',
  );
  const rejects = (run: Promise<string>, message: RegExp) => assert.rejects(run, { code: 'unavailable', message });
  await rejects(host.run(path, [], NEVER), /ended with 3: \[31mCannot open display$/);
  await rejects(host.run(join(folder, 'absent'), [], NEVER), /absent could not be run \(ENOENT\)$/);
  await rejects(host.run(folder, [], NEVER), /could not be run \(EACCES\)$/);
  await rejects(host.run('sh', ['-c', 'true'], NEVER), /^sh is not an absolute path$/);
  await rejects(host.run(program(t, 'kill -9 $$').path, [], NEVER), /ended with SIGKILL$/);
});

test('a program with endless output is ended', async (t) => {
  const { path, folder } = program(t, 'echo $$ > "$(dirname "$0")/pid"; exec yes');
  await assert.rejects(programHost({}).run(path, [], NEVER), {
    code: 'unavailable',
    message: `${path} wrote more than 64 KiB`,
  });
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  await eventually('the program has ended', () => !isAlive(pid));
});

test('a program that hangs and ignores SIGTERM is ended with its children after two seconds', async (t) => {
  const { path, folder } = program(
    t,
    `trap '' TERM INT HUP; sleep 1000 & echo $! > "$(dirname "$0")/child"; echo $$ > "$(dirname "$0")/pid"; echo 12345; wait; wait`,
  );
  const host = programHost({});
  const hanging = {
    name: 'hanging',
    read: async (signal: AbortSignal) => ({ idleMs: Number(await host.run(path, [], signal)), source: 'hanging' }),
  };
  assert.deepEqual(await readIdle([hanging], systemClock), { unavailable: 'hanging: no answer within 2 s' });
  for (const name of ['pid', 'child']) {
    const pid = Number(readFileSync(join(folder, name), 'utf8'));
    assert.ok(pid > 0);
    await eventually('the program has ended', () => !isAlive(pid));
  }
});

test('a program is not started after its signal has aborted', async (t) => {
  const { path, folder } = program(t, 'touch "$(dirname "$0")/ran"');
  await assert.rejects(programHost({}).run(path, [], AbortSignal.abort(new Error('over'))), { message: 'over' });
  assert.equal(existsSync(join(folder, 'ran')), false);
});
