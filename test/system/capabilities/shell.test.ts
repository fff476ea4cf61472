import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { commandLines } from '../../support/command-lines.ts';
import { eventually } from '../../support/eventually.ts';
import { needsSandbox, onPath } from '../../support/tools.ts';
import { means, openCapabilities } from './bench.ts';

/** Processes of this computer whose command line contains a word. */
const processesWith = (marker: string): number => commandLines().filter((line) => line.includes(marker)).length;

describe('the shell', () => {
  let reason: string | false;
  before(async () => {
    reason = needsSandbox(await means());
  });
  const open = async (t: TestContext, variables: Record<string, string> = {}) => {
    if (reason !== false) return void t.skip(reason);
    const bench = await openCapabilities(t, { variables });
    const run = (command: string, more: object = {}) =>
      // The sandbox does not have the folders to which a PATH of links (`npm run test:without`) leads.
      bench.call('shell/run', { command: `PATH=$PATH:/usr/bin:/bin; ${command}`, timeout_seconds: 20, ...more });
    return { ...bench, run };
  };

  test('runs a command in the workspace and reports how it ended', async (t) => {
    const bench = await open(t);
    if (!bench) return;
    const { run, workspace } = bench;
    mkdirSync(join(workspace, 'deep'));
    const made = await run('pwd; echo tea > cup; echo away >&2; exit 3', { folder: 'deep' });
    assert.deepEqual(made.data, {
      ...{ exit_code: 3, signal: null, left_processes: 0 },
      ...{ stdout: `${join(workspace, 'deep')}\n`, stderr: 'away\n' },
    });
    assert.equal(made.isError, true);
    assert.equal(readFileSync(join(workspace, 'deep', 'cup'), 'utf8'), 'tea\n');
    assert.match((await run('cat cup', { folder: 'deep' })).text, /^\[exit code 0\]\ntea\n/);
  });

  test('a command finds nothing outside the workspace, and changes nothing there', async (t) => {
    const canary = `canary-${randomUUID()}`;
    const bench = await open(t, { LEAK: canary, NEO_MODEL_API_KEY: canary });
    if (!bench) return;
    const { run, folder, workspace, call } = bench;
    writeFileSync(join(folder, 'secret'), canary);
    symlinkSync(folder, join(workspace, 'out'));
    symlinkSync(join(folder, 'secret'), join(workspace, 'link'));
    const secret = join(folder, 'secret');
    const reads = [
      ...[`cat ${secret}`, 'cat ../secret', 'cat out/secret', 'cat link', `cat /proc/1/root${secret}`],
      ...[
        `cat /proc/self/root${secret}`,
        `cat /proc/*/root${secret}`,
        `cat /proc/1/cwd/../secret`,
        'cat /proc/*/environ',
      ],
      ...[
        'env',
        'set',
        'cat /proc/self/environ /proc/$PPID/environ | tr "\\0" "\\n"',
        'export -p',
        'cat /proc/*/cmdline',
      ],
      ...[
        `find / -name secret -not -path "/proc/*" 2>/dev/null -exec cat {} +`,
        `mount --bind ${folder} /tmp; cat /tmp/secret`,
      ],
      ...[
        `ln ${secret} mine; cat mine`,
        `nsenter -t 1 -m cat ${secret}`,
        `unshare -m cat ${secret}`,
        `chroot / cat ${secret}`,
      ],
      ...[
        `cat ~/../secret`,
        'cat /root/.* /home/*/.*',
        'cat /etc/shadow',
        'ls -la /run /var /srv /mnt /media /root /home',
      ],
      ...[`cd /proc/1/fd 2>/dev/null && cat *`, `exec 9<${secret}; cat <&9`, `tar c -C ${folder} secret | tar xO`],
    ];
    let through = 0;
    for (const command of reads) {
      const { text } = await run(command);
      const root = /root:[$!*]|:\$(?:6|y)\$/.test(text);
      if (text.includes(canary) || root) through++;
      assert.ok(!text.includes(canary) && !root, `${command}\n${text}`);
    }
    const writes = [
      ...[`echo x > ${join(folder, 'written')}`, 'echo x > ../written', 'echo x > out/written', `echo x > ${secret}`],
      ...['echo x > /usr/written', 'echo x > /etc/written', `rm -rf ${folder}/secret`, `mv ${folder} ${folder}.gone`],
      ...['echo x > /proc/sys/kernel/core_pattern', 'echo x >> /bin/sh', `echo x > ${process.execPath}.written`],
      ...['mount -o remount,rw /usr; echo x > /usr/written', 'ln -sf /etc /usr/written', 'touch /dev/written'],
    ];
    for (const command of writes) await run(command);
    const left = [
      join(folder, 'written'),
      '/usr/written',
      '/etc/written',
      '/dev/written',
      `${process.execPath}.written`,
    ];
    through += left.filter((path) => existsSync(path)).length;
    assert.deepEqual([left.filter((path) => existsSync(path)), readFileSync(secret, 'utf8')], [[], canary]);
    for (const at of ['..', '/', '/etc', 'out', '../..', 'link', '/proc/self/cwd/..']) {
      const { isError, text } = await call('shell/run', { command: 'echo ran', folder: at });
      if (text.includes('ran\n')) through++;
      assert.ok(isError && !text.includes('ran\n'), `${at}: ${text}`);
    }
    t.diagnostic(`${reads.length + writes.length + 7} attempts, ${through} got through`);
  });

  test('a command has no network, not even to this computer', async (t) => {
    const bench = await open(t);
    if (!bench) return;
    let hits = 0;
    const server = createServer((socket) => {
      hits++;
      socket.end('secret\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const script = `require('net').connect(${port}, '127.0.0.1').on('data', (d) => console.log('got ' + d)).on('error', (e) => console.log(e.code))`;
    for (const command of [`'${process.execPath}' -e "${script}"`, `bash -c 'cat < /dev/tcp/127.0.0.1/${port}'`]) {
      const { text } = await bench.run(command);
      assert.doesNotMatch(text, /secret/);
    }
    const { text } = await bench.run(`'${process.execPath}' -e "${script}"`);
    assert.match(text, /ECONNREFUSED|ENETUNREACH/);
    assert.equal(hits, 0);
  });

  test('an endless command is killed with all processes that it started, wherever they hide', async (t) => {
    const bench = await open(t);
    if (!bench) return;
    const { run, workspace } = bench;
    const marker = `9${Math.trunc(performance.now())}${process.pid}`;
    const late = await run(`trap '' TERM HUP INT; while :; do sleep ${marker}; done`, { timeout_seconds: 1 });
    assert.equal((late.data as { ended?: string }).ended, 'timeout');
    const hiding = [
      `sleep ${marker} & echo left`,
      `nohup sleep ${marker} >/dev/null 2>&1 & echo left`,
      `setsid sleep ${marker} >/dev/null 2>&1 & echo left`,
      `setsid sh -c 'setsid sleep ${marker} &' & sleep 0.1; echo left`,
      `setsid chrt --idle 0 sh -c 'while :; do :; done' ${marker} >/dev/null 2>&1 & sleep 0.1; echo left`,
      `(trap '' TERM HUP INT; setsid sh -c 'sleep 1; echo x > later; sleep ${marker}' >/dev/null 2>&1 &); echo left`,
    ];
    let through = 0;
    for (const command of hiding) {
      const { text } = await run(command);
      assert.match(text, /left/);
      const running = processesWith(marker);
      if (running > 0) through++;
      assert.equal(running, 0, command);
    }
    assert.match((await run('ulimit -u 2>/dev/null || ulimit -p')).text, /^1024$/m);
    // A thousand at most: a command that uses the whole computer slows the tests beside this one, too.
    const forkBomb = `f() { sleep ${marker} & if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; }; f 7; sleep ${marker}`;
    const bomb = await run(forkBomb, { timeout_seconds: 1 });
    assert.equal((bomb.data as { ended?: string }).ended, 'timeout');
    await eventually('no process of it remains', () => processesWith(marker) === 0);
    assert.equal(existsSync(join(workspace, 'later')), false);
    assert.match((await run('echo alive')).text, /alive/);
    t.diagnostic(`${hiding.length + 2} attempts, ${through} got through`);
  });

  test('a command that writes without end is killed, and a bounded part of its output is kept', async (t) => {
    const bench = await open(t);
    if (!bench) return;
    const { data, text } = await bench.run('yes filler; echo');
    const { ended, stdout } = data as { ended?: string; stdout: string };
    assert.equal(ended, 'flood');
    assert.ok(stdout.length < 70_000 && text.length < 200_000);
    assert.match(stdout, /bytes are omitted/);
  });

  test('no command runs without a sandbox, unless the operator allows it', async (t) => {
    // The probe is per PATH: the executor sees a computer without bubblewrap.
    const { call } = await openCapabilities(t, { mode: 'off' });
    const refused = await call('shell/run', { command: 'echo ran' });
    // Without the program, the whole capability is disabled.
    const isHere = onPath('bwrap') !== undefined;
    assert.match(
      refused.text,
      isHere ? /no command was run: the shell has no sandbox here/ : /"shell" is off: there is no program bwrap/,
    );
    const open = await openCapabilities(t, {
      mode: 'off',
      variables: { REVEILLE_SHELL_WITHOUT_WALLS: '1', LEAK: 'canary' },
    });
    const { text } = await open.call('shell/run', { command: 'echo ran; env' });
    assert.match(text, /ran\n/);
    assert.doesNotMatch(text, /canary|REVEILLE/);
  });
});
