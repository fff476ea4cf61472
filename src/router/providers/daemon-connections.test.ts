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
import { type Listeners, ListenerWatch, parseLsof } from './listeners.ts';

const USER = 'alice';
const isLinux = process.platform === 'linux';

/** A program that takes a port, answers every request with success and records what it receives. */
async function startForeignListener(t: TestContext, port: number) {
  const foreign = { received: '', connections: 0, port: 0 };
  const server = createServer((socket) => {
    foreign.connections++;
    socket.setEncoding('latin1').on('error', () => {});
    socket.on('data', (text) => {
      foreign.received += text;
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}');
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  foreign.port = (server.address() as AddressInfo).port;
  atEnd(t, () => server.close());
  return foreign;
}

const portsOf = (folder: string) => eventsOf(folder, 'start').map(({ env }) => Number(env?.PORT));

describe('a foreign listener on the port of a process machine', () => {
  test('that took the port before the program receives no byte; another port is tried', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder, 'slow-once'));
    const woken = router.wake(USER);
    await eventually('the first one runs', () => eventsOf(folder, 'slow').length > 0);
    const foreign = await startForeignListener(t, portsOf(folder)[0]!);
    const answer = await woken;
    assert.equal(foreign.received, '');
    assert.equal(answer.status, 202, answer.text);
    const [first, second, ...more] = portsOf(folder);
    assert.deepEqual([first, more.length], [foreign.port, 0]);
    assert.notEqual(second, first);
    assert.ok(!isAlive(eventsOf(folder, 'slow')[0]!.pid), 'the program without a port is ended');
    assert.equal(eventsOf(folder, 'chat').length, 1);
  });

  test('that takes a port given up by the program receives nothing either', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    await router.put(USER, fixtureMachine(folder));
    assert.equal((await router.wake(USER)).status, 202);
    process.kill(eventsOf(folder, 'start')[0]!.pid, 'SIGUSR2');
    await eventually('the program no longer listens', () => eventsOf(folder, 'deaf').length > 0);
    const foreign = await startForeignListener(t, portsOf(folder)[0]!);
    const answer = await router.wake(USER);
    assert.equal(foreign.received, '');
    assert.equal(answer.status, 202, answer.text);
    assert.equal(eventsOf(folder, 'chat').length, 2);
    assert.equal(eventsOf(folder, 'start').length, 2);
  });

  test('on the port of the specification stops the start, and the error names the program', async (t) => {
    const router = await startBench(t);
    const foreign = await startForeignListener(t, 0);
    const machine = fixtureMachine(temporaryFolder(t));
    await router.put(USER, { ...machine, spec: { ...machine.spec, port: foreign.port } });
    const answer = await router.wake(USER);
    assert.equal(answer.status, 503);
    const { message } = answer.json.error;
    const start = `port ${foreign.port} of the machine is taken by another program: `;
    assert.ok(message.startsWith(start), message);
    if (isLinux)
      assert.match(message.slice(start.length), new RegExp(`^\\S+ \\(pid ${process.pid}, user \\d+\\) listens on it$`));
    assert.equal(foreign.received, '');
  });

  test('is accepted when the specification allows a foreign listener', async (t) => {
    const router = await startBench(t);
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder, 'slow-once');
    await router.put(USER, { ...machine, spec: { ...machine.spec, foreign_listener: true } });
    const woken = router.wake(USER);
    await eventually('the program runs', () => eventsOf(folder, 'slow').length > 0);
    const other = await startForeignListener(t, portsOf(folder)[0]!);
    assert.equal((await woken).status, 200);
    assert.match(other.received, /POST \/chat/);
  });
});

