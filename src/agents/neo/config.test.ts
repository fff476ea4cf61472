import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { parseNeoConfig } from './config.ts';

const TOKEN = 'a-token-for-the-tests';
const BASE: Settings = { NEO_DAEMON_TOKEN: TOKEN, NEO_DATA_DIR: '/data' };
const parse = (settings: Settings) => parseNeoConfig({ ...BASE, ...settings });

function refusal(settings: Settings): string {
  try {
    parse(settings);
  } catch (error) {
    assert.ok(error instanceof ReveilleError);
    assert.equal(error.code, 'invalid_request');
    return error.message;
  }
  return assert.fail('the configuration was accepted');
}

test('the defaults are loopback, port 8080 and the offline model', () => {
  const { tools, ...others } = parse({});
  assert.deepEqual([tools?.manifest, tools?.workspace, tools?.executor], ['bundled', '/data/workspace', undefined]);
  assert.deepEqual(others, {
    host: '127.0.0.1',
    port: 8080,
    portChannel: undefined,
    listener: { tls: undefined, connections: 4096, connectionsPerAddress: 1024 },
    dataDir: '/data',
    allowedHosts: [],
    token: TOKEN,
    model: { kind: 'offline' },
    cheapModel: undefined,
    embedModel: undefined,
    prices: undefined,
    contextTokens: 128_000,
    maxQueued: 1000,
    repeatMs: 86_340_000,
    retryPolicy: { firstMs: 30_000, longestMs: 900_000, giveUpMs: 86_400_000 },
    isolation: 'auto',
    warnings: [],
  });
});

test('NEO_PORT overrides PORT, and REVEILLE_HOME gives the data folder when NEO_DATA_DIR does not', () => {
  assert.equal(parse({ PORT: '3000' }).port, 3000);
  assert.equal(parse({ PORT: '3000', NEO_PORT: '4000' }).port, 4000);
  assert.equal(parse({ NEO_DATA_DIR: '', REVEILLE_HOME: '/home/me/.reveille' }).dataDir, '/home/me/.reveille/neo');
  assert.match(refusal({ NEO_DATA_DIR: '' }), /^NEO_DATA_DIR is not set/);
});

test('with a descriptor for its port Neo listens on any port, unless one is set for Neo', () => {
  const { port, portChannel } = parse({ PORT: '3000', REVEILLE_PORT_FD: '3' });
  assert.deepEqual([port, portChannel], [0, 3]);
  assert.equal(parse({ NEO_PORT: '4000', REVEILLE_PORT_FD: '3' }).port, 4000);
  assert.match(refusal({ REVEILLE_PORT_FD: '1' }), /^REVEILLE_PORT_FD must be a whole number from 3 to 1023/);
});

test('a wrong value stops the start with its name, its value and the allowed values', () => {
  assert.equal(refusal({ NEO_PORT: '99999' }), 'NEO_PORT must be a whole number from 0 to 65535 (got "99999")');
  assert.match(refusal({ NEO_MODEL_BASE_URL: 'ftp://x', NEO_MODEL: 'm' }), /^NEO_MODEL_BASE_URL must be an http/);
  assert.match(refusal({ NEO_DEV: 'yes' }), /^NEO_DEV must be 1 or 0/);
  assert.match(refusal({ NEO_HOST: 'a b' }), /^NEO_HOST must be an address/);
});

test('a secret is never echoed', () => {
  assert.equal(refusal({ NEO_DAEMON_TOKEN: 'canary' }), 'NEO_DAEMON_TOKEN must have at least 16 characters');
  assert.ok(!refusal({ NEO_MODEL_API_KEY: 'canary\nkey' }).includes('canary'));
  const message = refusal({ NEO_MODEL: 'm', NEO_MODEL_BASE_URL: 'https://me:canary@models.example/v1' });
  assert.match(message, /^NEO_MODEL_BASE_URL must be an address without a user name/);
  assert.ok(!message.includes('canary'));
});

