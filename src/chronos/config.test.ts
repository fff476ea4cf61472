import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../wire/errors.ts';
import { missingSecrets, parseChronosConfig } from './config.ts';

const SECRETS = {
  CHRONOS_TOKEN: 'transport-token-canary',
  CHRONOS_AGENT_AUTH_SECRET: 'principal-secret-canary',
  CHRONOS_ADMIN_TOKEN: 'admin-token-canary-01',
  CHRONOS_WAKE_TOKEN: 'wake-token-canary-012',
};
const SET = { CHRONOS_DATA_DIR: '/var/lib/chronos', ...SECRETS };

function refusal(settings: Record<string, string | undefined>): string {
  try {
    parseChronosConfig(settings);
  } catch (thrown) {
    assert.ok(thrown instanceof ReveilleError && thrown.code === 'invalid_request');
    return thrown.message;
  }
  assert.fail('it was accepted');
}

test('the defaults are those of the contract, and the object is frozen', () => {
  const config = parseChronosConfig(SET);
  assert.deepEqual(config, {
    ...SET,
    CHRONOS_HOST: '127.0.0.1',
    CHRONOS_ALLOWED_HOSTS: [],
    CHRONOS_PORT: 9096,
    CHRONOS_MAX_CONNECTIONS: 4096,
    CHRONOS_MAX_CONNECTIONS_PER_ADDRESS: 1024,
    listener: { tls: undefined, connections: 4096, connectionsPerAddress: 1024 },
    CHRONOS_ENROLLMENT: 'tofu',
    CHRONOS_EVENTS_PER_MINUTE: 15_000,
    CHRONOS_EVENTS_PER_MINUTE_IN_ALL: 60_000,
    CHRONOS_PING_SECONDS: 60,
    CHRONOS_EVENT_STREAMS: 2000,
    CHRONOS_EVENT_STREAMS_PER_OWNER: 32,
    CHRONOS_ROUTER_WAKE_URL: 'http://127.0.0.1:8088/internal/wake',
    CHRONOS_TICK_MS: 1000,
    CHRONOS_CONCURRENCY: 256,
    CHRONOS_USER_CONCURRENCY: 4,
    CHRONOS_MAX_FAILURES: 100,
    CHRONOS_MIN_INTERVAL_SECONDS: 10,
    CHRONOS_MAX_ACTIVE_ALARMS: 10_000,
    CHRONOS_CHALLENGES_PER_MINUTE: 600,
    CHRONOS_CHALLENGES_PER_MINUTE_IN_ALL: 12_000,
    CHRONOS_CREATES_PER_MINUTE: 3000,
    CHRONOS_CREATES_PER_MINUTE_IN_ALL: 60_000,
    CHRONOS_TRIGGERS_PER_MINUTE: 300,
    CHRONOS_TRIGGERS_PER_MINUTE_IN_ALL: 12_000,
    CHRONOS_NEW_OWNERS_PER_HOUR: 1000,
    CHRONOS_MAX_OWNERS: 100_000,
    CHRONOS_MAX_STORED_ALARMS: 100_000,
    CHRONOS_MAX_STORED_MIB: 2048,
    CHRONOS_MAX_STORED_MIB_IN_ALL: 10_240,
    CHRONOS_MAX_WAITING_TRIGGERS: 1000,
    CHRONOS_TERMINAL_RETENTION_DAYS: 90,
    CHRONOS_TOKEN_TTL_SECONDS: 300,
    CHRONOS_DEV: false,
    CHRONOS_API: true,
    CHRONOS_DISPATCH: true,
    CHRONOS_LEDGER_RETENTION_DAYS: 30,
    CHRONOS_POSTGRES_POOL: 10,
    CHRONOS_POSTGRES_BUCKETS: 1,
  });
  assert.ok(Object.isFrozen(config));
});

test('missing secrets stop the start by name, all at once, except in development', () => {
  assert.equal(
    refusal({ ...SET, CHRONOS_TOKEN: '', CHRONOS_WAKE_TOKEN: undefined }),
    'CHRONOS_TOKEN, CHRONOS_WAKE_TOKEN are not set; set them to at least 16 characters each, or CHRONOS_DEV=1 to run without while developing',
  );
  assert.match(
    refusal({ ...SET, CHRONOS_ADMIN_TOKEN: undefined }),
    /^CHRONOS_ADMIN_TOKEN is not set; set it to at least 16/,
  );
  const config = parseChronosConfig({ CHRONOS_DATA_DIR: 'd', CHRONOS_DEV: '1' });
  assert.deepEqual(missingSecrets(config), Object.keys(SECRETS));
});

