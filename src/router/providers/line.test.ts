import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts';
import { needs } from '../../../test/support/tools.ts';
import { eventsOf, fixtureMachine, isAlive, startBench } from '../testing/bench.ts';
import { startRouterProcess } from '../testing/router-process.ts';
import { ListenerWatch, parseLsof } from './listeners.ts';

const USER = 'alice';
const isLinux = process.platform === 'linux';

/** Somebody who took a port: a program that says yes to everything and keeps what it is told. */
async function startStranger(t: TestContext, port: number) {
  const stranger = { heard: '', connections: 0, port: 0 };
  const server = createServer((socket) => {
    stranger.connections++;
    socket.setEncoding('latin1').on('error', () => {});
    socket.on('data', (text) => {
      stranger.heard += text;
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}');
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  stranger.port = (server.address() as AddressInfo).port;
  atEnd(t, () => server.close());
  return stranger;
}

const portsOf = (folder: string) => eventsOf(folder, 'start').map(({ env }) => Number(env?.PORT));

describe('what listens where a process machine should', () => {
  test('a stranger who took the port before the program did hears not a byte; another port is tried', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder, 'slow-once'));
    const woken = router.wake(USER);
    await eventually('the first one runs', () => eventsOf(folder, 'slow').length > 0);
    const stranger = await startStranger(t, portsOf(folder)[0]!);
    const answer = await woken;
    assert.equal(stranger.heard, '');
    assert.equal(answer.status, 202, answer.text);
    const [first, second, ...more] = portsOf(folder);
    assert.deepEqual([first, more.length], [stranger.port, 0]);
    assert.notEqual(second, first);
    assert.ok(!isAlive(eventsOf(folder, 'slow')[0]!.pid), 'the one without a port is ended');
    assert.equal(eventsOf(folder, 'chat').length, 1);
  });

  test('a stranger who takes the port that a running program gave up hears nothing either', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder));
    assert.equal((await router.wake(USER)).status, 202);
    process.kill(eventsOf(folder, 'start')[0]!.pid, 'SIGUSR2');
    await eventually('it listens no more', () => eventsOf(folder, 'deaf').length > 0);
    const stranger = await startStranger(t, portsOf(folder)[0]!);
    const answer = await router.wake(USER);
    assert.equal(stranger.heard, '');
    assert.equal(answer.status, 202, answer.text);
    assert.equal(eventsOf(folder, 'chat').length, 2);
    assert.equal(eventsOf(folder, 'start').length, 2);
  });

  test('on the port of the specification stops the start, with who it is', async (t) => {
    const router = await startBench(t);
    const stranger = await startStranger(t, 0);
    const machine = fixtureMachine(temporaryFolder(t));
    await router.put(USER, { ...machine, spec: { ...machine.spec, port: stranger.port } });
    const answer = await router.wake(USER);
    assert.equal(answer.status, 503);
    const { message } = answer.json.error;
    const start = `port ${stranger.port} of the machine is taken by another program: `;
    assert.ok(message.startsWith(start), message);
    if (isLinux)
      assert.match(message.slice(start.length), new RegExp(`^\\S+ \\(pid ${process.pid}, user \\d+\\) listens on it$`));
    assert.equal(stranger.heard, '');
  });

  test('is the word of another program where the specification says that it listens for it', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder, 'slow-once');
    await router.put(USER, { ...machine, spec: { ...machine.spec, foreign_listener: true } });
    const woken = router.wake(USER);
    await eventually('the program runs', () => eventsOf(folder, 'slow').length > 0);
    const other = await startStranger(t, portsOf(folder)[0]!);
    assert.equal((await woken).status, 200);
    assert.match(other.heard, /POST \/chat/);
  });
});

