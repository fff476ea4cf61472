import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../../test/support/eventually.ts';
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts';
import { DAEMON_FIXTURE, eventsOf, fixtureMachine, isAlive, startBench } from '../testing/bench.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';
import { HIDDEN } from './redaction.ts';

const USER = 'alice';
const node = process.execPath;
const reference = (name: string) => `\${${name}}`;

describe('a machine of provider process', () => {
  test('is started by the first wake, found running by the second, and reports how long the start took', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder));
    const first = await router.wake(USER);
    assert.equal(first.status, 202, first.text);
    assert.ok(Number(first.headers.get('x-reveille-machine-start-ms')) > 0);
    assert.ok(Number(first.headers.get('x-reveille-machine-ready-ms')) > 0);
    const second = await router.wake(USER);
    assert.equal(second.status, 202, second.text);
    assert.equal(second.headers.get('x-reveille-machine-start-ms'), '0');
    assert.equal(eventsOf(folder, 'start').length, 1);
    assert.deepEqual(
      router.notices.map(({ turn_id, machineStartMs }) => [turn_id, machineStartMs > 0]),
      [
        ['turn-1', true],
        ['turn-2', false],
      ],
    );
    const view = (await router.admin('GET', `/${USER}`)).json.data;
    assert.equal(view.running, 'ready');
  });

  test('is started once for a thousand concurrent wakes', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder));
    const answers = await Promise.all(Array.from({ length: 1000 }, () => router.wakeTaken(USER)));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202]);
    assert.equal(eventsOf(folder, 'start').length, 1);
    assert.equal(eventsOf(folder, 'chat').length, 1000);
    assert.equal(new Set(answers.map(({ json }) => json.data.turn_id)).size, 1000);
  });

  test('gets an environment of listed variables, its own variables, and those of the router', async (t) => {
    const environment = {
      PATH: process.env.PATH,
      HOME: '/home/of/the/router',
      LC_ALL: 'C.UTF-8',
      TZ: 'Asia/Kathmandu',
      ROUTER_WAKE_TOKEN: 'must-not-be-inherited',
      AWS_SECRET_ACCESS_KEY: 'must-not-be-inherited',
      NODE_OPTIONS: '--throw-deprecation',
      LD_PRELOAD: '',
    };
    const router = await startBench(t, { environment });
    const folder = temporaryFolder(t);
    const own = { OWN: ' as it is ', PORT: '1', NEO_DAEMON_TOKEN: 'another', NODE_COMPILE_CACHE: folder };
    await router.put(USER, fixtureMachine(folder, undefined, { token: 'the-token-of-the-machine' }, own));
    assert.equal((await router.wake(USER)).status, 202);
    const [start] = eventsOf(folder, 'start');
    const { PORT, REVEILLE_SPAWN_ID, PWD: _, ...env } = start!.env!;
    assert.deepEqual(env, {
      PATH: process.env.PATH,
      HOME: '/home/of/the/router',
      LC_ALL: 'C.UTF-8',
      TZ: 'Asia/Kathmandu',
      HOST: '127.0.0.1',
      OWN: ' as it is ',
      FIXTURE_DIR: folder,
      NODE_COMPILE_CACHE: folder,
      REVEILLE_PORT_FD: '3',
      NEO_DAEMON_TOKEN: 'the-token-of-the-machine',
      REVEILLE_MACHINE_TOKEN: 'the-token-of-the-machine',
    });
    assert.notEqual(PORT, '1');
    assert.match(REVEILLE_SPAWN_ID ?? '', /^[0-9a-f-]{36}$/);
    const [chat] = eventsOf(folder, 'chat');
    assert.equal(chat?.headers?.authorization, 'Bearer the-token-of-the-machine');
  });

  test('gets no variable that is for the daemons alone, by value or by reference', async (t) => {
    const router = await startBench(t, {
      environment: { PATH: process.env.PATH, ROUTER_ADMIN_TOKEN: 'of-the-router' },
    });
    for (const env of [{ X: reference('ROUTER_ADMIN_TOKEN') }, { REVEILLE_HOME: '/home/ada/.reveille' }]) {
      const folder = temporaryFolder(t);
      await router.put(USER, fixtureMachine(folder, undefined, {}, env));
      const { status, json } = await router.wake(USER);
      assert.equal(status, 503);
      assert.match(
        json.error.message,
        /names (ROUTER_ADMIN_TOKEN|REVEILLE_HOME), which is for the daemons of Reveille alone/,
      );
      assert.deepEqual(eventsOf(folder, 'start'), []);
    }
  });

  test('gets a variable of the router by reference, which is neither shown nor quoted', async (t) => {
    const environment = { PATH: process.env.PATH, MODEL_API_KEY: 'the-key-of-the-router' };
    const router = await startBench(t, { environment });
    const folder = temporaryFolder(t);
    const own = {
      API_KEY: reference('MODEL_API_KEY'),
      FIXTURE_SAYS: '{API_KEY} is wrong',
      NODE_COMPILE_CACHE: folder,
      TEXT: `a ${reference('MODEL_API_KEY')}`,
    };
    await router.put(USER, fixtureMachine(folder, 'exit', {}, own));
    assert.match((await router.wake(USER)).json.error.message, /: cannot start: \[redacted\] is wrong$/);
    const [start] = eventsOf(folder, 'start');
    assert.deepEqual(
      [start?.env?.API_KEY, start?.env?.TEXT],
      ['the-key-of-the-router', `a ${reference('MODEL_API_KEY')}`],
    );
    const { spec } = (await router.admin('GET', `/${USER}`)).json.data;
    const names = ['FIXTURE_SAYS', 'TEXT', 'FIXTURE_DIR', 'FIXTURE_MODE', 'NODE_COMPILE_CACHE'];
    const hidden = Object.fromEntries(names.map((name) => [name, HIDDEN]));
    assert.deepEqual(spec?.env, { API_KEY: own.API_KEY, ...hidden }, 'a reference is shown, and no value');
    await router.put(USER, fixtureMachine(folder, undefined, {}, { API_KEY: reference('NOT_SET') }));
    const answer = await router.wake(USER);
    assert.deepEqual(
      [answer.status, answer.json.error.message.slice(0, 40)],
      [503, "the machine's env.API_KEY refers to NOT_"],
    );
    assert.equal(eventsOf(folder, 'start').length, 1);
  });

  test('gets its arguments unchanged: no shell interprets them', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const args = ['$(touch pwned)', '`touch pwned`', '; touch pwned #', '*', '"quoted" \'twice\'', 'a\nb', '&& false'];
    const machine = fixtureMachine(folder);
    await router.put(USER, {
      ...machine,
      spec: { ...machine.spec, command: [node, DAEMON_FIXTURE, ...args], cwd: folder },
    });
    assert.equal((await router.wake(USER)).status, 202);
    const [start] = eventsOf(folder, 'start');
    assert.deepEqual(start?.argv, args);
    assert.equal(start?.cwd, folder);
    assert.ok(!readdirSync(folder).includes('pwned'));
  });

  test('fails its start at once, with exit code and last output, when its command ends', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const env = { API_KEY: 'a-secret-key-of-somebody', FIXTURE_SAYS: 'key {API_KEY} is wrong' };
    await router.put(USER, fixtureMachine(folder, 'exit', {}, env));
    const answer = await router.wake(USER);
    assert.equal(answer.status, 503);
    assert.equal(
      answer.json.error.message,
      'the process exited with code 3 before it was ready: cannot start: key [redacted] is wrong',
    );
    assert.equal((await router.admin('GET', `/${USER}`)).json.data.running, 'asleep');
  });

  test('is paused after its command has failed at once, longer each time, and the error states the pause', async (t) => {
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock });
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder, 'exit', {}, { FIXTURE_SAYS: 'no model' }));
    for (let failures = 1; failures <= 4; failures++) {
      assert.match(
        (await router.wake(USER)).json.error.message,
        /with code 3 before it was ready: cannot start: no model$/,
      );
      assert.equal(eventsOf(folder, 'start').length, failures);
      const pauseOf = await router.wake(USER);
      assert.equal(pauseOf.status, 503);
      const row = failures === 1 ? '' : `failure ${failures} in a row; `;
      const message = new RegExp(`: cannot start: no model \\(${row}it is started again in \\d+ s at the earliest\\)$`);
      assert.match(pauseOf.json.error.message, message);
      const seconds = Number(pauseOf.headers.get('retry-after'));
      assert.ok(seconds > 2 ** (failures - 1) / 2 && seconds <= 2 ** (failures - 1), String(seconds));
      assert.equal(eventsOf(folder, 'start').length, failures, 'nothing was started');
      clock.advance(seconds * 1000);
    }
    await router.put(USER, fixtureMachine(folder));
    assert.equal((await router.wake(USER)).status, 202, 'another specification is tried at once');
  });

  test('fails its start with a reason that names the invalid part of the specification', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const messageOf = async (spec: object) => {
      await router.put(USER, { provider: 'process', spec });
      const answer = await router.wake(USER);
      assert.equal(answer.status, 503);
      return answer.json.error.message;
    };
    assert.match(await messageOf({ command: ['no-such-program'] }), /"no-such-program" could not be started: ENOENT/);
    assert.match(await messageOf({ command: [folder] }), /could not be started: EACCES/);
    assert.match(
      await messageOf({ command: [node], cwd: '/no/such/folder' }),
      /folder "\/no\/such\/folder" is not an existing folder/,
    );
    assert.match(await messageOf({ command: ['x'.repeat(200_000)] }), /could not be started: (E2BIG|ENAMETOOLONG)/);
    const foreign = createServer();
    await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
    atEnd(t, () => foreign.close());
    const { port } = foreign.address() as AddressInfo;
    assert.match(await messageOf({ command: [node], port }), new RegExp(`port ${port} .*is taken by another program`));
  });

  test('is tried on another port when another program took the chosen one', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder, 'port-taken-once'));
    assert.equal((await router.wake(USER)).status, 202);
    const ports = eventsOf(folder, 'start').map(({ env }) => env?.PORT);
    assert.equal(ports.length, 2);
  });

  test('listens on the port of its specification', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const machine = fixtureMachine(folder);
    await router.put(USER, { ...machine, spec: { ...machine.spec, port } });
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(router.notices[0]?.daemon_url, `http://127.0.0.1:${port}`);
  });

  test('is started again after a crash, also one in the middle of a delivery', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder));
    await router.wake(USER);
    const [first] = eventsOf(folder, 'start');
    process.kill(first!.pid, 'SIGKILL');
    const answer = await router.wake(USER);
    assert.ok([202, 502].includes(answer.status), answer.text);
    if (answer.status === 502) assert.equal((await router.wake(USER)).status, 202);
    const starts = eventsOf(folder, 'start');
    assert.equal(starts.length, 2);
    assert.equal(eventsOf(folder, 'second').length, 0);
    process.kill(starts[1]!.pid, 'SIGKILL');
    await eventually(
      'the router notices',
      async () => (await router.admin('GET', `/${USER}`)).json.data.running === 'asleep',
    );
  });

  test('is ended together with its descendants', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder);
    const command = ['/bin/sh', '-c', `"$1" "$2" & wait`, 'sh', node, DAEMON_FIXTURE];
    await router.put(USER, { ...machine, spec: { ...machine.spec, command } });
    assert.equal((await router.wake(USER)).status, 202);
    const daemon = eventsOf(folder, 'start')[0]!.pid;
    const shell = Number(/\) . (\d+)/.exec(readFileSync(`/proc/${daemon}/stat`, 'utf8'))?.[1]);
    process.kill(shell, 'SIGKILL');
    await eventually('the daemon is gone as well', () => !isAlive(daemon));
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(eventsOf(folder, 'second').length, 0);
  });

  test('has its output in a bounded file that only its owner can read, with a name that hides the user', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const noise = join(folder, 'noise.ts');
    const text = `for (let i = 0; i < 3000; i++) console.log(String(i).padStart(1000, '.')); await import(${JSON.stringify(DAEMON_FIXTURE)});`;
    writeFileSync(noise, text);
    const machine = fixtureMachine(folder);
    await router.put(USER, { ...machine, spec: { ...machine.spec, command: [node, noise] } });
    assert.equal((await router.wake(USER)).status, 202);
    const logs = join(router.dataDir, 'machine-logs');
    await eventually('the log is put aside', () => readdirSync(logs).length === 2);
    const [name, rotatedFiles] = readdirSync(logs).toSorted();
    assert.match(name ?? '', /^[0-9a-f]{32}\.log$/);
    assert.equal(rotatedFiles, `${name}.1`);
    for (const file of [name!, rotatedFiles!]) {
      assert.equal(statSync(join(logs, file)).mode & 0o777, 0o600);
      await eventually('it is short', () => statSync(join(logs, file)).size <= 1024 * 1024);
    }
    const kept = readFileSync(join(logs, rotatedFiles!), 'utf8') + readFileSync(join(logs, name!), 'utf8');
    assert.match(kept, /2999\n/);
    assert.match(kept, /listening\n$/);
  });

  test('is ended when it exceeds its memory or process limit, and its start says why', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder, 'unhealthy');
    const limited = (limits: object, command = machine.spec.command) => ({
      ...machine,
      spec: { ...machine.spec, command, limits },
    });
    await router.put(USER, limited({ memory_mb: 16 }));
    assert.match(
      (await router.wake(USER)).json.error.message,
      /the process was ended because it used \d+ MiB of memory, more than its limit of 16 MiB before it was ready/,
    );
    const shell = ['/bin/sh', '-c', 'sleep 60 & sleep 60 & sleep 60 & wait'];
    await router.put(USER, limited({ processes: 3 }, shell));
    assert.match((await router.wake(USER)).json.error.message, /it had 4 processes, more than its limit of 3 before/);
    const generous = { memory_mb: 4096, processes: 50 };
    await router.put(USER, { ...fixtureMachine(folder), spec: { ...fixtureMachine(folder).spec, limits: generous } });
    assert.equal((await router.wake(USER)).status, 202);
  });

  test('has the open file limit and the priority of its specification', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder);
    await router.put(USER, { ...machine, spec: { ...machine.spec, limits: { open_files: 123, niceness: 7 } } });
    assert.equal((await router.wake(USER)).status, 202);
    const { pid } = eventsOf(folder, 'start')[0]!;
    assert.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max open files +123 +123 /m);
    assert.equal(getPriority(pid), getPriority() + 7);
  });
});

