import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { modelSettings, parseModelConfig } from './endpoint.ts';

function refusal(settings: Settings): string {
  try {
    parseModelConfig('EXECUTOR', settings);
  } catch (error) {
    assert.ok(error instanceof ReveilleError);
    return error.message;
  }
  return assert.fail('the configuration was accepted');
}

test('each daemon has the settings under its own prefix, also in its messages', () => {
  assert.deepEqual(Object.keys(modelSettings('EXECUTOR')), [
    'EXECUTOR_MODEL',
    'EXECUTOR_MODEL_PROVIDER',
    'EXECUTOR_MODEL_BASE_URL',
    'EXECUTOR_MODEL_API_KEY',
  ]);
  assert.match(refusal({ EXECUTOR_MODEL: 'm' }), /^EXECUTOR_MODEL_BASE_URL is not set, but EXECUTOR_MODEL is/);
  assert.match(refusal({ EXECUTOR_MODEL_BASE_URL: 'http://localhost/v1' }), /^EXECUTOR_MODEL is not set/);
  assert.match(
    refusal({ EXECUTOR_MODEL: 'm', EXECUTOR_MODEL_BASE_URL: 'https://a:canary@models.example/v1' }),
    /a key goes into EXECUTOR_MODEL_API_KEY$/,
  );
});

test('the settings of another daemon are ignored', () => {
  const neos = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: 'http://localhost/v1' };
  assert.deepEqual(parseModelConfig('EXECUTOR', neos), { model: { kind: 'offline' }, warnings: [] });
});

test('the warning about an unencrypted key names its variable', () => {
  const { warnings } = parseModelConfig('EXECUTOR', {
    EXECUTOR_MODEL: 'm',
    EXECUTOR_MODEL_API_KEY: 'key',
    EXECUTOR_MODEL_BASE_URL: 'http://models.example/v1',
  });
  assert.match(warnings.join(), /^EXECUTOR_MODEL_BASE_URL is not https: EXECUTOR_MODEL_API_KEY/);
});
