import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateKey } from '../../kit/identity/keys.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { ReceiptEntry } from './bodies.ts';
import { EMPTY_CHAIN, nextEnvelope, signingKey } from './chain.ts';
import { verifyChain } from './verify.ts';

const key = signingKey(generateKey());
const at = '2026-06-15T08:10:00.000Z';
const completed = (result: unknown): ReceiptEntry => ({ kind: 'intent.completed', body: { at, result } });

test('the stored text is the canonical form, and each envelope is bound to the one before', () => {
  const first = nextEnvelope({ head: EMPTY_CHAIN, entry: completed({ b: 1, a: undefined }), key });
  const second = nextEnvelope({ head: first.head, entry: completed('€ "\u0001'), key });
  assert.equal(first.text, canonicalJson(first.envelope));
  assert.deepEqual(first.envelope.body, { at, result: { b: 1 } });
  assert.equal(second.envelope.prev_hash, first.head.hash);
  assert.equal(second.head.seq, 2);
  const { publicKeyHex: publicKey } = key;
  const report = verifyChain([first.envelope, second.envelope], { publicKey });
  assert.deepEqual(report, { head: second.head, broken: undefined });
  assert.deepEqual(verifyChain([first.envelope, first.envelope], { publicKey }).head, first.head);
});

test('lone surrogates, which tools may send, become U+FFFD and the envelope is valid', () => {
  const result = { '\ud800': 'a\udc00\\ud800', ok: '😀' };
  const { envelope } = nextEnvelope({ head: EMPTY_CHAIN, entry: completed(result), key });
  assert.deepEqual(envelope.body.result, { '\ufffd': 'a\ufffd\\ud800', ok: '😀' });
  assert.equal(verifyChain([envelope], { publicKey: key.publicKeyHex }).broken, undefined);
});

test('a body that a receipt cannot carry is refused before anything is signed', () => {
  let deep: unknown = 1;
  for (let level = 0; level < 300; level++) deep = [deep];
  for (const result of [deep, Number.NaN, () => 1]) {
    assert.throws(() => nextEnvelope({ head: EMPTY_CHAIN, entry: completed(result), key }), TypeError);
  }
});

test('an invalid public key verifies nothing', () => {
  const { envelope } = nextEnvelope({ head: EMPTY_CHAIN, entry: completed(1), key });
  for (const publicKey of ['f'.repeat(64), '0'.repeat(64)]) {
    const forged = { ...envelope, key_id: signingKey({ ...generateKey(), publicKeyHex: publicKey } as never).keyId };
    assert.equal(verifyChain([forged], { publicKey }).broken?.property, 'signature');
  }
});
