import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { parseDid } from '../../wire/did.ts';
import { agentIdentity } from './agent.ts';
import { AgentKey, generateKey, loadOrCreateKey, readKeyFile, verifySignature, writeKeyFile } from './keys.ts';

function tempFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-keys-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function put(path: string, text: string | Buffer, mode = 0o600): void {
  writeFileSync(path, text);
  chmodSync(path, mode);
}

test('keys and signatures agree with the test vectors of RFC 8032 §7.1', () => {
  const one = new AgentKey('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60');
  assert.equal(one.publicKeyHex, 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  assert.equal(
    one.sign(''),
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  );
  const two = new AgentKey('4CCD089B28FF96DA9DB6C346EC114E0F5B8A319F35ABA624DA8CF6ED4FB8A6FB');
  assert.equal(two.publicKeyHex, '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c');
  assert.equal(
    two.sign('r'),
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  );
});

test('a signature is valid for its key and message only; malformed input is invalid and does not throw', () => {
  const key = generateKey();
  const signature = key.sign('wake up');
  assert.ok(verifySignature(key.publicKeyHex, 'wake up', signature));
  assert.ok(verifySignature(key.publicKeyHex.toUpperCase(), 'wake up', signature.toUpperCase()));
  assert.equal(verifySignature(key.publicKeyHex, 'wake up ', signature), false);
  assert.equal(verifySignature(generateKey().publicKeyHex, 'wake up', signature), false);
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => verifySignature(a, b, c) === false),
    { numRuns: 200 },
  );
  const hex = (bytes: number) =>
    fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((b) => Buffer.from(b).toString('hex'));
  fc.assert(
    fc.property(hex(32), fc.string(), hex(64), (a, b, c) => verifySignature(a, b, c) === false),
    { numRuns: 200 },
  );
});

test('a printed key does not contain its seed', () => {
  const key = generateKey();
  const seed = key.seedHex();
  for (const shown of [
    inspect(key, { depth: 9, showHidden: true }),
    JSON.stringify({ key }),
    String(key),
    inspect({ ...key }),
  ]) {
    assert.equal(shown.includes(seed), false);
  }
});

test('a key file is private, has 64 hex characters and is read as the same key', (t) => {
  const path = join(tempFolder(t), 'made', 'agent.key');
  const key = generateKey();
  writeKeyFile(path, key);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
  assert.match(readFileSync(path, 'utf8'), /^[0-9a-f]{64}\n$/);
  assert.equal(readKeyFile(path).publicKeyHex, key.publicKeyHex);
});

test('a key file is never overwritten, and no temporary file remains', (t) => {
  const folder = tempFolder(t);
  const path = join(folder, 'agent.key');
  const key = generateKey();
  writeKeyFile(path, key);
  assert.throws(() => writeKeyFile(path, generateKey()), {
    code: 'conflict',
    message: /exists and is never overwritten/,
  });
  assert.equal(readKeyFile(path).publicKeyHex, key.publicKeyHex);
  assert.deepEqual(readdirSync(folder), ['agent.key']);
});

test('a key file with rights for others is refused with the command that repairs it', (t) => {
  const path = join(tempFolder(t), "it's a.key");
  for (const mode of [0o640, 0o604, 0o620, 0o601, 0o644]) {
    put(path, generateKey().seedHex(), mode);
    assert.throws(
      () => readKeyFile(path),
      (error: Error & { code: string }) => {
        assert.equal(error.code, 'forbidden');
        assert.match(error.message, new RegExp(`mode 0${mode.toString(8)}\\); run: chmod 600 '.*it'\\\\''s a\\.key'$`));
        return true;
      },
    );
  }
  chmodSync(path, 0o400);
  readKeyFile(path);
});

test('a key file with other contents is refused, and the error does not contain them', (t) => {
  const path = join(tempFolder(t), 'agent.key');
  const seed = generateKey().seedHex();
  for (const text of [
    '',
    '\n',
    seed.slice(1),
    `${seed}0`,
    `${seed}\n\n`,
    ` ${seed}`,
    seed.replace(/^./, 'g'),
    Buffer.alloc(64, 0xff),
  ]) {
    put(path, text);
    for (const read of [readKeyFile, loadOrCreateKey]) {
      assert.throws(
        () => read(path),
        (error: Error & { code: string }) => {
          assert.equal(error.code, 'invalid_request');
          assert.match(error.message, /must have exactly 64 hex characters/);
          assert.equal(error.message.includes(seed.slice(1)), false);
          return true;
        },
      );
    }
  }
  for (const text of [seed, `${seed}\n`, `${seed}\r\n`, seed.toUpperCase()]) {
    put(path, text);
    assert.equal(readKeyFile(path).seedHex(), seed);
  }
});

test('a missing key, a folder and a huge file have different errors', (t) => {
  const folder = tempFolder(t);
  const path = join(folder, 'agent.key');
  assert.throws(() => readKeyFile(path), {
    code: 'not_found',
    message: /create one with: reveille up, or: reveille agent whoami/,
  });
  mkdirSync(path);
  assert.throws(() => readKeyFile(path), { code: 'unavailable', message: /is not a regular file/ });
  put(join(folder, 'huge'), Buffer.alloc(1024 * 1024, 0x61));
  assert.throws(() => readKeyFile(join(folder, 'huge')), { code: 'unavailable', message: /1048576 bytes/ });
});

test('processes that create a key at the same time all get the same one', async (t) => {
  const path = join(tempFolder(t), 'home', 'agent.key');
  const program = `
    import { existsSync } from 'node:fs';
    import { loadOrCreateKey } from ${JSON.stringify(import.meta.resolve('./keys.ts'))};
    console.log('ready');
    process.stdin.once('data', () => {
      console.log(loadOrCreateKey(process.argv[1]).publicKeyHex);
      process.exit(0);
    });`;
  const children = Array.from({ length: 4 }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program, path], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    return {
      child,
      ready: once(child.stdout, 'data'),
      exit: once(child, 'close'),
      output: () => output.trim().split('\n').at(-1),
    };
  });
  await Promise.all(children.map(({ ready }) => ready));
  assert.equal(existsSync(path), false);
  for (const { child } of children) child.stdin.write('go\n');
  await Promise.all(children.map(({ exit }) => exit));
  const made = readKeyFile(path).publicKeyHex;
  for (const { output } of children) assert.equal(output(), made);
  assert.deepEqual(readdirSync(join(path, '..')), ['agent.key']);
});

test('an identity has its label and the beginning of its public key', () => {
  const key = generateKey();
  const agent = agentIdentity('0191E4F2-0000-7000-8000-0000000000AB', key);
  assert.deepEqual(parseDid(agent.did), {
    label: '0191E4F2-0000-7000-8000-0000000000AB',
    fingerprint: key.publicKeyHex.slice(0, 16),
    owner: '0191e4f2-0000-7000-8000-0000000000ab',
  });
  assert.equal(agent.owner, '0191e4f2-0000-7000-8000-0000000000ab');
  assert.ok(verifySignature(agent.publicKeyHex, 'm', agent.sign('m')));
  for (const label of ['', 'a b', 'a:b', 'x'.repeat(65)]) {
    assert.throws(() => agentIdentity(label, key), {
      code: 'invalid_request',
      message: /label of an agent must be 1 to 64/,
    });
  }
});
