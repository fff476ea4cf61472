import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Installation, sharedOwner, startAgent, startInstallation } from '../testing/installation.ts';
import { UsageError } from '../usage-error.ts';
import { machineOf, type PutFlags } from './machine.ts';

test('a command becomes a process machine that runs where it was typed', () => {
  const flags = {
    provider: 'process',
    command: ['node', 'my-agent.js', '--flag', ''],
    env: ['A=1', 'B=x=y', 'C='],
    port: '8080',
    healthPath: '/up',
    idleSeconds: '60',
    token: 'a-token-of-sixteen',
    state: 'provisioning',
  };
  assert.throws(() => machineOf(flags, '/here'), /spec\.command\.3/);
  assert.deepEqual(machineOf({ ...flags, command: ['node', 'my-agent.js'], cwd: 'sub' }, '/here'), {
    provider: 'process',
    spec: {
      command: ['node', 'my-agent.js'],
      cwd: '/here/sub',
      env: { A: '1', B: 'x=y', C: '' },
      port: 8080,
      health_path: '/up',
    },
    idle_seconds: 60,
    state: 'provisioning',
    token: 'a-token-of-sixteen',
  });
});

test('an address becomes an http machine', () => {
  assert.deepEqual(machineOf({ provider: 'http', url: 'http://127.0.0.1:8080' }, '/here'), {
    provider: 'http',
    spec: { url: 'http://127.0.0.1:8080' },
  });
});

test('flags that are missing, or belong to the other provider, are refused by name', () => {
  const cases: [PutFlags, RegExp][] = [
    [{ provider: 'fly' }, /--provider must be one of http, process \(got "fly"\)/],
    [{ provider: 'http' }, /--url is missing/],
    [{ provider: 'process' }, /the command is missing; write it after two dashes/],
    [{ provider: 'http', url: 'http://x', command: ['node'] }, /a command after -- goes only with --provider process/],
    [{ provider: 'http', url: 'http://x', cwd: '/' }, /--cwd goes only with --provider process/],
    [{ provider: 'process', command: ['a'], url: 'http://x' }, /--url goes only with --provider http/],
    [{ provider: 'process', command: ['a'], env: ['A'] }, /--env must look like NAME=value/],
    [{ provider: 'process', command: ['a'], env: ['=secret'] }, /--env must look like NAME=value/],
    [{ provider: 'process', command: ['a'], port: '0' }, /--port must be a whole number from 1 to 65535/],
    [{ provider: 'process', command: ['a'], state: 'deleted' }, /--state must be one of active, provisioning/],
    [{ provider: 'process', command: ['a'], idleSeconds: '1h' }, /--idle-seconds must be a whole number/],
  ];
  for (const [flags, said] of cases) {
    assert.throws(
      () => machineOf(flags, '/here'),
      (error) => error instanceof UsageError && said.test(error.message),
      JSON.stringify(flags),
    );
  }
});

test('neither a token nor the value of a variable is repeated in an error', () => {
  for (const flags of [
    { provider: 'http', url: 'http://x', token: 'canary' },
    { provider: 'process', command: ['a'], env: ['bad name=canary'] },
    { provider: 'process', command: ['a'], env: ['=canary'] },
  ]) {
    assert.throws(
      () => machineOf(flags, '/here'),
      (error) => error instanceof Error && !error.message.includes('canary'),
    );
  }
});

describe('reveille machine', () => {
  let house: Installation;
  const shared = sharedOwner();
  before(async () => {
    house = await startInstallation(shared);
  });
  after(() => shared.end());

  test('put registers the local machine and shows the minted token once', async (t) => {
    const agent = await startAgent(t);
    const said = await house.run('machine', 'put', '--provider', 'http', '--url', agent.url);
    assert.match(said, new RegExp(`^Machine of ${house.label}\n`));
    assert.match(said, /it is not shown again:\n {2}[\w-]{40,}\n$/);
    const again = await house.run('machine', 'put', '--provider', 'http', '--url', agent.url);
    assert.doesNotMatch(again, /not shown again/);
    const shown = JSON.parse(await house.run('machine', 'show', '--json'));
    assert.equal(shown.user_id, house.label);
    assert.equal(shown.state, 'active');
    assert.ok(!('token' in shown));
  });

  test('put takes everything after -- as the command, in front of which a user may be named', async () => {
    const words = ['machine', 'put', 'alice', '--provider', 'process', '--env', 'A=1', '--json'];
    const made = JSON.parse(await house.run(...words, '--', 'node', 'agent.js', '--json', '--help', '--'));
    assert.equal(made.user_id, 'alice');
    assert.deepEqual(made.spec.command, ['node', 'agent.js', '--json', '--help', '--']);
    assert.equal(made.spec.cwd, process.cwd());
    const own = JSON.parse(await house.run('machine', 'put', '--provider', 'process', '--json', '--', 'node', 'x.js'));
    assert.equal(own.user_id, house.label);
  });

  test('list shows every machine: a line each for people, a JSON line each for programs', async () => {
    await house.run('machine', 'put', 'bob', '--provider', 'http', '--url', 'http://127.0.0.1:1/base');
    const text = await house.run('machine', 'list');
    assert.match(text, /^USER +STATE +WHERE\n/);
    assert.match(text, /\nbob +active +http:\/\/127\.0\.0\.1:1\/base\n/);
    const lines = (await house.run('machine', 'list', '--json')).trimEnd().split('\n');
    assert.ok(lines.map((line) => JSON.parse(line).user_id).includes('bob'));
  });

  test('suspend, restore and delete say what the machine is then', async () => {
    await house.run('machine', 'put', 'carol', '--provider', 'http', '--url', 'http://127.0.0.1:1');
    assert.equal(await house.run('machine', 'suspend', 'carol'), 'Suspended the machine of carol; it is suspended\n');
    assert.equal(await house.run('machine', 'restore', 'carol'), 'Restored the machine of carol; it is active\n');
    assert.equal(await house.run('machine', 'delete', 'carol'), 'Deleted the machine of carol; it is deleted\n');
    assert.doesNotMatch(await house.run('machine', 'list'), /carol/);
    const { status, stderr } = await house.attempt(['machine', 'restore', 'carol']);
    assert.equal(status, 1);
    assert.match(stderr, /^error: the machine of carol is deleted/);
  });

  test('a machine that is not there fails with 1, a user id that cannot be one with 2', async () => {
    const absent = await house.attempt(['machine', 'show', 'nobody', '--json']);
    assert.equal(absent.status, 1);
    assert.equal(JSON.parse(absent.stderr).error.code, 'not_found');
    const wrong = await house.attempt(['machine', 'show', '../admin']);
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /the user id must be 1 to 64/);
    assert.equal((await house.attempt(['machine', 'put', '--url', 'http://x'])).status, 2);
    assert.equal((await house.attempt(['machine', 'delete'])).status, 2);
  });

  test('a router that does not run, and one that refuses the token, are told apart', async () => {
    const refused = await house.attempt(['machine', 'list'], { env: { ROUTER_ADMIN_TOKEN: 'not-the-token-at-all' } });
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /the router at .* does not accept this ROUTER_ADMIN_TOKEN/);
    const other = await house.attempt(['machine', 'list'], {
      env: {
        REVEILLE_HOME: `${house.home.path}-none`,
        ROUTER_PORT: String(await freePort()),
        ROUTER_ADMIN_TOKEN: 'x'.repeat(16),
      },
    });
    assert.equal(other.status, 1);
    assert.match(
      other.stderr,
      /cannot reach the router at .* \(ECONNREFUSED\): is it running\? start it with "reveille up"/,
    );
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}
