import assert from 'node:assert/strict';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { type Installation, startInstallation } from '../../../test/support/installation.ts';
import { sharedOwner, temporaryFolder } from '../../../test/support/temporary.ts';
import { generateKey, writeKeyFile } from '../../kit/identity/keys.ts';

describe('reveille agent whoami', () => {
  test('makes label and key once, shows both, and never the seed', async (t) => {
    const home = join(temporaryFolder(t), 'new', 'home');
    const first = await reveille(home, ['agent', 'whoami', '--json']);
    assert.equal(first.status, 0, first.stderr);
    const who = JSON.parse(first.stdout);
    assert.match(who.did, /^did:matrix:[0-9a-f-]{36}:[0-9a-f]{16}$/);
    assert.equal(who.did, `did:matrix:${who.label}:${who.public_key.slice(0, 16)}`);
    assert.equal(who.key_file, join(home, 'keys', 'agent.key'));
    assert.equal(statSync(who.key_file).mode & 0o777, 0o600);
    const seed = readFileSync(who.key_file, 'utf8').trim();

    const second = await reveille(home, ['agent', 'whoami']);
    assert.equal(second.status, 0, second.stderr);
    assert.match(second.stdout, new RegExp(`^ {2}did +${who.did}\n {2}label +${who.label}\n`));
    for (const text of [first.stdout, first.stderr, second.stdout, second.stderr]) assert.ok(!text.includes(seed));
  });

  test('several at once agree about who they are', async (t) => {
    const home = join(temporaryFolder(t), 'home');
    const answers = await Promise.all([1, 2, 3].map(() => reveille(home, ['agent', 'whoami', '--json'])));
    assert.equal(new Set(answers.map(({ stdout }) => stdout)).size, 1);
    assert.ok(answers.every(({ status }) => status === 0));
  });

  test('speaks for the label and key file that the environment names', async (t) => {
    const folder = temporaryFolder(t);
    const file = join(folder, 'other.key');
    const key = generateKey();
    writeKeyFile(file, key);
    const env = { MATRIX_USER_ID: 'alice', MATRIX_EXECUTOR_KEYFILE: file };
    const { stdout } = await reveille(join(folder, 'home'), ['agent', 'whoami', '--json'], { env });
    assert.equal(JSON.parse(stdout).did, `did:matrix:alice:${key.publicKeyHex.slice(0, 16)}`);
  });

  test('refuses a key that others can read, with the command that mends it', async (t) => {
    const home = join(temporaryFolder(t), 'home');
    await reveille(home, ['agent', 'whoami']);
    const file = join(home, 'keys', 'agent.key');
    chmodSync(file, 0o644);
    const { status, stdout, stderr } = await reveille(home, ['agent', 'whoami']);
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, /can be used by others \(mode 0644\); run: chmod 600 /);
  });

  test('leaves a damaged key as it is and does not repeat its contents', async (t) => {
    const home = join(temporaryFolder(t), 'home');
    await reveille(home, ['agent', 'whoami']);
    const file = join(home, 'keys', 'agent.key');
    writeFileSync(file, 'canary-of-a-damaged-key');
    const { status, stderr } = await reveille(home, ['agent', 'whoami']);
    assert.equal(status, 1);
    assert.match(stderr, /must have exactly 64 hex characters/);
    assert.doesNotMatch(stderr, /canary/);
    assert.equal(readFileSync(file, 'utf8'), 'canary-of-a-damaged-key');
  });
});

