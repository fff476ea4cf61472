/** Attacks on the router by checks: each row is one, with what it must not reach. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Undecided } from '../../../src/router/checks/finding.ts';
import { lookAtPath } from '../../../src/router/checks/path-check.ts';
import { lookAtFile } from '../../../src/router/looks/file-look.ts';
import { fixtureMachine, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { commandLines } from '../../support/command-lines.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';
import { type ChecksBench, checksBench, SECRET } from './bench.ts';

const secret = new RegExp(SECRET);
const quoted = (script: string) => `'${script.replaceAll("'", `'\\''`)}'`;

/** A command that a person sets, and what it printed. */
async function printed(bench: ChecksBench, script: string, more: object = {}, state: object = {}): Promise<string> {
  const check = { command: { argv: ['bash', '-c', `${script}\necho end`], timeout_seconds: 20, ...more } };
  const { verdict, text } = await bench.decide(check, { by_person: true, ...state });
  assert.equal(verdict?.verdict, 'wake', text);
  return bench.news()?.output ?? '';
}

test('a command reaches nothing of the router, of other users and of the computer', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t);
  const { home, work } = bench;
  writeFileSync(join(home, 'keys', 'secret'), SECRET);
  writeFileSync(join(home, 'outside'), SECRET);
  mkdirSync(join(home, 'bob'));
  writeFileSync(join(home, 'bob', 'diary'), SECRET);
  symlinkSync(join(home, 'outside'), join(work, 'link'));
  symlinkSync('/', join(work, 'root'));
  process.env.ATTACKED_SECRET = SECRET;
  atEnd(t, () => delete process.env.ATTACKED_SECRET);
  const { pid } = process;
  const reads = [
    `cat ${home}/keys/secret ${home}/outside ${home}/bob/diary`,
    `cat link root${home}/outside ../outside ../keys/secret`,
    `cat /proc/${pid}/environ /proc/1/environ /proc/*/environ | tr '\\0' '\\n'`,
    `cat /proc/self/root${home}/outside /proc/1/root${home}/outside /proc/${pid}/root${home}/outside`,
    `cat /proc/1/cwd/../outside /proc/${pid}/cwd/package.json /proc/*/fd/* </dev/null`,
    `cat /proc/*/cmdline | tr '\\0' '\\n'`,
    `ls -R ${home} /root /home /var /srv /mnt /media`,
    `find / -name 'router*.db*' -o -name 'chronos*.db*' -o -name '*.seed'`,
    `env; set; export -p; printenv`,
    `cat /etc/shadow /etc/gshadow /etc/ssh/ssh_host_*_key`,
    'cat /dev/mem /dev/kmem /dev/sda /dev/vda | head -c 100',
    'cat /proc/kcore /proc/kmsg | head -c 100',
    `mount -t proc proc /tmp; mount --bind / /tmp; mount -o remount,rw /; umount ${work}; ls /tmp/root`,
    `unshare -Ur cat ${home}/outside; unshare -m cat ${home}/outside; nsenter -t 1 -a cat ${home}/outside`,
    `chroot / cat ${home}/outside; mkdir t; mount -t tmpfs none t`,
    `mknod disk b 8 0 || mknod disk b 254 0; cat disk | head -c 10`,
    `ln ${home}/outside hard; ln /etc/shadow shadow; cat hard shadow`,
    'sudo -n id; su -c id; pkexec id; id -u',
    `bwrap --bind / / cat ${home}/outside`,
    'grep -a NoNewPrivs /proc/self/status; capsh --print',
    `gdb -p 1 -batch; strace -p 1 -o trace; cat /proc/1/mem | head -c 10`,
  ];
  for (const script of reads) {
    const output = await printed(bench, `timeout 3 bash -c ${quoted(script)} 2>/dev/null </dev/null | head -c 40000`);
    assert.doesNotMatch(output, secret, script);
    assert.doesNotMatch(output, /root:\$|PRIVATE KEY|router\.db|wake-token-of-the-tests|uid=0/, script);
  }
  const writes = [
    'echo x > ../escaped',
    `echo x > ${home}/escaped`,
    `echo x > ${home}/router/escaped`,
    'echo x > /etc/escaped',
    'echo x > /usr/bin/escaped',
    'echo x > root/escaped',
    `echo x > link`,
    'echo x > /proc/sys/kernel/core_pattern',
    'echo x > /proc/sysrq-trigger',
    'echo x > /sys/kernel/escaped',
    `mkdir ../folder; mv ../keys ../moved; rm -rf ../keys; rmdir ../bob; mv ${work} ${home}/gone`,
    `cp /bin/true ${home}/bob/true; chmod 777 ${home}`,
  ];
  for (const script of writes) {
    await printed(bench, `(${script}) 2>/dev/null`);
    assert.equal(existsSync(join(home, 'escaped')), false, script);
    assert.deepEqual(readdirSync(home).sort(), ['bob', 'keys', 'outside', 'router', 'work'], script);
    for (const path of ['/etc/escaped', '/usr/bin/escaped', '/escaped', join(home, 'router', 'escaped')])
      assert.equal(existsSync(path), false, `${script}: ${path}`);
  }
  assert.equal(execFileSync('cat', [join(home, 'outside')], { encoding: 'utf8' }), SECRET);
  // Files of one run in /tmp are not there in the next one.
  await printed(bench, 'echo kept > /tmp/kept; echo kept > /dev/shm/kept; echo kept > /var/tmp/kept; true');
  assert.doesNotMatch(await printed(bench, 'cat /tmp/kept /dev/shm/kept /var/tmp/kept 2>/dev/null'), /kept/);
  t.diagnostic(`${reads.length + writes.length + 1} attacks`);
});