test('a wrong value stops the start with its name, and a secret is not repeated', () => {
  for (const [name, value, message] of [
    ['CHRONOS_PORT', '70000', 'CHRONOS_PORT must be a whole number from 0 to 65535 (got "70000")'],
    ['CHRONOS_TICK_MS', '1s', 'CHRONOS_TICK_MS must be a whole number from 10 to 60000 (got "1s")'],
    ['CHRONOS_ENROLLMENT', 'open', 'CHRONOS_ENROLLMENT must be one of tofu, required (got "open")'],
    [
      'CHRONOS_ROUTER_WAKE_URL',
      'ftp://x',
      'CHRONOS_ROUTER_WAKE_URL must be an http:// or https:// address (got "ftp://x")',
    ],
    ['CHRONOS_CONCURRENCY', '0', 'CHRONOS_CONCURRENCY must be a whole number from 1 to 10000 (got "0")'],
    ['CHRONOS_DEV', 'yes', 'CHRONOS_DEV must be 1 or 0 (got "yes")'],
    ['CHRONOS_TOKEN', 'short-canary', 'CHRONOS_TOKEN must have at least 16 characters'],
    ['CHRONOS_DATA_DIR', '', 'CHRONOS_DATA_DIR is not set'],
  ] as const)
    assert.equal(refusal({ ...SET, [name]: value }), message);
});

test('an address that is not PostgreSQL is rejected, and never repeated', () => {
  const message = refusal({ ...SET, CHRONOS_POSTGRES_URI: 'mysql://canary@db/chronos' });
  assert.equal(message, 'CHRONOS_POSTGRES_URI must begin with postgres:// or postgresql://');
});

test('the enrollment mode must be set where others have access: beyond loopback, and in PostgreSQL', () => {
  const beyond = { ...SET, CHRONOS_HOST: '0.0.0.0', CHRONOS_TLS: 'terminated-in-front' };
  const shared = { ...SET, CHRONOS_POSTGRES_URI: 'postgres://db/chronos' };
  for (const settings of [beyond, shared, { ...shared, CHRONOS_DEV: '1' }]) {
    const message = refusal(settings);
    assert.match(message, /^CHRONOS_ENROLLMENT is not set, and CHRONOS_(HOST|POSTGRES_URI) is /);
    assert.match(message, /CHRONOS_ENROLLMENT=required to accept only keys .*\. Or set CHRONOS_ENROLLMENT=tofu: /);
    for (const text of ['required', 'tofu'] as const)
      assert.equal(parseChronosConfig({ ...settings, CHRONOS_ENROLLMENT: text }).CHRONOS_ENROLLMENT, text);
  }
  assert.equal(parseChronosConfig({ ...SET, CHRONOS_HOST: '::1' }).CHRONOS_ENROLLMENT, 'tofu');
});

test('missing secrets in development are not allowed where other machines reach', () => {
  const open = {
    CHRONOS_DATA_DIR: 'd',
    CHRONOS_DEV: '1',
    CHRONOS_TLS: 'terminated-in-front',
    CHRONOS_ENROLLMENT: 'tofu',
  };
  assert.match(
    refusal({ ...open, ...SECRETS, CHRONOS_ADMIN_TOKEN: undefined, CHRONOS_HOST: '192.0.2.1' }),
    /^CHRONOS_ADMIN_TOKEN is not set; without it CHRONOS_HOST must be a loopback address, with CHRONOS_DEV=1 too \(got "192/,
  );
});

test('one secret for two settings stops the start, and is not repeated', () => {
  const names = [...Object.keys(SECRETS), 'CHRONOS_METRICS_TOKEN'];
  for (const [at, one] of names.entries()) {
    for (const other of names.slice(at + 1)) {
      const message = refusal({ ...SET, [one]: 'the-same-canary-twice', [other]: 'the-same-canary-twice' });
      assert.equal(message, `${one} and ${other} have the same value; set a different secret for each`);
    }
  }
});