test('without a token Neo starts only in development and only on loopback, with a warning', () => {
  assert.match(refusal({ NEO_DAEMON_TOKEN: undefined }), /^NEO_DAEMON_TOKEN is not set/);
  const dev = parse({ NEO_DAEMON_TOKEN: undefined, NEO_DEV: '1' });
  assert.equal(dev.token, undefined);
  assert.match(dev.warnings.join(), /any program on this computer/);
  assert.match(
    refusal({ NEO_DAEMON_TOKEN: undefined, NEO_DEV: '1', NEO_HOST: '0.0.0.0' }),
    /NEO_HOST must be a loopback address \(got "0\.0\.0\.0"\)/,
  );
});

test('a model needs its address and its name; an incomplete configuration does not select the offline model', () => {
  assert.match(refusal({ NEO_MODEL: 'gpt' }), /^NEO_MODEL_BASE_URL is not set, but NEO_MODEL is/);
  assert.match(refusal({ NEO_MODEL_API_KEY: 'key' }), /^NEO_MODEL_BASE_URL is not set, but NEO_MODEL_API_KEY is/);
  assert.match(refusal({ NEO_MODEL_BASE_URL: 'http://127.0.0.1:11434/v1' }), /^NEO_MODEL is not set/);
  assert.deepEqual(parse({ NEO_MODEL_BASE_URL: 'http://127.0.0.1:11434/v1/', NEO_MODEL: 'llama' }).model, {
    kind: 'endpoint',
    baseUrl: 'http://127.0.0.1:11434/v1',
    model: 'llama',
    apiKey: undefined,
  });
  assert.deepEqual(parse({ NEO_MODEL: 'offline', NEO_MODEL_API_KEY: 'key' }).model, { kind: 'offline' });
});

test('a key that would travel in the clear is warned about, but not on loopback', () => {
  const model = { NEO_MODEL: 'm', NEO_MODEL_API_KEY: 'key' };
  assert.match(parse({ ...model, NEO_MODEL_BASE_URL: 'http://models.example/v1' }).warnings.join(), /sent unencrypted/);
  assert.deepEqual(parse({ ...model, NEO_MODEL_BASE_URL: 'http://127.0.0.1:1234/v1' }).warnings, []);
  assert.deepEqual(parse({ ...model, NEO_MODEL_BASE_URL: 'https://models.example/v1' }).warnings, []);
});

test('allowed host names are a comma-separated list', () => {
  assert.deepEqual(parse({ NEO_ALLOWED_HOSTS: 'neo.internal, neo.internal:8080' }).allowedHosts, [
    'neo.internal',
    'neo.internal:8080',
  ]);
});

test("Anthropic's interface is used for its own address, and elsewhere when it is named", () => {
  const provider = (settings: Settings) => {
    const { model } = parse({ NEO_MODEL: 'm', ...settings });
    return model.kind === 'endpoint' ? model.provider : undefined;
  };
  assert.equal(provider({ NEO_MODEL_BASE_URL: 'https://api.anthropic.com/v1' }), 'anthropic');
  assert.equal(provider({ NEO_MODEL_BASE_URL: 'https://gateway.example/v1' }), undefined);
  const gateway = 'https://gateway.example/v1';
  assert.equal(provider({ NEO_MODEL_BASE_URL: gateway, NEO_MODEL_PROVIDER: 'anthropic' }), 'anthropic');
  const own = 'https://api.anthropic.com/v1';
  assert.equal(provider({ NEO_MODEL_BASE_URL: own, NEO_MODEL_PROVIDER: 'openai' }), undefined);
  assert.match(refusal({ NEO_MODEL_PROVIDER: 'other' }), /^NEO_MODEL_PROVIDER must be one of openai, anthropic/);
});

test('the value none for the cheap model switches learning off', () => {
  assert.equal(parse({ NEO_CHEAP_MODEL: 'none' }).cheapModel, null);
  assert.equal(parse({ NEO_CHEAP_MODEL: 'small' }).cheapModel, 'small');
});

test('a context too small for a turn is refused', () => {
  assert.equal(parse({ NEO_CONTEXT_TOKENS: '8000' }).contextTokens, 8000);
  assert.match(refusal({ NEO_CONTEXT_TOKENS: '100' }), /^NEO_CONTEXT_TOKENS must be a whole number from 4000/);
});