async function unixServer(t: TestContext, path: string): Promise<{ hits: number }> {
  const found = { hits: 0 };
  const server = createServer((socket) => {
    found.hits++;
    socket.end();
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  atEnd(t, () => server.close());
  return found;
}

test('a command makes no user namespace, and sees no key of the agent in its folder', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t);
  const key = join(bench.work, 'own.key');
  writeFileSync(key, SECRET);
  const { env } = fixtureMachine(bench.work, undefined, {}, { MATRIX_EXECUTOR_KEYFILE: key }).spec;
  await bench.put({ checks: 'commands', env });
  const output = await printed(bench, 'unshare --user echo nested; bwrap --bind / / echo nested; cat own.key');
  assert.doesNotMatch(output, /nested/);
  assert.doesNotMatch(output, secret);
});

test('a command without network reaches no socket, and one with network none of a file', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t);
  const name = join(bench.home, 'keys', 'daemon.sock');
  const [abstract, hidden] = [await unixServer(t, `\0reveille-attack-${process.pid}`), await unixServer(t, name)];
  const port = new URL(bench.closed.url).port;
  const dial = (target: string) =>
    `node -e "require('net').connect(${target}).on('connect', function () { console.log('reached'); process.exit() }).on('error', (e) => { console.log(e.code); process.exit() })"`;
  const rows = [
    dial(`${port}, '127.0.0.1'`),
    dial(`${port}, '::1'`),
    dial(`'\\0reveille-attack-${process.pid}'`),
    dial(`'${name}'`),
    `exec 3<>/dev/tcp/127.0.0.1/${port} && echo reached`,
    'exec 3<>/dev/tcp/1.1.1.1/53 && echo reached',
    'ping -c 1 -W 1 1.1.1.1 && echo reached',
    'getent hosts example.com && echo reached',
    'ls /run/*.sock /run/*/*.sock /var/run/docker.sock && echo reached',
    'ip link set lo down; ip addr | grep -c "inet " | grep -v ^0',
  ];
  for (const script of rows) assert.doesNotMatch(await printed(bench, `(${script}) 2>/dev/null`), /reached/, script);
  await printed(bench, `(${dial(`'${name}'`)})`, { network: true });
  assert.equal(hidden.hits, 0);
  assert.equal(abstract.hits, 0);
  t.diagnostic(`${rows.length + 1} attacks`);
});

