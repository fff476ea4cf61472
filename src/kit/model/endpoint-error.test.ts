import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpointError, retryAfterSeconds, streamError } from './endpoint-error.ts';

const NOW = Date.UTC(2026, 5, 15, 8, 10);
const CONTEXT = { now: NOW, apiKey: undefined, prefix: 'NEO' };

test('statuses become codes, and only temporary ones are retryable', () => {
  const cases: [number, string, boolean][] = [
    [400, 'invalid_request', false],
    [401, 'unauthorized', false],
    [403, 'forbidden', false],
    [404, 'not_found', false],
    [307, 'invalid_request', false],
    [408, 'unavailable', true],
    [429, 'rate_limited', true],
    [500, 'unavailable', true],
    [503, 'unavailable', true],
    [529, 'unavailable', true],
  ];
  for (const [statusCode, code, retryable] of cases) {
    const error = endpointError({ message: 'no', statusCode }, CONTEXT);
    assert.deepEqual([error.code, error.retryable], [code, retryable], String(statusCode));
    assert.match(error.message, new RegExp(`^the model endpoint answered ${statusCode}: no`));
  }
  const unreached = endpointError({ message: 'connect ECONNREFUSED' }, CONTEXT);
  assert.equal(unreached.message, 'the model endpoint cannot be reached: connect ECONNREFUSED');
  assert.equal(unreached.retryable, true);
});

test('Retry-After is parsed as seconds or as a date', () => {
  assert.equal(retryAfterSeconds('3', NOW), 3);
  assert.equal(retryAfterSeconds('0.5', NOW), 0.5);
  assert.equal(retryAfterSeconds('Mon, 15 Jun 2026 08:10:30 GMT', NOW), 30);
  assert.equal(retryAfterSeconds('Mon, 15 Jun 2026 08:09:00 GMT', NOW), 0);
  assert.equal(retryAfterSeconds('soon', NOW), undefined);
  assert.equal(retryAfterSeconds(undefined, NOW), undefined);
  const error = endpointError({ message: 'x', statusCode: 429, responseHeaders: { 'retry-after': '7' } }, CONTEXT);
  assert.equal(error.retryAfterSeconds, 7);
});

test('the key is removed from the message, which is one short line', () => {
  const key = 'sk-canary/+1';
  const message = `bad key ${key} or ${encodeURIComponent(key)}\n${'x'.repeat(2000)}`;
  for (const error of [
    endpointError({ message: message, statusCode: 401 }, { ...CONTEXT, apiKey: key }),
    streamError(message, key),
  ]) {
    assert.ok(!error.message.includes('canary'));
    assert.match(error.message, /bad key \[redacted\] or \[redacted\] x/);
    assert.ok(error.message.length < 700);
  }
});
