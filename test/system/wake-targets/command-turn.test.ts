import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Agent } from 'undici';
import { LocalAgentHost } from '../../../src/agents/host.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { Sandbox } from '../../../src/kit/process/isolation.ts';
import type { Machine } from '../../../src/router/machines/machine.ts';
import { Isolation } from '../../../src/router/providers/isolation.ts';
import { wakeBody } from '../../../src/router/testing/bench.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';
import { type Wake, wakeRequestSchema } from '../../../src/wire/wake.ts';
import { commandLines } from '../../support/command-lines.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';

const base = { userId: 'alice', state: 'active', idleSeconds: null, budget: null, token: 'token-of-alice' } as const;
const times = { createdAt: 0, updatedAt: 0 };
const SECRET = 'a-key-of-the-model';

type Target = Pick<Machine, 'provider' | 'spec'>;

/** A folder with a script, and a host whose machine works there. */
function hostIn(t: TestContext, targetOf: (folder: string) => Target = neoIn) {
  const home = realpathSync(temporaryFolder(t));
  const folder = join(home, 'work');
  mkdirSync(folder);
  const machine = { ...base, ...times, ...targetOf(folder) } as Machine;
  const dispatcher = new Agent();
  const clock = new ShiftingClock();
  const path = '/usr/bin:/bin';
  const start = () => {
    const host = new LocalAgentHost({
      ...{
        dataDir: join(home, 'router'),
        presetFolder: join(home, 'presets'),
        channelFolder: '/nowhere',
        dispatcher,
        clock,
        log: silentLogger,
      },
      environment: { PATH: path, HOME: home, ANTHROPIC_API_KEY: SECRET },
      isolation: new Isolation({
        machines: () => [machine],
        sandboxer: new Sandbox('auto', { hidden: [join(home, 'router')], grantable: [], kept: [], home }, path),
        grantedTo: () => [{ path: join(home, 'router', 'agent.key'), writable: false }],
      }),
      machineOf: () => machine,
      suspend: () => Promise.resolve(),
    });
    host.recover();
    atEnd(t, () => host.close());
    return host;
  };
  atEnd(t, () => dispatcher.destroy());
  const script = (text: string) => {
    const file = join(folder, 'job.sh');
    writeFileSync(file, `#!/bin/sh\n${text}\n`);
    chmodSync(file, 0o755);
  };
  const wakeWith = (argv: string[], more: object = {}) =>
    parseOrThrow(wakeRequestSchema, { ...wakeBody('alice'), ...more, run: { argv, by_person: true } }) as Wake;
  return { home, folder, machine, host: start(), start, script, wakeWith, clock };
}

const neoIn = (folder: string): Target => ({
  provider: 'process',
  spec: {
    command: ['neo-is-never-started'],
    env: { NEO_WORKSPACE: folder, ANTHROPIC_API_KEY: SECRET, MATRIX_EXECUTOR_KEYFILE: join(folder, 'own.key') },
  },
});
const claudeIn = (folder: string): Target => ({
  provider: 'command',
  spec: {
    ...{ preset: 'claude', cwd: folder },
    env: { ANTHROPIC_API_KEY: SECRET, MATRIX_EXECUTOR_KEYFILE: join(folder, 'own.key') },
  },
});

type Bench = ReturnType<typeof hostIn>;

/** Runs a command as a turn, and returns the ended turn. */
async function ended({ host, machine }: Bench, wake: Wake) {
  const { status } = await host.wake(machine, wake, new AbortController().signal);
  assert.equal(status, 202);
  const turn = () => host.store.ofFire('alice', wake.fire_id);
  await eventually('the command has ended', () => turn()?.finishedAt !== undefined);
  return turn()!;
}

for (const [name, target] of [
  ['a machine with a daemon, which is not started', neoIn],
  ['a machine of a preset', claudeIn],
] as const) {
  test(`the output of a command is the reply of the turn: ${name}`, async (t) => {
    const bench = hostIn(t, target);
    bench.script('echo "in $PWD"; cat; echo; env | grep -c ANTHROPIC; exit 0');
    const turn = await ended(bench, bench.wakeWith(['./job.sh', 'one argument'], { message: 'back up the orchids' }));
    assert.equal(turn.status, 'done', turn.error);
    assert.match(turn.reply!, new RegExp(`^in ${bench.folder}\nback up the orchids\n`));
    assert.match(turn.reply!, /\n0$/, 'it has none of the agent’s credentials');
  });
}

