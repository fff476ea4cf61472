import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { callSha256, digestOf } from './envelope.ts';

test('the digest of a call depends on everything but the order of its members', () => {
  const canonical = '{"args":{"a":1,"b":"é"},"tool":"s/t"}';
  assert.equal(callSha256('s/t', { b: 'é', a: 1 }), createHash('sha256').update(canonical).digest('hex'));
  assert.notEqual(callSha256('s/t', { a: 1, b: 'é ' }), callSha256('s/t', { a: 1, b: 'é' }));
  assert.notEqual(callSha256('s/u', { a: 1 }), callSha256('s/t', { a: 1 }));
  assert.equal(digestOf({ b: 2, a: 1 }), createHash('sha256').update('{"a":1,"b":2}').digest('hex'));
});
