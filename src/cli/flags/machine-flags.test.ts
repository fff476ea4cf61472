import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAEMON_PROVIDERS } from '../../router/providers/descriptors.ts';
import { machineOf, type PutFlags } from './machine-flags.ts';
import { UsageError } from './usage-error.ts';

const DAEMONS = DAEMON_PROVIDERS.map(({ name }) => name).join(', ');

test('a command becomes a process machine that runs where it was typed', () => {
  const flags = {
    provider: 'process',
    command: ['node', 'my-agent.js', '--flag', ''],
    env: ['A=1', 'B=x=y', 'C='],
    port: '8080',
    foreignListener: true,
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
      foreign_listener: true,
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

test('the name of an agent and a folder are enough for a machine that is run for each wake', () => {
  assert.deepEqual(machineOf({ provider: 'claude', dir: '.' }, '/here'), {
    provider: 'command',
    spec: { preset: 'claude', cwd: '/here' },
  });
  assert.deepEqual(machineOf({ provider: 'codex' }, '/here').spec, { preset: 'codex', cwd: '/here' });
  const more = { bin: './claude', command: ['--model', 'small'], env: ['A=1'], timeoutSeconds: '60' };
  assert.deepEqual(machineOf({ provider: 'claude', ...more, dir: 'sub' }, '/here').spec, {
    ...{ preset: 'claude', cwd: '/here/sub', bin: '/here/claude', args: ['--model', 'small'] },
    ...{ env: { A: '1' }, timeout_seconds: 60 },
  });
  assert.deepEqual(machineOf({ provider: 'webhook', url: 'https://x/?a=1', allowPrivate: true }, '/here').spec, {
    ...{ preset: 'webhook', url: 'https://x/?a=1', allow_private: true },
  });
});

test('a container, and a machine at Fly, are named', () => {
  assert.deepEqual(machineOf({ provider: 'docker', container: 'neo', port: '8080' }, '/here').spec, {
    ...{ container: 'neo', port: 8080 },
  });
  assert.deepEqual(machineOf({ provider: 'fly', app: 'my-agents', machineId: 'e286' }, '/here').spec, {
    ...{ app: 'my-agents', machine_id: 'e286' },
  });
  const docker = { provider: 'docker', container: 'neo', port: '8080', socket: '/run/docker.sock', sleep: 'pause' };
  assert.deepEqual(machineOf(docker, '/here').spec, {
    ...{ container: 'neo', port: 8080, socket: '/run/docker.sock', sleep: 'pause' },
  });
  const fly = { provider: 'fly', app: 'my-agents', machineId: 'e286', sleep: 'stop', leaseNonce: '5c35', port: '9' };
  assert.deepEqual(machineOf(fly, '/here').spec, {
    ...{ app: 'my-agents', machine_id: 'e286', port: 9, sleep: 'stop', lease_nonce: '5c35' },
  });
});

test('what a process may use is said with a flag for each limit', () => {
  const limits = { memoryMb: '512', processes: '20', openFiles: '1024', niceness: '10' };
  assert.deepEqual(machineOf({ provider: 'process', command: ['a'], ...limits }, '/here').spec, {
    ...{ command: ['a'], cwd: '/here' },
    limits: { memory_mb: 512, processes: 20, open_files: 1024, niceness: 10 },
  });
});

test('flags that are missing, or belong to the other provider, are refused by name', () => {
  const cases: [PutFlags, RegExp][] = [
    [
      { provider: 'Fly' },
      new RegExp(`--provider must be one of ${DAEMONS}, neo, or the name of a preset such as claude \\(got "Fly"\\)`),
    ],
    [{ provider: 'command' }, /--provider must be one of http, process/],
    [{ provider: 'fly', app: 'a' }, /--machine-id is missing; --provider fly needs the id of the Fly machine/],
    [{ provider: 'docker', container: 'c' }, /--port is missing; --provider docker needs/],
    [{ provider: 'docker', container: 'c', port: '1', sleep: 'suspend' }, /--sleep must be one of stop, pause/],
    [{ provider: 'fly', app: 'a', machineId: 'e', sleep: 'pause' }, /--sleep must be one of suspend, stop/],
    [{ provider: 'process', command: ['a'], memoryMb: '1' }, /--memory-mb must be a whole number from 16/],
    [{ provider: 'http', url: 'http://x', niceness: '1' }, /--niceness needs --provider process/],
    [{ provider: 'claude', container: 'c' }, /--container needs --provider docker; omit it with --provider claude/],
    [{ provider: 'http', url: 'http://x', bin: 'x' }, /--bin needs --provider a preset/],
    [{ provider: 'claude', cwd: '/', dir: '/' }, /--cwd and --dir are the same/],
    [{ provider: 'http' }, /--url is missing/],
    [{ provider: 'process' }, /the command is missing; write it after two dashes/],
    [{ provider: 'http', url: 'http://x', command: ['node'] }, /a command after -- needs --provider process/],
    [{ provider: 'http', url: 'http://x', cwd: '/' }, /--cwd needs --provider process/],
    [{ provider: 'process', command: ['a'], url: 'http://x' }, /--url needs --provider http/],
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
    { provider: 'fly', app: 'a', machineId: 'e', leaseNonce: 'canary of a lease' },
  ]) {
    assert.throws(
      () => machineOf(flags, '/here'),
      (error) => error instanceof Error && !error.message.includes('canary'),
    );
  }
});