for (const [name, target] of [
  ['a machine with a daemon', neoIn],
  ['a machine of a preset', claudeIn],
] as const)
  test(`a command sees no key of the agent, and makes no user namespace: ${name}`, {
    skip: needs('bubblewrap'),
  }, async (t) => {
    const bench = hostIn(t, target);
    const key = join(bench.home, 'router', 'agent.key');
    for (const path of [key, join(bench.folder, 'own.key')]) writeFileSync(path, 'the-key-of-the-agent');
    bench.script(
      `cat ${key} own.key 2>&1; mv own.key moved; cat moved 2>&1; unshare --user echo nested 2>&1; bwrap --ro-bind / / echo nested 2>&1; echo end`,
    );
    const { reply } = await ended(bench, bench.wakeWith(['./job.sh', key]));
    assert.match(reply!, /end$/);
    assert.doesNotMatch(reply!, /the-key-of-the-agent|^nested/m);
  });

test('a repeated wake runs the command once', { skip: needs('bubblewrap') }, async (t) => {
  const bench = hostIn(t);
  bench.script('echo run >> count; echo done');
  const wake = bench.wakeWith(['./job.sh']);
  await ended(bench, wake);
  const again = await bench.host.wake(bench.machine, wake, new AbortController().signal);
  assert.equal(again.status, 200);
  assert.equal(readFileSync(join(bench.folder, 'count'), 'utf8'), 'run\n');
});

test('a command that fails is a failed turn with its exit code and the end of its errors', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = hostIn(t);
  bench.script('echo partial; echo "the disk is full" >&2; exit 3');
  const turn = await ended(bench, bench.wakeWith(['./job.sh']));
  assert.equal(turn.status, 'failed');
  assert.match(turn.error!, /exit code 3.*the disk is full/s);
});

test('a command that takes longer than its limit is ended', { skip: needs('bubblewrap') }, async (t) => {
  const bench = hostIn(t);
  bench.script('sleep 600');
  const wake = {
    ...bench.wakeWith(['./job.sh']),
    run: { argv: ['./job.sh'], timeout_seconds: 1, by_person: true },
  } as Wake;
  const turn = await ended(bench, wake);
  assert.equal(turn.status, 'failed');
  assert.match(turn.error!, /longer than 1 s/);
});

test('a program that is missing fails the turn and names the program', { skip: needs('bubblewrap') }, async (t) => {
  const bench = hostIn(t);
  const wake = bench.wakeWith(['./no-such.sh']);
  await bench.host.wake(bench.machine, wake, new AbortController().signal);
  await eventually('the command has failed', () => {
    bench.clock.advance(30_000);
    return bench.host.store.ofFire('alice', wake.fire_id)?.finishedAt !== undefined;
  });
  const turn = bench.host.store.ofFire('alice', wake.fire_id)!;
  assert.equal(turn.status, 'failed');
  assert.match(turn.error!, /no-such\.sh does not exist/);
});

test('placeholders in a command are plain text, and hidden folders stay hidden', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = hostIn(t);
  bench.script('for a; do echo "[$a]"; done; ls "$3" 2>/dev/null | grep -c turns.db; true');
  const hidden = join(bench.home, 'router');
  const turn = await ended(bench, bench.wakeWith(['./job.sh', '<session>', '<message>', hidden]));
  assert.match(turn.reply!, /^\[<session>\]\n\[<message>\]/);
  assert.doesNotMatch(turn.reply!, /\n[1-9]$/);
});

test('a machine without a folder, or on another computer, refuses commands with the remedy', async (t) => {
  const places: [Target, RegExp][] = [
    [{ provider: 'process', spec: { command: ['neo'] } }, /register it with --dir, or set NEO_WORKSPACE/],
    [{ provider: 'http', spec: { url: 'http://127.0.0.1:1' } } as Target, /machine of this computer.*provider http/],
  ];
  for (const [target, error] of places) {
    const bench = hostIn(t, () => target);
    const turn = await ended(bench, bench.wakeWith(['./job.sh']));
    assert.equal(turn.status, 'failed');
    assert.match(turn.error!, error);
  }
});

