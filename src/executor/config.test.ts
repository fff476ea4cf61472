import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bundledPolicy } from '../mcp-host/bundled-programs.ts';
import { parseExecutorConfig } from './config.ts';

const TOKEN = 'a-token-for-the-tests';
const given = {
  EXECUTOR_TOKEN: TOKEN,
  EXECUTOR_ADMIN_TOKEN: 'another-token-for-the-tests',
  REVEILLE_HOME: '/home/ada/.reveille',
};

test('with only tokens and a home it has the defaults of docs/reference/settings.md', () => {
  const config = parseExecutorConfig(given);
  const { host, port, dataDir, manifest, policy, model, reconcileMs, notify, chronos } = config;
  assert.deepEqual(config.bounds, { openIntents: 1000, contextBytes: 16 * 1024 * 1024 });
  assert.deepEqual([host, port, dataDir], ['127.0.0.1', 8081, '/home/ada/.reveille/executor']);
  assert.deepEqual([manifest, policy, model.kind, reconcileMs], ['bundled', bundledPolicy(), 'offline', 60_000]);
  assert.deepEqual([notify, chronos], [{ webhook: undefined, command: undefined }, undefined]);
  assert.equal(config.workspace, '/home/ada/.reveille/executor/workspace');
  // The bundled rules belong to the bundled manifest.
  assert.equal(parseExecutorConfig({ ...given, EXECUTOR_MANIFEST: '/m.json' }).policy, undefined);
  assert.equal(parseExecutorConfig({ ...given, EXECUTOR_POLICY: 'none' }).policy, undefined);
  assert.match(config.warnings.join('\n'), /EXECUTOR_CHRONOS_URL is not set: an agent .* is not notified/);
  assert.ok(Object.isFrozen(config));
});

test('every setting can be set', () => {
  const config = parseExecutorConfig({
    ...given,
    EXECUTOR_DATA_DIR: '/data',
    EXECUTOR_ALLOWED_HOSTS: 'rail.example, ,other.example:81',
    EXECUTOR_MANIFEST: '/m.json',
    EXECUTOR_POLICY: '/p.yaml',
    EXECUTOR_MODEL: 'm',
    EXECUTOR_MODEL_BASE_URL: 'https://models.example/v1',
    EXECUTOR_RECONCILE_SECONDS: '0',
    EXECUTOR_MAX_OPEN_INTENTS: '7',
    EXECUTOR_MAX_CONTEXT_MIB: '3',
    EXECUTOR_NOTIFY_URL: 'https://hooks.example/x',
    EXECUTOR_NOTIFY_SECRET: 'a-secret-for-notices',
    EXECUTOR_NOTIFY_COMMAND: '["/usr/bin/tell","--me","$HOME"]',
    EXECUTOR_CHRONOS_URL: 'http://127.0.0.1:9096/',
    EXECUTOR_CHRONOS_TOKEN: 'short',
  });
  assert.deepEqual(config.allowedHosts, ['rail.example', 'other.example:81']);
  assert.deepEqual([config.manifest, config.policy, config.reconcileMs], [{ path: '/m.json' }, '/p.yaml', 0]);
  assert.deepEqual(config.bounds, { openIntents: 7, contextBytes: 3 * 1024 * 1024 });
  assert.equal(config.model.kind, 'endpoint');
  assert.deepEqual(config.notify.command, ['/usr/bin/tell', '--me', '$HOME']);
  assert.deepEqual(config.chronos, { url: 'http://127.0.0.1:9096', token: 'short' });
  assert.deepEqual(config.warnings, []);
});

test('a wrong value stops the start with its name and the allowed values; no secret is repeated', () => {
  const cases: [settings: Record<string, string | undefined>, expected: RegExp][] = [
    [{ EXECUTOR_TOKEN: undefined }, /EXECUTOR_TOKEN is not set: .*EXECUTOR_DEV=1/],
    [{ EXECUTOR_TOKEN: 'short' }, /EXECUTOR_TOKEN must have at least 16 characters$/],
    [{ EXECUTOR_ADMIN_TOKEN: undefined }, /EXECUTOR_ADMIN_TOKEN is not set: .*EXECUTOR_DEV=1/],
    [{ EXECUTOR_ADMIN_TOKEN: TOKEN }, /^EXECUTOR_ADMIN_TOKEN must not be EXECUTOR_TOKEN: /],
    [{ EXECUTOR_TOKEN: undefined, EXECUTOR_DEV: '1', EXECUTOR_HOST: '0.0.0.0' }, /must be a loopback address/],
    [{ REVEILLE_HOME: undefined }, /EXECUTOR_DATA_DIR is not set/],
    [{ EXECUTOR_PORT: '81a' }, /EXECUTOR_PORT must be a whole number from 0 to 65535 \(got "81a"\)/],
    [{ EXECUTOR_RECONCILE_SECONDS: '-1' }, /EXECUTOR_RECONCILE_SECONDS must be a whole number from 0 to 86400/],
    [{ EXECUTOR_NOTIFY_URL: 'ftp://x' }, /EXECUTOR_NOTIFY_URL must be an http/],
    [{ EXECUTOR_NOTIFY_URL: 'https://ada:sesame-open@x.example' }, /EXECUTOR_NOTIFY_URL must be an address without/],
    [{ EXECUTOR_NOTIFY_SECRET: 'a-secret-for-notices' }, /EXECUTOR_NOTIFY_URL is not set, but/],
    [{ EXECUTOR_NOTIFY_COMMAND: 'notify-send hello' }, /EXECUTOR_NOTIFY_COMMAND must be a JSON list of a program/],
    [{ EXECUTOR_NOTIFY_COMMAND: '[]' }, /must be a JSON list/],
    [{ EXECUTOR_NOTIFY_COMMAND: '["",1]' }, /must be a JSON list/],
    [{ EXECUTOR_CHRONOS_URL: 'http://x.example' }, /EXECUTOR_CHRONOS_TOKEN is not set, but/],
    [{ EXECUTOR_CHRONOS_TOKEN: 'a-token' }, /EXECUTOR_CHRONOS_URL is not set, but/],
    [{ EXECUTOR_MODEL: 'm' }, /EXECUTOR_MODEL_BASE_URL is not set, but EXECUTOR_MODEL is/],
  ];
  for (const [settings, expected] of cases) {
    assert.throws(
      () => parseExecutorConfig({ ...given, ...settings }),
      (error: Error & { code: string }) => {
        assert.equal(error.code, 'invalid_request');
        assert.match(error.message, expected);
        for (const secret of ['sesame', 'a-secret-for-notices']) assert.ok(!error.message.includes(secret));
        return true;
      },
    );
  }
});

test('unencrypted or unsigned traffic causes a warning', () => {
  const { warnings } = parseExecutorConfig({
    ...given,
    EXECUTOR_NOTIFY_URL: 'http://hooks.example/x',
    EXECUTOR_CHRONOS_URL: 'http://chronos.example',
    EXECUTOR_CHRONOS_TOKEN: 'a-token',
  });
  assert.equal(warnings.length, 3);
  for (const name of ['EXECUTOR_NOTIFY_SECRET', 'EXECUTOR_NOTIFY_URL', 'EXECUTOR_CHRONOS_URL'])
    assert.ok(warnings.some((warning) => warning.startsWith(name)));
  assert.deepEqual(parseExecutorConfig({ ...given, EXECUTOR_DEV: '1', EXECUTOR_TOKEN: '' }).token, undefined);
});
