import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeLimits, HOST_LIMITS, parseLimits, resolveLimits } from './limits.ts';

test('the environment overrides the manifest, which overrides the defaults', () => {
  const given = parseLimits('NEO', { NEO_SPAWN_TIMEOUT_MS: '2000', NEO_CALL_TIMEOUT_MS: '', OTHER: '1' });
  assert.deepEqual(given, { startTimeoutMs: 2000 });
  const manifest = { spawn_timeout_ms: 5000, call_timeout_ms: 7000 };
  assert.deepEqual(resolveLimits(given, manifest), { ...HOST_LIMITS, startTimeoutMs: 2000, callTimeoutMs: 7000 });
  assert.deepEqual(resolveLimits(), HOST_LIMITS);
  assert.match(
    describeLimits(resolveLimits(given, manifest)),
    /2000 ms to start and 7000 ms for a call; a result 25000 tokens/,
  );
});

test('an invalid value is refused with its name and the allowed values', () => {
  assert.throws(() => parseLimits('EXECUTOR', { EXECUTOR_OUTPUT_TOKENS: '0', EXECUTOR_RESTART_DELAY_MS: 'never' }), {
    code: 'invalid_request',
    message: /EXECUTOR_OUTPUT_TOKENS .*from 100 to 1000000.*EXECUTOR_RESTART_DELAY_MS/,
  });
});