test('a command that the agent set runs only where its machine allows that', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const byAgent = { argv: ['./job.sh'] };
  const refused = hostIn(t);
  refused.script('echo ran > ran');
  const turn = await ended(refused, { ...refused.wakeWith(['x']), run: byAgent });
  assert.equal(turn.status, 'failed');
  assert.match(turn.error!, /the agent of alice may not set commands; let the person set it, or register/);
  assert.equal(existsSync(join(refused.folder, 'ran')), false);
  const allowed = hostIn(t, (folder) => {
    const { provider, spec } = neoIn(folder);
    return { provider, spec: { ...spec, checks: 'commands' } } as Target;
  });
  allowed.script('echo ran');
  assert.equal((await ended(allowed, { ...allowed.wakeWith(['x']), run: byAgent })).reply, 'ran');
});

test('attacks by a command: files, processes, sockets and words of others', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = hostIn(t);
  const { home } = bench;
  writeFileSync(join(home, 'outside'), SECRET);
  writeFileSync(join(home, 'router', 'key'), SECRET);
  const rows: [what: string, argv: string[]][] = [
    ['a file beside its folder', ['cat', '../outside']],
    ['a file that a word names', ['cat', join(home, 'outside')]],
    ['a hidden file that a word names', ['cat', join(home, 'router', 'key')]],
    [
      'a hidden file in an option',
      ['sh', '-c', 'cat "$(echo "$0" | cut -d= -f2)"', `--file=${join(home, 'router', 'key')}`],
    ],
    ['environments', ['sh', '-c', 'cat /proc/*/environ | tr "\\0" "\\n"; env']],
    ['the root of another process', ['sh', '-c', `cat /proc/*/root${home}/outside`]],
    ['a program with another name', ['-rf']],
    ['an option before it', ['--', 'cat', join(home, 'outside')]],
    ['a placeholder', ['sh', '-c', 'echo "$0" "$1"', '<session>', '<args>']],
    [
      'a write beside its folder',
      ['sh', '-c', 'echo x > ../escaped; echo x > /etc/escaped; cp /bin/true /usr/bin/escaped'],
    ],
    [
      'a process that stays',
      ['sh', '-c', '(setsid sleep 4712 >/dev/null 2>&1 &) ; (nohup sleep 4712 >/dev/null 2>&1 &)'],
    ],
  ];
  for (const [what, argv] of rows) {
    const wake = bench.wakeWith(argv);
    await bench.host.wake(bench.machine, wake, new AbortController().signal);
    const turn = await eventually(`${what} has ended`, () => {
      bench.clock.advance(30_000);
      const turn = bench.host.store.ofFire('alice', wake.fire_id);
      return turn?.finishedAt === undefined ? undefined : turn;
    });
    assert.doesNotMatch(`${turn.reply} ${turn.error}`, new RegExp(SECRET), what);
  }
  for (const path of [join(home, 'escaped'), '/etc/escaped', '/usr/bin/escaped']) assert.equal(existsSync(path), false);
  await eventually('no process is left', () => {
    const all = commandLines().join('\n');
    return !all.includes('sleep 4712');
  });
  t.diagnostic(`${rows.length} attacks`);
});

test('a program that appears while it is started never runs outside the sandbox', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = hostIn(t);
  const { home, folder } = bench;
  bench.script(`echo ran > ${home}/escaped`);
  // A program of the agent that makes the command's program appear and disappear.
  const blink = `const { renameSync } = require('node:fs'); for (;;) { try { renameSync('job.sh', 'blink.sh'); renameSync('blink.sh', 'job.sh'); } catch {} }`;
  const blinking = spawn(process.execPath, ['-e', blink], { cwd: folder, stdio: 'ignore' });
  atEnd(t, () => void blinking.kill('SIGKILL'));
  const isolation = new Isolation({
    machines: () => [],
    sandboxer: new Sandbox('auto', { hidden: [], grantable: [], kept: [], home }, '/usr/bin:/bin'),
  });
  let wrapped = 0;
  for (let n = 0; n < 300; n++) {
    const program = { userId: 'alice', command: [join(folder, 'blink.sh')], cwd: folder, env: { PATH: '/bin' } };
    const isolated = await isolation.isolate({ ...program, sandbox: undefined }).catch(() => undefined);
    if (isolated === undefined) continue;
    assert.equal(isolated.isWrapped, true, 'only its wrapper is started');
    wrapped++;
  }
  assert.equal(existsSync(join(home, 'escaped')), false);
  t.diagnostic(`300 attempts, of which ${wrapped} found the program`);
});