describe('stopping a machine of provider process', () => {
  test('sends SIGTERM, and waits for it', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'slow-end'), '');
    await router.put(USER, fixtureMachine(folder));
    await router.wake(USER);
    const suspended = await router.admin('POST', `/${USER}/suspend`);
    assert.equal(suspended.json.data.running, 'asleep');
    assert.deepEqual(
      eventsOf(folder)
        .map(({ event }) => event)
        .slice(-2),
      ['term', 'end'],
    );
    assert.ok(!isAlive(eventsOf(folder, 'start')[0]!.pid));
  });

  test('continues a process that was stopped by a signal so that it can end', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder));
    await router.wake(USER);
    process.kill(eventsOf(folder, 'start')[0]!.pid, 'SIGSTOP');
    await router.admin('DELETE', `/${USER}`);
    assert.equal(eventsOf(folder, 'end').length, 1);
  });

  test('ends every machine when the router closes, also one that is starting', async (t) => {
    const router = await startBench(t);
    const folders = [temporaryFolder(t), temporaryFolder(t)] as const;
    await router.put('ready', fixtureMachine(folders[0]));
    await router.put('starting', fixtureMachine(folders[1], 'unhealthy'));
    await router.wake('ready');
    const waiting = router.wake('starting');
    await eventually('it starts', () => eventsOf(folders[1], 'health').length > 0);
    await router.close();
    const answer = await waiting;
    assert.equal(answer.status, 503);
    assert.match(answer.json.error.message, /the router is shutting down/);
    for (const folder of folders) {
      assert.equal(eventsOf(folder, 'end').length, 1);
      assert.ok(!isAlive(eventsOf(folder, 'start')[0]!.pid));
    }
  });

  test('a changed specification applies to the next wake, and an equal one changes nothing', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder);
    await router.put(USER, machine);
    await router.wake(USER);
    await router.put(USER, machine);
    await router.put(USER, { ...machine, idle_seconds: 100 });
    await router.wake(USER);
    assert.equal(eventsOf(folder, 'start').length, 1);
    await router.put(USER, { ...machine, spec: { ...machine.spec, env: { ...machine.spec.env, NEW: 'yes' } } });
    assert.equal((await router.wake(USER)).status, 202);
    const starts = eventsOf(folder, 'start');
    assert.deepEqual(
      starts.map(({ env }) => env?.NEW),
      [undefined, 'yes'],
    );
    assert.ok(!isAlive(starts[0]!.pid));
    await router.put(USER, { ...machine, token: 'a-new-token-for-the-daemon' });
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(eventsOf(folder, 'start')[2]?.env?.NEO_DAEMON_TOKEN, 'a-new-token-for-the-daemon');
    assert.equal(eventsOf(folder, 'second').length, 0);
  });

  test('a machine that is suspended while wakes wait for it answers them with its new state', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder, 'unhealthy'));
    const waiting = [router.wake(USER), router.wake(USER)];
    await eventually('it starts', () => eventsOf(folder, 'health').length > 0);
    await router.admin('POST', `/${USER}/suspend`);
    assert.deepEqual(
      (await Promise.all(waiting)).map(({ status }) => status),
      [451, 451],
    );
    assert.ok(!isAlive(eventsOf(folder, 'start')[0]!.pid));
  });
});