test('a command leaves no process, and ends when it should', { skip: needs('bubblewrap') }, async (t) => {
  const bench = await checksBench(t);
  const mark = 'sleep 4711';
  const left = () => commandLines().filter((line) => line.includes(mark));
  const rows = [
    `(setsid ${mark} >/dev/null 2>&1 &)`,
    `nohup ${mark} >/dev/null 2>&1 & disown`,
    `(trap '' TERM HUP INT; ${mark}) >/dev/null 2>&1 &`,
    `setsid bash -c '(${mark} &) ; (${mark} &)' >/dev/null 2>&1`,
    `${mark} &`,
    `unshare -Ur -p -f ${mark} >/dev/null 2>&1 &`,
  ];
  for (const script of rows) {
    const began = Date.now();
    await bench.decide({ command: { argv: ['bash', '-c', script], timeout_seconds: 10 } }, { by_person: true });
    assert.ok(Date.now() - began < 9000, script);
    await eventually(`nothing is left of ${script}`, () => left().length === 0);
  }
  const endless = [
    `trap '' TERM HUP INT; ${mark}`,
    `while :; do setsid ${mark} >/dev/null 2>&1 & sleep 0.05; done`,
    `exec >&- 2>&-; ${mark}`,
    `kill -STOP $$`,
    `f() { ${mark} & f & sleep 1; }; for n in 1 2 3 4 5 6 7 8; do f & done; wait`,
  ];
  for (const script of endless) {
    const began = Date.now();
    const { verdict } = await bench.decide(
      { command: { argv: ['bash', '-c', script], timeout_seconds: 1 } },
      { by_person: true },
    );
    assert.match(verdict!.reason, /time limit|ended by/, script);
    assert.ok(Date.now() - began < 8000, script);
    await eventually(`nothing is left of ${script}`, () => left().length === 0);
  }
  t.diagnostic(`${rows.length + endless.length} attacks`);
});

test('words of a command are words: no shell, no option and no folder of the machine changes what runs', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t);
  const { work } = bench;
  writeFileSync(join(work, 'true'), '#!/bin/sh\ntouch owned\n', { mode: 0o755 });
  writeFileSync(join(work, 'sh'), '#!/bin/sh\ntouch owned\n', { mode: 0o755 });
  writeFileSync(join(work, '.profile'), 'touch owned\n');
  writeFileSync(join(work, '.bashrc'), 'touch owned\n');
  writeFileSync(join(work, 'ld.so.preload'), `${work}/x.so`);
  const rows: string[][] = [
    ['true', '; touch owned'],
    ['true', '$(touch owned)', '`touch owned`'],
    ['true; touch owned'],
    ['$(touch owned)'],
    ['`touch owned`'],
    ['-c', 'touch owned'],
    ['--', 'touch', 'owned'],
    ['--version'],
    ['A=b', 'touch', 'owned'],
    ['ENV=./.profile', 'sh'],
    ['| touch owned'],
    ['> owned'],
    ['*'],
    ['"$@"'],
    ['true\ntouch owned'],
    ['true\r\ntouch owned'],
    ['{a,b}'],
    ['~/true'],
    ['test', '-e', '$(touch owned)'],
    ['true', '\u202etouch owned'],
    ['bash', '-c', ':'],
  ];
  for (const argv of rows) {
    const { status, text } = await bench.decide({ command: { argv } }, { by_person: true });
    assert.ok(status === 202 || status === 200, text);
    assert.equal(existsSync(join(work, 'owned')), false, JSON.stringify(argv));
    rmSync(join(work, 'true'), { force: true, recursive: true });
    writeFileSync(join(work, 'true'), '#!/bin/sh\ntouch owned\n', { mode: 0o755 });
  }
  // The shell's own words end the check as they are, and nothing more.
  const own: [string[], RegExp][] = [
    [['exit', '0'], /exit code 0/],
    [['exit', '1'], /could not be|exit code 1/],
    [['exec', 'false'], /could not be/],
    [['return', '0'], /./],
    [['ulimit', '-u', 'unlimited'], /./],
    [['trap', 'touch owned', 'EXIT'], /./],
    [['.', './true'], /./],
  ];
  for (const [argv, reason] of own)
    assert.match((await bench.decide({ command: { argv } }, { by_person: true })).verdict!.reason, reason);
  t.diagnostic(`${rows.length + own.length} attacks`);
});