describe('a daemon that reports its port', () => {
  test('is reached there, also by the next router after a crash', async (t) => {
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

  test('gets no report channel when the specification names a port', async (t) => {
    const router = await startBench(t);
    const foreign = createServer().listen(0, '127.0.0.1');
    await once(foreign, 'listening');
    const { port } = foreign.address() as AddressInfo;
    await new Promise((resolve) => foreign.close(resolve));
    const folder = temporaryFolder(t);
    const machine = fixtureMachine(folder);
    await router.put(USER, { ...machine, spec: { ...machine.spec, port } });
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal(eventsOf(folder, 'start')[0]?.env?.REVEILLE_PORT_FD, undefined);
  });
});

/** Programs that let another one listen, in a separate session or in separate namespaces. */
const WRAPPERS = {
  setsid: ['setsid', '--wait'],
  bwrap: [
    ...['bwrap', '--bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-pid', '--unshare-user'],
    ...['--new-session', '--die-with-parent'],
  ],
};

describe('a listening program belongs to the machine', { skip: !isLinux && 'these wrappers are for Linux' }, () => {
  for (const [name, wrapper] of Object.entries(WRAPPERS)) {
    const runs = () => spawnSync(wrapper[0]!, [...wrapper.slice(1), 'true']).status === 0;
    const skip = needs(name === 'bwrap' ? 'bubblewrap' : 'setsid') || (!runs() && `${name} does not work here`);
    for (const mode of [undefined, 'says-port']) {
      const reporting = mode === undefined ? '' : ', and reports its port';
      test(`that listens behind ${name}${reporting}`, { skip }, async (t) => {
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

describe('the owner of a listening socket', () => {
  const listening = async (t: TestContext, host: string): Promise<Server> => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    atEnd(t, () => server.close());
    return server;
  };

  /** Nothing of this process is seen. Another process may have the port of a closed socket, or of another address. */
  const assertNotSeen = (found: Listeners) => {
    if (found.seen === 'foreign') assert.doesNotMatch(found.owner, new RegExp(`pid ${process.pid}\\b`));
    else assert.deepEqual(found, { seen: 'none' });
  };

  for (const platform of ['linux', 'darwin'] as const) {
    const skip = platform === 'linux' ? !isLinux && 'there is no /proc' : needs('lsof');
    const how = platform === 'linux' ? '/proc' : 'lsof';
    test(`is found with ${how}, on every address that 127.0.0.1 reaches`, { skip }, async (t) => {
      const idle = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
      atEnd(t, () => idle.kill('SIGKILL'));
      for (const host of ['127.0.0.1', '0.0.0.0', '::', '::ffff:127.0.0.1']) {
        const server = await listening(t, host);
        const { port } = server.address() as AddressInfo;
        const own = await new ListenerWatch(process.pid, platform).on(port);
        assert.equal(own.seen, 'own', host);
        assert.deepEqual(await new ListenerWatch(process.pid, platform).on(port), own);
        const other = await new ListenerWatch(idle.pid!, platform).on(port);
        assert.ok(other.seen === 'foreign' && other.owner.includes(`pid ${process.pid}`), JSON.stringify(other));
        await new Promise((resolve) => server.close(resolve));
        assertNotSeen(await new ListenerWatch(idle.pid!, platform).on(port));
      }
      const apart = await listening(t, '127.0.0.2');
      const { port } = apart.address() as AddressInfo;
      assertNotSeen(await new ListenerWatch(idle.pid!, platform).on(port));
    });
  }

  test('is read from the output of lsof', () => {
    const lsofOutput =
      'p4711\ncnode\nu501\nf21\nn127.0.0.1:8080\nf22\nn[::1]:8080\np99\ncother\nu0\nf3\nn192.168.1.4:8080\n';
    assert.deepEqual(parseLsof(lsofOutput, 8080), [{ pid: 4711, command: 'node', uid: 501 }]);
    assert.deepEqual(parseLsof('p1\nclaunchd\nu0\nf3\nn*:8080\n', 8080), [{ pid: 1, command: 'launchd', uid: 0 }]);
    assert.deepEqual(parseLsof('', 8080), []);
  });
});
