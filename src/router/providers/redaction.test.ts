import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownSpec } from './descriptors.ts';
import { hiddenMember, lastOutput } from './redaction.ts';

const CANARY = 'Canary7Secret0OfThisTest';
const reference = (name: string) => `\${${name}}`;

test('a secret is hidden everywhere: in arguments, addresses, variables, paths, and in every member that is not public', () => {
  const args = [
    ...[
      'node',
      'agent.js',
      '--api-key',
      'short',
      '--token=short',
      '-H',
      'X-Thing: short',
      'Authorization: Bearer short',
    ],
    ...['--header=X-Api: short', '-u', 'me:short', 'API_KEY=short', '-e', 'ANY=short', '--cookie', 'a=short', CANARY],
    ...['sk-short', 'https://me:short@example.com/?q=short#short', `https://example.com/${CANARY}/up`, 'Cookie: short'],
  ];
  const specs = [
    {
      provider: 'process',
      spec: { command: args, env: { MODEL: 'short' }, health_path: '/up?t=short', later: 'short' },
    },
    { provider: 'command', spec: { preset: 'claude', args, env: { ANY: 'short' } } },
    { provider: 'command', spec: { preset: 'webhook', url: 'https://hooks.example/services/short?short#x' } },
    { provider: 'http', spec: { url: `http://example.com/${CANARY}`, health_path: '/?short' } },
    { provider: 'fly', spec: { app: 'a', machine_id: 'm', lease_nonce: 'short' } },
    { provider: 'another', spec: { anything: 'short' } },
  ];
  for (const one of specs) {
    const text = JSON.stringify(shownSpec(one));
    assert.ok(!text.includes('short') && !text.includes(CANARY), text);
    assert.match(
      hiddenMember(shownSpec(one)) ?? '',
      /^spec\./,
      'a shown placeholder cannot be stored again by mistake',
    );
  }
});

test('members that distinguish machines are shown unchanged', () => {
  const specs = [
    {
      provider: 'process',
      spec: {
        command: [
          '/usr/local/bin/node',
          './agents/MyAgent2026/index.js',
          '--port',
          '8080',
          '--model',
          'small-4-20250929',
        ],
        ...{ cwd: '/srv/agent', env: { API_KEY: reference('MODEL_API_KEY') }, port: 8080, limits: { niceness: 3 } },
        ...{ health_path: '/up', foreign_listener: true },
      },
    },
    {
      provider: 'command',
      spec: { preset: 'claude', cwd: '/w', bin: '/opt/claude', args: ['--verbose', '-p'], timeout_seconds: 5 },
    },
    { provider: 'command', spec: { preset: 'a2a', url: 'http://127.0.0.1:4000', allow_private: true } },
    { provider: 'http', spec: { url: 'http://127.0.0.1:8080/base', health_path: '/healthz' } },
    { provider: 'docker', spec: { container: 'neo', port: 1, socket: '/var/run/docker.sock', sleep: 'pause' } },
    { provider: 'fly', spec: { app: 'my-agents', machine_id: 'e2865013d64987', port: 8080, sleep: 'stop' } },
  ];
  for (const one of specs) {
    assert.deepEqual(shownSpec(one), one.spec);
    assert.equal(hiddenMember(one.spec), undefined);
  }
});

test('the longest word that fits a body is scanned once', () => {
  const command = ['x', 'a:', 'a=', '-', 'http://', 'A1'].map((part) => part.repeat(200_000 / part.length));
  const { command: shown } = shownSpec({ provider: 'process', spec: { command } }) as { command: string[] };
  assert.equal(shown.length, command.length);
});

test('a cut through a surrogate pair leaves text that can be stored', () => {
  for (const tail of ['', 'x']) {
    const text = lastOutput(`${'🔔'.repeat(300)}${tail}`, []);
    assert.ok(text.isWellFormed());
    assert.equal(text.length, 401);
  }
  assert.equal(lastOutput('half \ud83d of one', []), 'half \ufffd of one');
});

test('the quote of a crash has the error, not the stack frames', () => {
  const crash = [
    'node:internal/modules/cjs/loader:1478',
    '  throw err;',
    '  ^',
    '',
    "Error: Cannot find module '/srv/my-agent.js'",
    '    at Module._resolveFilename (node:internal/modules/cjs/loader:1475:15)',
    ...Array.from({ length: 8 }, (_, n) => `    at frame (node:internal/modules/run_main:${n}:5)`),
    '    at node:internal/main/run_main_module:33:47 {',
    "  code: 'MODULE_NOT_FOUND',",
    '  requireStack: []',
    '}',
    '',
    'Node.js v24.21.0',
  ];
  const text = lastOutput(crash.join('\n'), []);
  assert.match(text, /Error: Cannot find module '\/srv\/my-agent\.js' \| code: 'MODULE_NOT_FOUND', \|/);
});

test('only the last six lines are quoted, without colours and secrets', () => {
  const lines = Array.from({ length: 9 }, (_, n) => `\x1b[31mline ${n}\x1b[0m of hunter2hunter2`);
  assert.equal(
    lastOutput(lines.join('\n'), ['hunter2', 'hunter2hunter2', 'of']),
    [3, 4, 5, 6, 7, 8].map((n) => `line ${n} of [redacted]`).join(' | '),
  );
});