test('an agent with the permission gets no variable of its machine, and a person only existing ones', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t);
  const names = ['MODEL_KEY', 'FIXTURE_DIR'];
  for (const name of names) {
    const check = { command: { argv: ['sh', '-c', 'env'], env: [name] } };
    const { verdict } = await bench.decide(check);
    assert.match(verdict!.reason, /may not name variables/, name);
    assert.doesNotMatch(bench.news()?.output ?? '', secret);
    assert.match((await bench.refusal(check))!, /^403 check: .*may not name variables/);
    assert.equal(await bench.refusal(check, true), undefined);
  }
  const none = [
    'constructor',
    'toString',
    '__proto__',
    'hasOwnProperty',
    'ROUTER_WAKE_TOKEN',
    'REVEILLE_HOME',
    'CHRONOS_ADMIN_TOKEN',
    'NEO_DAEMON_TOKEN',
    'LD_PRELOAD',
    'BASH_ENV',
    'ATTACKED_SECRET',
  ];
  for (const name of none) {
    const { verdict } = await bench.decide({ command: { argv: ['true'], env: [name] } }, { by_person: true });
    assert.match(verdict!.reason, /has no variable/, name);
  }
  t.diagnostic(`${names.length * 2 + none.length} attacks`);
});

test('what a command prints is text for the agent, and never more than its limit', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t);
  const rows: [string, (output: string) => void][] = [
    [`printf '\\033[2J\\033]0;title\\007\\r\\b'`, (output) => assert.doesNotMatch(output, /[\x00-\x08\x0b-\x1f\x7f]/)],
    [`printf 'a\\0b\\377\\376'`, (output) => assert.doesNotMatch(output, /\0/)],
    [
      `printf '\\342\\200\\256\\342\\200\\213\\363\\240\\201\\201'`,
      (output) => assert.doesNotMatch(output, /\u202e|\u200b|\u{e0041}/u),
    ],
    [`head -c 5000000 /dev/zero | tr '\\0' a`, (output) => assert.ok(output.length <= 66_000)],
    [`head -c 3000000 /dev/zero`, (output) => assert.ok(output.length <= 66_000)],
    [`yes '[end of check' | head -c 60000`, (output) => assert.ok(output.length <= 66_000)],
  ];
  for (const [script, judge] of rows) judge(await printed(bench, script));
  // Its last line is the value, and comes back as an environment variable.
  await printed(
    bench,
    `printf '%s' "$REVEILLE_LAST_VALUE" > value`,
    {},
    { value: '$(touch owned)\u001b[31m"; touch owned' },
  );
  assert.equal(existsSync(join(bench.work, 'owned')), false);
  t.diagnostic(`${rows.length + 1} attacks`);
});

test('a path leads to nothing that the agent may not read, also when it is exchanged while it is read', async (t) => {
  const bench = await checksBench(t);
  const { home, work } = bench;
  const outside = join(home, 'keys');
  writeFileSync(join(outside, SECRET), SECRET);
  writeFileSync(join(home, 'outside'), SECRET);
  symlinkSync(outside, join(work, 'folder-link'));
  symlinkSync(join(home, 'outside'), join(work, 'file-link'));
  symlinkSync('loop', join(work, 'loop'));
  execFileSync('mkfifo', [join(work, 'fifo')]);
  const socket = createServer().listen(join(work, 'socket'));
  atEnd(t, () => socket.close());
  mkdirSync(join(work, 'links'));
  symlinkSync(outside, join(work, 'links', 'in'));
  const paths = [
    '../outside',
    '../keys',
    '..',
    '.././outside',
    'x/../../outside',
    `${work}/../outside`,
    'folder-link',
    `folder-link/${SECRET}`,
    'file-link',
    'links/in',
    '/',
    '/etc/passwd',
    '/proc/self/environ',
    '/proc/1/environ',
    `/proc/${process.pid}/environ`,
    `/proc/self/root${home}/outside`,
    '/proc/self/cwd',
    '/proc/self/fd/0',
    '/dev/zero',
    '/dev/stdin',
    '/dev/tty',
    '/sys/kernel',
    join(home, 'router'),
    join(home, 'router', 'router.db'),
    'loop',
    'fifo',
    'socket',
    `${'a/'.repeat(2000)}a`,
    'a'.repeat(300),
    `${home}/keys/./${SECRET}`,
    `folder-link/absent`,
    `${outside}/absent`,
    '~/outside',
    'file:///etc/passwd',
    '\u002e\u002e/outside',
  ];
  for (const path of paths) {
    const began = Date.now();
    const { verdict, text } = await bench.decide({ path: { path } });
    assert.ok(Date.now() - began < 5000, path);
    assert.ok(verdict, text);
    assert.match(verdict.reason, /could not be decided|does not exist/, path);
    assert.ok(!/does not exist/.test(verdict.reason) || /^(?:~|file:|a\/)/.test(path), path);
    assert.doesNotMatch(JSON.stringify([verdict, bench.news()]), secret, path);
  }
  // A folder that is exchanged for a link all the time, by a program of the agent.
  mkdirSync(join(work, 'real'));
  writeFileSync(join(work, 'real', 'mine'), 'mine');
  const { swapper } = await import('./swapper.ts');
  // What is there later is new, compared with nothing.
  const nothing = await lookAtFile('swapped', { folder: work, isReadable: () => true, now: Date.now() }, undefined);
  const stop = swapper(work, outside);
  atEnd(t, stop);
  const isReadable = (path: string) => path === work || path.startsWith(`${work}/`);
  const seen = { looks: 0, read: 0, events: 0 };
  for (const until = Date.now() + 4000; Date.now() < until; seen.looks++) {
    const found = await lookAtPath('swapped', work, isReadable, undefined).catch((thrown: unknown) => {
      assert.ok(thrown instanceof Undecided, String(thrown));
      return { output: undefined };
    });
    if (found.output !== undefined) seen.read++;
    assert.doesNotMatch(JSON.stringify(found), secret, `look ${seen.looks}`);
    const look = { folder: work, isReadable, now: Date.now() };
    const shown = await lookAtFile('swapped', look, nothing.seen).catch((thrown: unknown) => {
      assert.ok(thrown instanceof Undecided, String(thrown));
      return undefined;
    });
    if (shown?.events.some(({ data }) => data.includes('"mine"'))) seen.events++;
    assert.doesNotMatch(JSON.stringify(shown ?? {}), secret, `look ${seen.looks}`);
  }
  stop();
  // A hard link is a file of the folder: a program in the sandbox cannot make one to a file outside.
  linkSync(join(home, 'outside'), join(work, 'hard'));
  assert.doesNotMatch(JSON.stringify(await bench.decide({ path: { path: 'hard' } })), secret);
  t.diagnostic(
    `${paths.length + 2} attacks, ${seen.looks} looks at a folder that changes, of which ${seen.read} and ${seen.events} saw it`,
  );
});

