import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { generateKey, readKeyFile, writeKeyFile } from './keys.ts';
import { nextKeyFile, rotateKeyFile } from './rotation.ts';

test('a new key that was revoked while it waited is replaced by another one', async (t) => {
  const keyFile = join(temporaryFolder(t), 'agent.key');
  const [old, waiting] = [generateKey(), generateKey()];
  writeKeyFile(keyFile, old);
  writeKeyFile(nextKeyFile(keyFile), waiting);
  const asked: string[] = [];
  const chronosd = async (from: { publicKeyHex: string }, to: { publicKeyHex: string }) => {
    assert.equal(from.publicKeyHex, old.publicKeyHex);
    asked.push(to.publicKeyHex);
    if (to.publicKeyHex === waiting.publicKeyHex) throw new ReveilleError('conflict', 'revoked before');
  };
  await rotateKeyFile('ada', keyFile, chronosd);
  assert.equal(asked.length, 2);
  assert.equal(asked[0], waiting.publicKeyHex);
  assert.equal(readKeyFile(keyFile).publicKeyHex, asked[1]);
  assert.equal(existsSync(nextKeyFile(keyFile)), false);
});

test('any other refusal leaves both keys in their files', async (t) => {
  const keyFile = join(temporaryFolder(t), 'agent.key');
  const old = generateKey();
  writeKeyFile(keyFile, old);
  const tried: string[] = [];
  for (const code of ['unavailable', 'forbidden', 'rate_limited'] as const) {
    const refuse = async (_from: object, to: { publicKeyHex: string }) => {
      tried.push(to.publicKeyHex);
      throw new ReveilleError(code, 'no');
    };
    await assert.rejects(rotateKeyFile('ada', keyFile, refuse), { code });
    assert.equal(readKeyFile(keyFile).publicKeyHex, old.publicKeyHex);
    assert.equal(readKeyFile(nextKeyFile(keyFile)).publicKeyHex, tried[0]);
  }
  assert.equal(new Set(tried).size, 1);
});