describe('a hanging machine', () => {
  test('delays no other machine', async (t) => {
    const router = await startBench(t, { settings: { ROUTER_WAKE_TIMEOUT_MS: '12000' } });
    const root = temporaryFolder(t);
    const folderOf = (name: string) => {
      mkdirSync(join(root, name), { recursive: true });
      return join(root, name);
    };
    await router.put('never-ready', fixtureMachine(folderOf('never-ready'), 'unhealthy'));
    await router.put('never-answers', fixtureMachine(folderOf('never-answers'), 'hang-chat'));
    let hanging = 0;
    const hung = ['never-ready', 'never-answers', 'never-answers'].map(async (user) => {
      hanging++;
      const answer = await router.wake(user);
      hanging--;
      return answer.status;
    });
    await eventually('both hang', () => eventsOf(folderOf('never-answers'), 'chat').length === 2);
    for (const user of ['b', 'c', 'd']) {
      await router.put(user, fixtureMachine(folderOf(user)));
      assert.equal((await router.wake(user)).status, 202);
    }
    assert.equal(hanging, 3);
    assert.deepEqual(await Promise.all(hung), [503, 502, 502]);
  });

  test('is given up after a while: waiting wakes get 504, and the next wake starts it again', async (t) => {
    const router = await startBench(t, { settings: { ROUTER_WAKE_TIMEOUT_MS: '300' } });
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder, 'unhealthy'));
    const wakes: Promise<{ status: number }>[] = [];
    // The limit of a start is four times that of a wake. Each wake is sent before the previous one is answered, so that
    // one is waiting when the limit is reached.
    while (eventsOf(folder, 'start').length < 2) {
      wakes.push(router.wake(USER));
      await delay(100);
    }
    const statuses = (await Promise.all(wakes)).map(({ status }) => status);
    assert.ok(statuses.includes(503) && statuses.includes(504), String(statuses));
    assert.equal(eventsOf(folder, 'second').length, 0);
  });
});