test('a secret of the person is used only by a check of the person, and reaches no answer', async (t) => {
  const bench = await checksBench(t);
  const secret = 'canary/of the secret?';
  writeFileSync(join(bench.home, 'router', 'check-secrets.json'), JSON.stringify({ FEED: secret }), { mode: 0o600 });
  const seen: (string | undefined)[] = [];
  bench.site.answer = (request, response) => {
    seen.push(request.headers.authorization, request.url);
    response.end(JSON.stringify({ state: request.headers.authorization }));
  };
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference
  const [headers, query] = [{ authorization: 'Bearer ${FEED}' }, '?k=${FEED}'];
  const check = { http: { url: `${bench.site.url}/${query}`, headers, pointer: '/state', changed: true } };
  const { verdict, text } = await bench.decide(check, { by_person: true });
  assert.deepEqual(seen, [`Bearer ${secret}`, `/?k=${encodeURIComponent(secret)}`]);
  const shown = JSON.stringify([verdict!.reason, text, bench.news()]);
  assert.ok(!shown.includes(secret) && !shown.includes(encodeURIComponent(secret)), shown);
  // Nor by an agent's check, in one with a name that is missing, or in an error about the address.
  assert.match((await bench.decide(check)).verdict!.reason, /only a check that the person set may use secrets/);
  assert.match((await bench.refusal(check))!, /only a check that the person set/);
  const missing = { http: { url: bench.site.url, headers: { authorization: query.replace('FEED', 'OTHER') } } };
  assert.match((await bench.refusal(missing, true))!, /the secret OTHER is not in/);
  const closed = { http: { url: `${bench.closed.url}/${query}` } };
  const refused = (await bench.decide(closed, { by_person: true })).verdict!.reason;
  assert.ok(!refused.includes('canary'), refused);
  // Another user of the router has no secrets: the file is not theirs.
  await bench.router.put('bob', fixtureMachine(bench.work, undefined));
  const { json } = await bench.router.send('POST', '/internal/checks', WAKE_TOKEN, {
    ...{ user_id: 'bob', check, by_person: true },
  });
  assert.match(json.error.message, /secrets of checks are only those of the user of "reveille up"/);
  assert.equal(seen.length, 2);
});
