import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../wire/errors.ts';
import { checkMcpSettings, resolveMcpSettings } from './mcp-settings.ts';

const LOCAL = { url: 'http://127.0.0.1:9096', token: 'local-token', userId: 'me', keyFile: '/home/me/executor.key' };
const GIVEN = {
  MATRIX_CHRONOS_URL: 'https://chronos.example/base/',
  MATRIX_CHRONOS_TOKEN: 'given-token',
  MATRIX_CHRONOS_TIMEOUT_MS: '1500',
  MATRIX_USER_ID: 'you',
  MATRIX_EXECUTOR_KEYFILE: '/keys/executor.key',
};

function refused(act: () => unknown, code: string, ...parts: RegExp[]): void {
  assert.throws(act, (thrown) => {
    assert.ok(thrown instanceof ReveilleError);
    assert.equal(thrown.code, code);
    for (const part of parts) assert.match(thrown.message, part);
    return true;
  });
}

test('variables take precedence over the settings of a local reveille up', () => {
  assert.deepEqual(resolveMcpSettings(GIVEN, LOCAL), {
    url: 'https://chronos.example/base',
    token: 'given-token',
    timeoutMs: 1500,
    userId: 'you',
    keyFile: '/keys/executor.key',
  });
  assert.deepEqual(resolveMcpSettings({}, LOCAL), { ...LOCAL, timeoutMs: 30_000 });
  assert.deepEqual(resolveMcpSettings({ MATRIX_USER_ID: '' }, LOCAL), { ...LOCAL, timeoutMs: 30_000 });
});

test('a setting without a value is named, with both remedies', () => {
  refused(
    () => resolveMcpSettings({}, {}),
    'unavailable',
    /reveille up/,
    /MATRIX_CHRONOS_URL, MATRIX_CHRONOS_TOKEN, MATRIX_USER_ID/,
  );
  const { MATRIX_USER_ID: _, ...rest } = GIVEN;
  refused(() => resolveMcpSettings(rest, {}), 'unavailable', /set MATRIX_USER_ID for/);
});

test('the local token is not sent to an address from the environment', () => {
  refused(
    () => resolveMcpSettings({ MATRIX_CHRONOS_URL: 'https://elsewhere.example' }, LOCAL),
    'unavailable',
    /MATRIX_CHRONOS_TOKEN must be set/,
  );
  assert.equal(resolveMcpSettings({ MATRIX_CHRONOS_URL: `${LOCAL.url}/` }, LOCAL).token, LOCAL.token);
});

test('a wrong value is refused with its name, and a secret is not repeated', () => {
  refused(
    () => checkMcpSettings({ MATRIX_CHRONOS_URL: 'localhost:9096' }),
    'invalid_request',
    /MATRIX_CHRONOS_URL .*localhost/,
  );
  refused(() => checkMcpSettings({ MATRIX_CHRONOS_TIMEOUT_MS: '-1' }), 'invalid_request', /MATRIX_CHRONOS_TIMEOUT_MS/);
  refused(() => checkMcpSettings({ MATRIX_USER_ID: 'a b' }), 'invalid_request', /MATRIX_USER_ID/);
  assert.throws(
    () => checkMcpSettings({ MATRIX_CHRONOS_TOKEN: 'two words' }),
    (thrown) => /MATRIX_CHRONOS_TOKEN/.test(String(thrown)) && !/two words/.test(String(thrown)),
  );
  checkMcpSettings({});
});
