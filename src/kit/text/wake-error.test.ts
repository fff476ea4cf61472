import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainWakeError } from './wake-error.ts';

test('an envelope in an error is replaced by its message, even if it is cut or nested', () => {
  const inner = '{"ok":false,"error":{"code":"unavailable","message":"the \\"machine\\" sleeps","retryable":true}}';
  assert.equal(plainWakeError(`the router answered 503: ${inner}`), 'the router answered 503: the "machine" sleeps');
  assert.equal(plainWakeError(`the router answered 503: ${inner.slice(0, 62)}`), 'the router answered 503: the "mac');
  const outer = JSON.stringify({
    ok: false,
    error: { code: 'unavailable', message: `it said ${inner}`, retryable: true },
  });
  assert.equal(
    plainWakeError(`the router answered 502: ${outer}`),
    'the router answered 502: it said the "machine" sleeps',
  );
});

test('other errors are unchanged', () => {
  for (const error of ['the router at http://x could not be reached', 'the router answered 500: <html>', '{"ok":false'])
    assert.equal(plainWakeError(error), error);
});