describe('a daemon that says its port itself', () => {
  test('is reached there, also by the next router when its own was killed', async (t) => {
    const dataDir = temporaryFolder(t);
    const folder = temporaryFolder(t);
    const router = await startRouterProcess(t, dataDir);
    await router.put(USER, fixtureMachine(folder, 'says-port'));
    assert.equal((await router.wake(USER)).status, 202);
    await router.kill();
    const next = await startBench(t, { settings: { ROUTER_DATA_DIR: dataDir } });
    const answer = await next.wake(USER);
    assert.equal(answer.status, 202, answer.text);
    const [start, ...more] = eventsOf(folder, 'start');
    assert.equal(more.length, 0);
    const [listening] = eventsOf(folder, 'listening') as unknown as { port: string }[];
    assert.notEqual(listening?.port, start?.env?.PORT);
    assert.equal(next.notices[0]?.daemon_url, `http://127.0.0.1:${listening?.port}`);
  });

  test('is given no channel for it when the specification names a port', async (t) => {
    const router = await startBench(t);
    const stranger = createServer().listen(0, '127.0.0.1');
    await once(stranger, 'listening');
    const { port } = stranger.address() as AddressInfo;
    await new Promise((resolve) => stranger.close(resolve));
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder);
    await router.put(USER, { ...machine, spec: { ...machine.spec, port } });
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(eventsOf(folder, 'start')[0]?.env?.REVEILLE_PORT_FD, undefined);
  });
});

/** Programs that have another one listen: in a session of its own, or in namespaces of its own. */
const WRAPPERS = {
  setsid: ['setsid', '--wait'],
  bwrap: [
    ...['bwrap', '--bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-pid', '--unshare-user'],
    ...['--new-session', '--die-with-parent'],
  ],
};

describe('a program belongs to the machine', { skip: !isLinux && 'these wrappers are for Linux' }, () => {
  for (const [name, wrapper] of Object.entries(WRAPPERS)) {
    const runs = () => spawnSync(wrapper[0]!, [...wrapper.slice(1), 'true']).status === 0;
    const skip = needs(name === 'bwrap' ? 'bubblewrap' : 'setsid') || (!runs() && `${name} does not work here`);
    for (const mode of [undefined, 'says-port']) {
      const says = mode === undefined ? '' : ', and says its port';
      test(`that listens behind ${name}${says}`, { skip }, async (t) => {
        const router = await startBench(t);
        const folder = temporaryFolder(t);
        const machine = fixtureMachine(folder, mode);
        const command = [...wrapper, ...machine.spec.command];
        await router.put(USER, { ...machine, spec: { ...machine.spec, command } });
        const answer = await router.wake(USER);
        assert.equal(answer.status, 202, answer.text);
        assert.equal(eventsOf(folder, 'start').length, 1);
      });
    }
  }
});

describe('who listens on a port', () => {
  const listening = async (t: TestContext, host: string): Promise<Server> => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    atEnd(t, () => server.close());
    return server;
  };

  for (const platform of ['linux', 'darwin'] as const) {
    const skip = platform === 'linux' ? !isLinux && 'there is no /proc' : needs('lsof');
    const how = platform === 'linux' ? '/proc' : 'lsof';
    test(`is told apart by ${how}, on every address that 127.0.0.1 leads to`, { skip }, async (t) => {
      const idle = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
      atEnd(t, () => idle.kill('SIGKILL'));
      for (const host of ['127.0.0.1', '0.0.0.0', '::', '::ffff:127.0.0.1']) {
        const server = await listening(t, host);
        const { port } = server.address() as AddressInfo;
        const own = await new ListenerWatch(process.pid, platform).on(port);
        assert.equal(own.seen, 'own', host);
        assert.deepEqual(await new ListenerWatch(process.pid, platform).on(port), own);
        const other = await new ListenerWatch(idle.pid!, platform).on(port);
        assert.ok(other.seen === 'stranger' && other.who.includes(`pid ${process.pid}`), JSON.stringify(other));
        await new Promise((resolve) => server.close(resolve));
        assert.deepEqual(await new ListenerWatch(process.pid, platform).on(port), { seen: 'nobody' });
      }
      const apart = await listening(t, '127.0.0.2');
      const { port } = apart.address() as AddressInfo;
      assert.deepEqual(await new ListenerWatch(idle.pid!, platform).on(port), { seen: 'nobody' });
    });
  }

  test('is read from what lsof says', () => {
    const said = 'p4711\ncnode\nu501\nf21\nn127.0.0.1:8080\nf22\nn[::1]:8080\np99\ncother\nu0\nf3\nn192.168.1.4:8080\n';
    assert.deepEqual(parseLsof(said, 8080), [{ pid: 4711, command: 'node', uid: 501 }]);
    assert.deepEqual(parseLsof('p1\nclaunchd\nu0\nf3\nn*:8080\n', 8080), [{ pid: 1, command: 'launchd', uid: 0 }]);
    assert.deepEqual(parseLsof('', 8080), []);
  });
});