describe('reveille agent enroll, list and revoke', () => {
  const shared = sharedOwner();
  let house: Installation;
  before(async () => {
    house = await startInstallation(shared);
  });
  after(() => shared.end());

  test('a key is enrolled by its hex or from a file, listed, and revoked', async () => {
    const one = generateKey();
    const two = generateKey();
    const file = join(house.home.path, 'two.key');
    writeKeyFile(file, two);
    const said = await house.run('agent', 'enroll', '--label', 'alice', '--public-key', one.publicKeyHex.toUpperCase());
    assert.equal(said, `Enrolled did:matrix:alice:${one.publicKeyHex.slice(0, 16)}\n  ${one.publicKeyHex}\n`);
    const enrolled = JSON.parse(await house.run('agent', 'enroll', '--label', 'alice', '--key-file', file, '--json'));
    assert.equal(enrolled.public_key, two.publicKeyHex);
    assert.equal(enrolled.source, 'enrolled');

    const listed = await house.run('agent', 'list');
    assert.match(listed, /^LABEL +PUBLIC KEY +STATE +SINCE\n/);
    assert.match(listed, new RegExp(`\nalice +${one.publicKeyHex.slice(0, 16)}… +enrolled +`));

    const revoked = await house.run('agent', 'revoke', '--label', 'alice', '--public-key', one.publicKeyHex);
    assert.equal(revoked, `Revoked did:matrix:alice:${one.publicKeyHex.slice(0, 16)}\n`);
    const lines = (await house.run('agent', 'list', '--json')).trimEnd().split('\n');
    const states = new Map(lines.map((line) => JSON.parse(line)).map((key) => [key.public_key, 'revoked_at' in key]));
    assert.deepEqual([states.get(one.publicKeyHex), states.get(two.publicKeyHex)], [true, false]);
  });

  test('revoke takes the beginning of a key as the list shows it, and all keys of a label without one', async () => {
    const keys = [generateKey(), generateKey(), generateKey()];
    for (const { publicKeyHex } of keys)
      await house.run('agent', 'enroll', '--label', 'bob', '--public-key', publicKeyHex);
    const [first, ...others] = keys.map(({ publicKeyHex }) => publicKeyHex);
    const one = await house.run('agent', 'revoke', '--label', 'bob', '--public-key', `${first!.slice(0, 16)}…`);
    assert.equal(one, `Revoked did:matrix:bob:${first!.slice(0, 16)}\n`);
    const rest = (await house.run('agent', 'revoke', '--label', 'bob', '--json')).trimEnd().split('\n');
    assert.deepEqual(rest.map((line) => JSON.parse(line).public_key).sort(), others.sort());
    const nobody = await house.attempt(['agent', 'revoke', '--label', 'bob', '--public-key', '00000000']);
    assert.equal(nobody.status, 1);
    assert.match(nobody.stderr, /no key of bob begins with 00000000/);
  });

  test("without flags this agent's own key is enrolled", async () => {
    const own = JSON.parse(await house.run('agent', 'whoami', '--json'));
    assert.equal(JSON.parse(await house.run('agent', 'enroll', '--json')).did, own.did);
  });

  test('a wrong flag ends with 2, a missing or wrong admin token with 1', async () => {
    const wrong: [string[], RegExp][] = [
      [['enroll', '--label', 'a b'], /--label must be 1 to 64/],
      [['enroll', '--public-key', 'xyz'], /--public-key must be 64 hex digits/],
      [['enroll', '--public-key', 'a'.repeat(64), '--key-file', 'x'], /exclude each other/],
      [['revoke'], /--label is missing/],
      [['revoke', '--label', 'a', '--public-key', 'abc'], /--public-key must be 64 hex digits/],
      [['list', 'extra'], /too many arguments/],
    ];
    for (const [words, said] of wrong) {
      const { status, stderr } = await house.attempt(['agent', ...words]);
      assert.equal(status, 2, words.join(' '));
      assert.match(stderr, said);
    }
    const env = { CHRONOS_ADMIN_TOKEN: 'not-the-admin-token' };
    const refused = await house.attempt(['agent', 'list', '--json'], { env });
    assert.equal(refused.status, 1);
    assert.equal(JSON.parse(refused.stderr).error.code, 'unauthorized');
    assert.doesNotMatch(refused.stderr, /not-the-admin-token/);
  });
});
