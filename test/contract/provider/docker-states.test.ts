import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { DockerSpec } from '../../../src/router/providers/docker.ts';
import { eventually } from '../../support/eventually.ts';
import { type DockerUnderTest, openDockerUnderTest } from './docker-under-test.ts';
import { advancing, healthOf, patient, rejectionOf, start } from './under-test.ts';

async function open(t: TestContext, sleep?: DockerSpec['sleep']): Promise<DockerUnderTest> {
  const underTest = await openDockerUnderTest(sleep);
  t.after(() => underTest.close());
  return underTest;
}

const failureOf = async (underTest: DockerUnderTest) => (await rejectionOf(start(underTest))).message;

describe('a container', () => {
  test('that was never started, or exited, is started', async (t) => {
    for (const status of ['created', 'exited'] as const) {
      const underTest = await open(t);
      await underTest.engine.set('neo', status);
      assert.equal((await start(underTest)).cold, true);
      assert.equal(underTest.container.status, 'running');
    }
  });

  test('is paused and unpaused where its specification says so, and its daemon goes on as it was', async (t) => {
    const underTest = await open(t, 'pause');
    const { url } = await start(underTest);
    for (let round = 0; round < 2; round++) {
      await underTest.provider.stop(underTest.machine);
      assert.equal(underTest.container.status, 'paused');
      const again = await start(underTest);
      assert.deepEqual([again.url, again.cold], [url, true]);
      assert.equal(await healthOf(url), 200);
    }
    assert.deepEqual([underTest.container.starts, underTest.container.daemon.boots], [1, 1]);
  });

  test('that somebody paused is unpaused', async (t) => {
    const underTest = await open(t);
    await start(underTest);
    await underTest.engine.set('neo', 'paused');
    assert.equal((await start(underTest)).cold, true);
    assert.equal(underTest.engine.count('unpause'), 1);
  });

  test('whose daemon never got healthy is stopped and not paused: it would come back as it was', async (t) => {
    const underTest = await open(t, 'pause');
    underTest.setHealthy(false);
    const abort = new AbortController();
    const heard: string[] = [];
    const starting = underTest.provider.start(underTest.machine, abort.signal, (words) => heard.push(words));
    await eventually('it waits', () => heard.some((words) => /healthz answered 500/.test(words)));
    abort.abort(new Error('too long'));
    await rejectionOf(starting);
    assert.equal(underTest.container.status, 'exited');
  });

  test('that is being removed, is dead, or does not exist is not waited for', async (t) => {
    const underTest = await open(t);
    for (const status of ['removing', 'dead'] as const) {
      await underTest.engine.set('neo', status);
      assert.equal(await failureOf(underTest), `the container "neo" is ${status}`);
    }
    underTest.engine.remove('neo');
    assert.match(await failureOf(underTest), /has no such container; it answered 404: No such container: neo$/);
    assert.equal(underTest.engine.count('start'), 0);
  });

  test('that dies at once fails its start with exit code and last words, in which secrets are hidden', async (t) => {
    for (const tty of [false, true]) {
      const underTest = await open(t);
      Object.assign(underTest.container, { tty, oomKilled: tty });
      const says = `first line\r\nno model at ${underTest.canaries[1]} for ${underTest.machine.token}\n`;
      underTest.container.diesAtOnce = { code: 7, says };
      assert.equal(
        await failureOf(underTest),
        `the container "neo" exited with code 7${tty ? ', out of memory' : ''} before its daemon was ready: first line | no model at [redacted] for [redacted]`,
      );
    }
  });

  test('that dies while its daemon is waited for fails its start', async (t) => {
    const underTest = await open(t);
    underTest.setHealthy(false);
    const heard: string[] = [];
    const starting = start(underTest, heard);
    await eventually('it waits', () => heard.some((words) => /healthz answered 500/.test(words)));
    underTest.container.log = 'the disk is full';
    await underTest.crash();
    const error = await rejectionOf(advancing(underTest, starting));
    assert.match(error.message, /exited with code 137 before its daemon was ready: the disk is full$/);
  });

  test('with a health check of its own is judged by its daemon, and its check is quoted', async (t) => {
    const underTest = await open(t);
    underTest.container.health = 'unhealthy';
    underTest.setHealthy(false);
    const heard: string[] = [];
    const starting = start(underTest, heard);
    const words =
      /^the container "neo" runs \(its health check says unhealthy\), but the daemon at http:\S+ is not ready: \/h/;
    await eventually('it is quoted', () => heard.some((said) => words.test(said)));
    underTest.setHealthy(true);
    await starting;
  });

  test('whose port is neither published nor on a network cannot be reached, and it is said how to publish it', async (t) => {
    const underTest = await open(t);
    underTest.container.published = undefined;
    assert.match(await failureOf(underTest), /port 8080 is neither published .*docker run -p 127\.0\.0\.1::8080$/);
    assert.equal(underTest.running(), 0, 'what was started for nothing is stopped');
  });
});

