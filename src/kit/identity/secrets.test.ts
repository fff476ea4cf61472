import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSecret, sameSecret, seal, tokenDigest } from './secrets.ts';

test('random secrets are long, different and safe in a URL', () => {
  const secrets = new Set(Array.from({ length: 1000 }, () => randomSecret()));
  assert.equal(secrets.size, 1000);
  for (const secret of secrets) assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(randomSecret(16).length, 22);
});

test('a secret is equal only to itself', () => {
  assert.ok(sameSecret('abc', 'abc'));
  for (const other of ['', 'ab', 'abcd', 'abC']) assert.equal(sameSecret('abc', other), false);
});

test('digests and seals are those of SHA-256 and HMAC-SHA256', () => {
  assert.equal(tokenDigest('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  // RFC 4231, test case 2.
  const mac = Buffer.from('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843', 'hex').toString(
    'base64url',
  );
  assert.equal(seal('Jefe', 'what do ya want for nothing?'), mac);
});
