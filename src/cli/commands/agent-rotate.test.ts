import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startReveille } from '../../../test/support/command-line.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type Installation, startInstallation } from '../../../test/support/installation.ts';
import { diceOf, rounds } from '../../../test/support/random/random.ts';
import { atEnd, listening, sharedOwner, temporaryFolder } from '../../../test/support/temporary.ts';
import { createChronosClient } from '../../chronos/client.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { generateKey, readKeyFile, writeKeyFile } from '../../kit/identity/keys.ts';
import { fileIdentity } from '../../kit/identity/rotation.ts';

/** An agent with a key file and an alarm at the chronosd of an installation. */
async function agentAt(t: TestContext, house: Installation, label: string) {
  const home = join(temporaryFolder(t), 'home');
  const keyFile = join(home, 'keys', 'agent.key');
  const key = generateKey();
  writeKeyFile(keyFile, key);
  const env = (url = house.chronos.url) => ({
    MATRIX_USER_ID: label,
    MATRIX_CHRONOS_URL: url,
    MATRIX_CHRONOS_TOKEN: house.secrets.CHRONOS_TOKEN,
  });
  const clientOf = (identity = agentIdentity(label, readKeyFile(keyFile))) =>
    createChronosClient({ url: house.chronos.url, token: house.secrets.CHRONOS_TOKEN, identity });
  const { id } = await clientOf().createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 3600 });
  return { home, keyFile, key, id, env, clientOf };
}

type Point = 'before the request' | 'after the request';

/**
 * A proxy of chronosd. The first rotation hangs: its request is not passed on, or its answer is not.
 *
 * @returns `reached` resolves when it hangs
 */
async function hangingProxy(t: TestContext, target: string, point: Point) {
  const reached = Promise.withResolvers<void>();
  let hung = false;
  const pass = (incoming: IncomingMessage, response: ServerResponse, body: Buffer) => {
    const hangs = !hung && incoming.url === '/v1/agent/auth/rotate';
    hung ||= hangs;
    if (hangs && point === 'before the request') return reached.resolve();
    const { method, headers, url } = incoming;
    const forwarded = request(new URL(url!, target), { method: method!, headers }, (answer) => {
      if (hangs) {
        answer.resume();
        answer.on('end', () => reached.resolve());
        return;
      }
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    forwarded.end(body);
  };
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => pass(incoming, response, Buffer.concat(chunks)));
  });
  atEnd(t, () => server.closeAllConnections());
  return { url: await listening(t, server), reached: reached.promise };
}

