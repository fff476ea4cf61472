import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../wire/errors.ts';
import { parseRouterConfig } from './config.ts';

const secrets = { ROUTER_WAKE_TOKEN: 'wake-token-0123456', ROUTER_ADMIN_TOKEN: 'admin-token-0123456' };
const messageOf = (settings: Record<string, string>) => {
  try {
    parseRouterConfig(settings);
  } catch (thrown) {
    assert.ok(thrown instanceof ReveilleError && thrown.code === 'invalid_request');
    return thrown.message;
  }
  return '';
};

test('the defaults match the contract', () => {
  const config = parseRouterConfig({ ...secrets, REVEILLE_HOME: '/home/a/.reveille' });
  assert.deepEqual(config, {
    host: '127.0.0.1',
    port: 8088,
    allowedHosts: [],
    listener: { tls: undefined, connections: 4096, connectionsPerAddress: 1024 },
    public: {
      ...{ host: '127.0.0.1', port: 8087, allowedHosts: [], isBehindProxy: false, isTls: false, console: undefined },
      ...{ url: undefined, hasLanggraph: false },
      listener: { tls: undefined, connections: 4096, connectionsPerAddress: 1024 },
      shares: { requestsPerMinute: 600, streams: 32, requests: 32 },
    },
    dataDir: '/home/a/.reveille/router',
    presetFolder: '/home/a/.reveille/presets',
    channelFolder: '/home/a/.reveille/channels',
    wakeToken: secrets.ROUTER_WAKE_TOKEN,
    adminToken: secrets.ROUTER_ADMIN_TOKEN,
    metricsToken: undefined,
    wakeTimeoutMs: 30_000,
    isolation: 'auto',
    probeIntervalMs: 100,
    repeatMs: 86_340_000,
    orphanSeconds: 60,
    keepMachines: false,
    budget: undefined,
    prices: undefined,
    chronosUrl: undefined,
    checkAllow: undefined,
    flyApiToken: undefined,
    flyApiUrl: 'https://api.machines.dev',
    dockerHost: undefined,
    warnings: [],
  });
  assert.ok(Object.isFrozen(config));
});

test('missing secrets stop the start with their names, except in development on loopback', () => {
  const dir = { ROUTER_DATA_DIR: '/d' };
  assert.match(messageOf(dir), /ROUTER_WAKE_TOKEN and ROUTER_ADMIN_TOKEN are not set/);
  assert.match(messageOf({ ...dir, ROUTER_WAKE_TOKEN: secrets.ROUTER_WAKE_TOKEN }), /^ROUTER_ADMIN_TOKEN is not set/);
  const config = parseRouterConfig({ ...dir, ROUTER_DEV: '1' });
  assert.equal(config.wakeToken, undefined);
  assert.match(config.warnings[0] ?? '', /ROUTER_WAKE_TOKEN and ROUTER_ADMIN_TOKEN are not set/);
  assert.match(
    messageOf({ ...dir, ROUTER_DEV: '1', ROUTER_HOST: '0.0.0.0' }),
    /must be a loopback address \(got "0\.0\.0\.0"\)/,
  );
});

test('an invalid value stops the start with its name, and a secret is not repeated', () => {
  assert.match(messageOf({ ...secrets }), /ROUTER_DATA_DIR is not set, nor is REVEILLE_HOME/);
  assert.match(
    messageOf({ ...secrets, ROUTER_DATA_DIR: '/d', ROUTER_PORT: '80a' }),
    /ROUTER_PORT must be .*\(got "80a"\)/,
  );
  assert.match(messageOf({ ...secrets, ROUTER_DATA_DIR: '/d', ROUTER_WAKE_TIMEOUT_MS: '0' }), /ROUTER_WAKE_TIMEOUT_MS/);
  const short = messageOf({ ...secrets, ROUTER_DATA_DIR: '/d', ROUTER_ADMIN_TOKEN: 'short' });
  assert.match(short, /ROUTER_ADMIN_TOKEN must have at least 16/);
  assert.doesNotMatch(short, /short\b(?! )/);
  const multiline = messageOf({ ...secrets, ROUTER_DATA_DIR: '/d', FLY_API_TOKEN: 'canary\nX-Other: header' });
  assert.match(multiline, /^FLY_API_TOKEN must be printable ASCII in one line$/);
});

test('the addresses of engines and clouds are used unchanged', () => {
  const given = {
    FLY_API_TOKEN: 'FlyV1 fm2_abc,fm2_def',
    FLY_API_BASE_URL: 'http://_api.internal:4280/',
    DOCKER_HOST: 'ssh://somewhere',
  };
  const config = parseRouterConfig({ ...secrets, ROUTER_DATA_DIR: '/d', ...given });
  assert.deepEqual(
    [config.flyApiToken, config.flyApiUrl, config.dockerHost],
    ['FlyV1 fm2_abc,fm2_def', 'http://_api.internal:4280', 'ssh://somewhere'],
  );
});

test('the two tokens must differ', () => {
  const same = 'the-same-canary-twice';
  const message = messageOf({ ROUTER_DATA_DIR: '/d', ROUTER_WAKE_TOKEN: same, ROUTER_ADMIN_TOKEN: same });
  assert.equal(
    message,
    'ROUTER_WAKE_TOKEN and ROUTER_ADMIN_TOKEN have the same value; set a different secret for each',
  );
});

test('a console without alarm settings stops the start with the missing names; TLS users are recognized', () => {
  const settings = { ...secrets, ROUTER_DATA_DIR: '/d', ROUTER_CONSOLE: '1' };
  assert.match(
    messageOf(settings),
    /ROUTER_CONSOLE is on, .*set ROUTER_CHRONOS_URL .* and ROUTER_CHRONOS_TOKEN .*, or leave/,
  );
  const chronosd = {
    ROUTER_CHRONOS_URL: 'https://chronos.internal:9096/',
    ROUTER_CHRONOS_TOKEN: 'transport-0123456789',
  };
  assert.match(
    messageOf({ ...settings, ROUTER_CHRONOS_URL: chronosd.ROUTER_CHRONOS_URL }),
    /set ROUTER_CHRONOS_TOKEN \(its CHRONOS_TOKEN\), or/,
  );
  const { console, isTls } = parseRouterConfig({
    ...settings,
    ...chronosd,
    ROUTER_PUBLIC_TLS: 'terminated-in-front',
  }).public;
  assert.equal(isTls, true);
  assert.deepEqual(console, {
    ...{ chronosUrl: 'https://chronos.internal:9096', chronosToken: chronosd.ROUTER_CHRONOS_TOKEN },
    executorUrl: undefined,
  });
});

test('the host of the public address is one of the names of the public listener', () => {
  const { url, allowedHosts } = parseRouterConfig({
    ...{ ...secrets, ROUTER_DATA_DIR: '/d', ROUTER_PUBLIC_ALLOWED_HOSTS: 'reveille.lan' },
    ROUTER_PUBLIC_URL: 'https://reveille.example.com/',
  }).public;
  assert.equal(url, 'https://reveille.example.com');
  assert.deepEqual(allowedHosts, ['reveille.lan', 'reveille.example.com']);
});