describe('an engine', () => {
  test('that is away is named with its address and the reason', async (t) => {
    const underTest = await open(t);
    const { machine } = underTest;
    const socket = '/nowhere/docker.sock';
    const away = { ...machine, spec: { ...machine.spec, socket } } as typeof machine;
    const error = await rejectionOf(
      advancing(
        underTest,
        underTest.provider.start(away, patient(), () => {}),
      ),
    );
    assert.equal(error.message, `the Docker engine at unix://${socket} cannot be reached: connect ENOENT ${socket}`);
  });

  test('that stumbles is asked again, but not for ever', async (t) => {
    const words = { status: 500, body: { message: 'the storage driver is busy' } };
    for (const how of [words, 'reset', 'garbage'] as const) {
      const underTest = await open(t);
      underTest.engine.next('inspect', how, 3);
      await advancing(underTest, start(underTest));
      underTest.engine.next('inspect', how, 4);
      const error = await rejectionOf(advancing(underTest, start(underTest)));
      assert.match(
        error.message,
        { reset: /cannot be reached: /, garbage: /not JSON; it answered 200: <html>not what/, '': / 500: the storage/ }[
          typeof how === 'string' ? how : ''
        ]!,
      );
    }
  });

  test('that loses the answer to a start has started the container once', async (t) => {
    const underTest = await open(t);
    underTest.engine.next('start', 'lost');
    assert.equal((await advancing(underTest, start(underTest))).cold, true);
    assert.deepEqual([underTest.container.starts, underTest.engine.count('start')], [1, 1]);
  });

  test('that refuses a start for good is quoted, and not asked twice', async (t) => {
    const underTest = await open(t);
    const message = 'driver failed programming external connectivity: port is already allocated';
    underTest.engine.next('start', { status: 500, body: { message } });
    assert.match(
      await failureOf(underTest),
      /^the container "neo" did not start: .* refused; it answered 500: driver fail/,
    );
    assert.equal(underTest.engine.count('start'), 1);
  });

  test('that answers a conflict has the container looked at again', async (t) => {
    const underTest = await open(t);
    underTest.engine.next('start', { status: 409, body: { message: 'container is marked for something' } }, 5);
    await advancing(underTest, start(underTest));
    assert.equal(underTest.container.starts, 1);
    assert.equal(underTest.engine.count('start'), 6);
  });

  test('that cannot pause says so when the machine should sleep', async (t) => {
    const underTest = await open(t, 'pause');
    await start(underTest);
    underTest.engine.next('pause', { status: 500, body: { message: 'freezer cgroup is missing' } });
    const error = await rejectionOf(underTest.provider.stop(underTest.machine));
    assert.match(error.message, /could not be stopped: the container "neo" did not pause: .*freezer cgroup is missing/);
  });

  test('is spoken to in its own version, also after it was replaced by another one', async (t) => {
    const underTest = await open(t);
    await start(underTest);
    assert.ok(underTest.engine.seen.every(({ url }) => /^\/(_ping$|v1\.51\/)/.test(url.pathname)));
    assert.equal(underTest.engine.count('ping'), 1);
    underTest.engine.next('inspect', { status: 400, body: { message: 'client version 1.51 is too new.' } });
    await start(underTest);
    assert.equal(underTest.engine.count('ping'), 2);
  });

  test('is spoken to over TCP as well', async (t) => {
    const underTest = await openDockerUnderTest(undefined, { tcp: true });
    t.after(() => underTest.close());
    assert.equal(await healthOf((await start(underTest)).url), 200);
    await underTest.provider.stop(underTest.machine);
    assert.equal(underTest.running(), 0);
  });

  test('that says no version is spoken to without one', async (t) => {
    const underTest = await open(t);
    underTest.engine.next('ping', { status: 404, body: '' });
    await start(underTest);
    assert.ok(underTest.engine.seen.some(({ url }) => url.pathname === '/containers/neo/start'));
  });
});