describe('reveille agent rotate', () => {
  const shared = sharedOwner();
  let house: Installation;
  before(async () => {
    house = await startInstallation(shared);
  });
  after(() => shared.end());

  test('replaces the key file, keeps the alarms, and ends the old key', async (t) => {
    const agent = await agentAt(t, house, 'ada');
    const { status, stdout, stderr } = await house.attempt(['agent', 'rotate', '--key-file', agent.keyFile], {
      env: agent.env(),
    });
    assert.equal(status, 0, stderr);
    const next = readKeyFile(agent.keyFile);
    const shown = next.publicKeyHex.slice(0, 16);
    assert.match(stdout, new RegExp(`^Rotated to did:matrix:ada:${shown}\n {2}[0-9a-f]{16}… is revoked; alarms`));
    assert.notEqual(next.publicKeyHex, agent.key.publicKeyHex);
    assert.equal(statSync(agent.keyFile).mode & 0o777, 0o600);
    assert.equal(existsSync(`${agent.keyFile}.next`), false);
    assert.ok(!stdout.includes(next.seedHex()));
    assert.equal((await agent.clientOf().getAlarm(agent.id)).id, agent.id);
    const old = agent.clientOf(agentIdentity('ada', agent.key));
    await assert.rejects(old.getAlarm(agent.id), { code: 'forbidden', message: /this key was revoked/ });
  });

  for (const point of ['before the request', 'after the request'] as const)
    test(`killed ${point}, it leaves a usable key, and the next run completes the rotation`, async (t) => {
      const agent = await agentAt(t, house, `killed-${point.split(' ')[0]}`);
      const proxy = await hangingProxy(t, house.chronos.url, point);
      const running = startReveille(t, agent.home, ['agent', 'rotate'], { env: agent.env(proxy.url) });
      await proxy.reached;
      await running.end('SIGKILL');
      assert.equal(readFileSync(agent.keyFile, 'utf8').trim(), agent.key.seedHex());
      const next = readKeyFile(`${agent.keyFile}.next`);

      // Another program with the key file works, and puts the accepted key into its place.
      const list = await house.attempt(['alarm', 'show', agent.id, '--json'], {
        env: { ...agent.env(), MATRIX_EXECUTOR_KEYFILE: agent.keyFile },
      });
      assert.equal(list.status, 0, list.stderr);
      const isDone = point === 'after the request';
      assert.equal(readKeyFile(agent.keyFile).publicKeyHex, (isDone ? next : agent.key).publicKeyHex);

      const again = await house.attempt(['agent', 'rotate', '--key-file', agent.keyFile], { env: agent.env() });
      assert.equal(again.status, 0, again.stderr);
      assert.equal(existsSync(`${agent.keyFile}.next`), false);
      if (!isDone) assert.equal(readKeyFile(agent.keyFile).publicKeyHex, next.publicKeyHex);
      assert.equal((await agent.clientOf().getAlarm(agent.id)).id, agent.id);
    });

  test('a run after a lost answer completes the rotation with the same new key', async (t) => {
    const agent = await agentAt(t, house, 'lost');
    const proxy = await hangingProxy(t, house.chronos.url, 'after the request');
    const running = startReveille(t, agent.home, ['agent', 'rotate'], { env: agent.env(proxy.url) });
    await proxy.reached;
    const meanwhile = await house.attempt(['agent', 'rotate', '--key-file', agent.keyFile], { env: agent.env() });
    assert.equal(meanwhile.status, 1);
    assert.match(meanwhile.stderr, /is in use by process/);
    await running.end('SIGKILL');
    const next = readKeyFile(`${agent.keyFile}.next`);
    const { status, stdout, stderr } = await house.attempt(['agent', 'rotate', '--key-file', agent.keyFile], {
      env: agent.env(),
    });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Completed an earlier rotation to did:matrix:lost:/);
    assert.equal(readKeyFile(agent.keyFile).publicKeyHex, next.publicKeyHex);
  });

  test('a new key that the operator revoked while it waited is replaced by another one', async (t) => {
    const agent = await agentAt(t, house, 'again');
    const next = generateKey();
    writeKeyFile(`${agent.keyFile}.next`, next);
    await agent.clientOf().rotateKey(agentIdentity('again', agent.key), agentIdentity('again', next));
    await house.run('agent', 'revoke', '--label', 'again');
    await house.run('agent', 'enroll', '--label', 'again', '--public-key', agent.key.publicKeyHex);
    const { status, stdout, stderr } = await house.attempt(['agent', 'rotate', '--key-file', agent.keyFile], {
      env: agent.env(),
    });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Rotated to did:matrix:again:/);
    assert.equal((await agent.clientOf().getAlarm(agent.id)).id, agent.id);
  });

  test('killed at random moments, it leaves a usable key each time', async (t) => {
    const dice = diceOf(t);
    const agent = await agentAt(t, house, 'random');
    for (let round = 0; round < rounds(4, 40); round++) {
      const running = startReveille(t, agent.home, ['agent', 'rotate'], { env: agent.env() });
      // Most of a run is the start of the process: the rotation takes some milliseconds after the new key is stored.
      const stored = () => existsSync(`${agent.keyFile}.next`) || running.outcome.status !== null;
      if (dice(2) === 0) await eventually('a new key is stored', stored);
      await delay(dice(2) === 0 ? dice(40) : dice(1200));
      await running.end('SIGKILL');
      const { status, stderr } = await house.attempt(['alarm', 'show', agent.id], {
        env: { ...agent.env(), MATRIX_EXECUTOR_KEYFILE: agent.keyFile },
      });
      assert.equal(status, 0, stderr);
    }
  });

  test('a process that has the old key in memory goes on with the new file', async (t) => {
    const agent = await agentAt(t, house, 'daemon');
    const client = agent.clientOf(fileIdentity('daemon', agent.keyFile));
    assert.equal((await client.getAlarm(agent.id)).id, agent.id);
    for (let round = 0; round < 2; round++) {
      const { status } = await house.attempt(['agent', 'rotate', '--key-file', agent.keyFile], { env: agent.env() });
      assert.equal(status, 0);
      assert.equal((await client.getAlarm(agent.id)).id, agent.id);
    }
  });

  test('a folder of keys is rotated with a line for each, and a failure among them', async (t) => {
    const folder = join(temporaryFolder(t), 'agents');
    mkdirSync(folder);
    for (const label of ['folder-one', 'folder-two']) {
      const key = generateKey();
      writeKeyFile(join(folder, `${label}.key`), key);
      await house.run('agent', 'enroll', '--label', label, '--public-key', key.publicKeyHex);
    }
    writeKeyFile(join(folder, 'unknown.key'), generateKey());
    const before = readKeyFile(join(folder, 'folder-one.key')).publicKeyHex;
    const { status, stdout, stderr } = await house.attempt(['agent', 'rotate', '--keys', folder]);
    assert.equal(status, 1);
    assert.equal(stdout.match(/^Rotated to /gm)?.length, 2);
    assert.match(stdout, /^unknown {2}failed: this key is not accepted for unknown/m);
    assert.match(stderr, /1 of 3 keys were not rotated/);
    assert.notEqual(readKeyFile(join(folder, 'folder-one.key')).publicKeyHex, before);
  });

  test('orphans lists a label without a usable key, and reown moves its alarms or enrols a key', async (t) => {
    const agent = await agentAt(t, house, 'gone');
    await agentAt(t, house, 'heir');
    await house.run('agent', 'revoke', '--label', 'gone');
    const listed = await house.run('agent', 'orphans');
    assert.match(listed, /^LABEL +ALARMS +NEXT FIRE +REVOKED\ngone +1 +in /);
    const key = generateKey();
    const enrolled = await house.run('agent', 'reown', 'gone', '--public-key', key.publicKeyHex);
    assert.match(enrolled, /^Enrolled did:matrix:gone:/);
    assert.equal((await agent.clientOf(agentIdentity('gone', key)).getAlarm(agent.id)).id, agent.id);
    assert.match(await house.run('agent', 'orphans'), /Every waiting alarm has an owner/);
    const refused = await house.attempt(['agent', 'reown', 'gone', '--to', 'heir']);
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /gone has a key that is accepted; revoke it/);
    await house.run('agent', 'revoke', '--label', 'gone');
    assert.equal(await house.run('agent', 'reown', 'gone', '--to', 'heir'), 'Moved 1 alarm of gone to heir\n');
    assert.match(
      await house.run('agent', 'reown', 'gnoe', '--to', 'heir'),
      /^No alarms of gnoe\n {2}"reveille agent orphans"/,
    );
    assert.match(await house.run('agent', 'orphans'), /Every waiting alarm/);
    for (const flags of [[], ['--to', 'heir', '--public-key', key.publicKeyHex], ['--to', 'a b']])
      assert.equal((await house.attempt(['agent', 'reown', 'gone', ...flags])).status, 2);
  });

  test('wrong flags end with 2, and a missing key is not created', async (t) => {
    const home = join(temporaryFolder(t), 'none');
    for (const [flags, said] of [
      [['--keys', home], /cannot be read/],
      [['--keys', home, '--label', 'x'], /excludes/],
      [['--label', 'a b'], /--label must be/],
    ] as const) {
      const { status, stderr } = await house.attempt(['agent', 'rotate', ...flags]);
      assert.equal(status, 2, stderr);
      assert.match(stderr, said);
    }
    mkdirSync(home);
    const file = join(home, 'x.key');
    const missing = await house.attempt(['agent', 'rotate', '--label', 'x', '--key-file', file]);
    assert.equal(missing.status, 1);
    assert.match(missing.stderr, /there is no key at/);
    await eventually('no file is left', () => !existsSync(file) && !existsSync(`${file}.next`));
  });
});
