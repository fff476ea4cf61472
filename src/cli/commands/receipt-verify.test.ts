import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';

const VECTORS = join(import.meta.dirname, '..', '..', '..', 'test', 'contract', 'receipt-vectors');
/** Test 1 of RFC 8032 §7.1. */
const SEED = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
/** Test 3. */
const APPROVER = 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025';
const PUBLIC_KEY = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';

function textOf(file: string, name: string): string {
  const lines = readFileSync(join(VECTORS, file), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as { name: string; text: string }).find((each) => each.name === name)!
    .text;
}

/** The working folder of this process until the test has ended: files are named as from a shell there. */
function workingFolder(t: TestContext): string {
  const before = process.cwd();
  t.after(() => process.chdir(before));
  const folder = temporaryFolder(t);
  process.chdir(folder);
  return folder;
}

const TRANSFER = textOf('valid.jsonl', 'transfer-approved');

describe('reveille receipt verify', () => {
  test('prints the task, its approver, its actions, and that the receipt is valid', async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'r.json'), TRANSFER);
    const words = ['receipt', 'verify', 'r.json', '--trust-embedded'];
    const { status, stdout, stderr } = await reveille(join(home, 'nothing-here'), words);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Intent intent-1\n {2}asked +by alice at 2026-06-15T08:10:00\.000Z; started by a person\n/);
    assert.match(
      stdout.replace(/\s+/g, ' '),
      /approved by alice at 2026-06-15T08:10:30\.000Z; the receipt is older than signed answers and names no approver’s key/,
    );
    assert.match(stdout, /succeeded \(\/id = "t-77"\)\n/);
    assert.match(stdout.replace(/\s+/g, ' '), /, from the file, accepted with --trust-embedded key id/);
    assert.match(stdout, /\nValid: all 11 envelopes\.\n$/);
  });

  test('without a key, and without the flag to trust the one in the file, it does not end with 0', async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'r.json'), TRANSFER);
    const bare = await reveille(home, ['receipt', 'verify', 'r.json']);
    assert.equal(bare.status, 1);
    const advice = /claimed by the file: name the expected key with --key, or accept it with --trust-embedded/;
    assert.match(bare.stdout.replace(/\s+/g, ' '), advice);
    assert.match(bare.stdout, /All 11 envelopes are valid with the key in the file; no expected key was given\.\n$/);
    const verified = await reveille(home, ['receipt', 'verify', 'r.json', '--json']);
    assert.equal(verified.status, 1);
    const { valid, key_trusted } = JSON.parse(verified.stdout) as Record<string, boolean>;
    assert.deepEqual([valid, key_trusted], [true, false]);
    const both = ['receipt', 'verify', 'r.json', '--trust-embedded', '--key', PUBLIC_KEY];
    assert.equal((await reveille(home, both)).status, 2);
  });

  test('a receipt of another key than the named one does not ask for a key', async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'r.json'), TRANSFER);
    const { status, stdout } = await reveille(home, ['receipt', 'verify', 'r.json', '--key', APPROVER]);
    assert.equal(status, 1);
    assert.match(stdout.replace(/\s+/g, ' '), /claimed by the file: NOT the one that you named/);
    assert.doesNotMatch(stdout.replace(/\s+/g, ' '), /name it with --key/);
  });

  test("names the key that approved, and checks a receipt against the reader's key", async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'signed.json'), textOf('valid.jsonl', 'transfer-approved-by-a-key'));
    writeFileSync(join(home, 'old.json'), TRANSFER);
    writeFileSync(join(home, 'allowed.json'), textOf('valid.jsonl', 'allowed-by-a-rule-since-answers-are-signed'));
    writeFileSync(join(home, 'approver.json'), JSON.stringify({ public_key: APPROVER }));
    writeFileSync(join(home, 'shown.json'), JSON.stringify({ approver: APPROVER }));
    writeFileSync(join(home, 'words'), 'no key');
    const verify = (file: string, ...words: string[]) =>
      reveille(home, ['receipt', 'verify', file, '--key', PUBLIC_KEY, ...words]);
    for (const named of [APPROVER, 'approver.json', 'shown.json']) {
      const { status, stdout } = await verify('signed.json', '--approver', PUBLIC_KEY, '--approver', named);
      assert.equal(status, 0, stdout);
      assert.match(stdout.replace(/\s+/g, ' '), new RegExp(`signed by ${APPROVER} \\(alice at her desk\\)`));
    }
    for (const [file, approver, found] of [
      ['signed.json', PUBLIC_KEY, APPROVER],
      ['old.json', APPROVER, 'no approver’s key'],
      ['allowed.json', APPROVER, 'no approver’s key'],
    ] as const) {
      const { status, stdout } = await verify(file, '--approver', approver, '--json');
      const { valid, broken } = JSON.parse(stdout) as { valid: boolean; broken: Record<string, string> };
      assert.deepEqual([status, valid, broken.property, broken.found], [1, false, 'approver', found], file);
    }
    for (const odd of ['missing', 'words']) assert.equal((await verify('signed.json', '--approver', odd)).status, 2);
  });

  test('accepts the key as hex digits, a did, or a file, and refuses a receipt of another key', async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'r.json'), TRANSFER);
    writeFileSync(join(home, 'executor.key'), `${SEED}\n`, { mode: 0o600 });
    writeFileSync(join(home, 'public'), PUBLIC_KEY);
    const did = `did:matrix:executor:${PUBLIC_KEY.slice(0, 16)}`;
    for (const key of [PUBLIC_KEY.toUpperCase(), 'executor.key', 'public', did]) {
      const { status, stdout } = await reveille(home, ['receipt', 'verify', 'r.json', '--key', key]);
      assert.equal(status, 0, key);
      assert.match(stdout, /the one that you\s+named/);
    }
    const other = await reveille(home, ['receipt', 'verify', 'r.json', '--key', '0'.repeat(64), '--json']);
    assert.equal(other.status, 1);
    const { valid, key_expected, broken } = JSON.parse(other.stdout) as Record<string, { property: string }>;
    assert.deepEqual([valid, key_expected, broken?.property], [false, false, 'key']);
  });

  test('names the first invalid envelope, and prints those before it', async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'r.json'), textOf('broken.jsonl', 'no-made-yes'));
    const { status, stdout } = await reveille(home, ['receipt', 'verify', 'r.json']);
    assert.equal(status, 1);
    assert.match(stdout, /Broken: Envelope 7 of 11, signature\n/);
    assert.ok(!stdout.includes('approved by'), 'invalid content is not printed');
    writeFileSync(join(home, 's.json'), textOf('broken.jsonl', 'start-without-an-answer'));
    const story = await reveille(home, ['receipt', 'verify', 's.json']);
    assert.match(
      story.stdout,
      /Broken: Envelope 5 of 5, story, rule "consent"\n {2}"pay" was started without an\s+approval/,
    );
  });

  test('reports of a valid receipt that it is not final', async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'r.json'), textOf('valid.jsonl', 'not-at-its-end'));
    const words = ['receipt', 'verify', 'r.json', '--trust-embedded'];
    const { status, stdout } = await reveille(home, words);
    assert.equal(status, 0);
    assert.match(stdout, /The intent is not final: the last entry is gate\.asked\./);
  });

  test('checks every receipt of a file of JSON lines, and a truncated one is no receipt', async (t) => {
    const home = workingFolder(t);
    writeFileSync(
      join(home, 'r.jsonl'),
      `${TRANSFER}\n${textOf('valid.jsonl', 'cancelled')}\n${TRANSFER.slice(0, 500)}`,
    );
    const { status, stdout } = await reveille(home, ['receipt', 'verify', 'r.jsonl', '--json']);
    assert.equal(status, 1);
    const found = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { line: number; valid: boolean });
    assert.deepEqual(
      found.map(({ line, valid }) => [line, valid]),
      [
        [1, true],
        [2, true],
        [3, false],
      ],
    );
  });

  test('distinguishes an invalid receipt from an unreadable file', async (t) => {
    const home = workingFolder(t);
    const files = {
      empty: '',
      binary: Buffer.from([0xff, 0xfe, 0]),
      words: 'no receipt',
      list: '[]',
      twice: '{"a":1,"a":2}',
    };
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(home, name), text);
      const { status, stdout } = await reveille(home, ['receipt', 'verify', name]);
      assert.equal(status, 1, name);
      assert.match(stdout, /Broken: /, name);
    }
    for (const [words, message] of [
      [['missing'], /missing cannot be read: /],
      [['.'], /cannot be read: /],
      [['list', '--key', 'missing'], /--key must be 64 hex digits, a did, or a file/],
      [['list', '--key', 'words'], /words must contain 64 hex digits/],
      [['list', '--key', 'did:web:x'], /--key must look like did:matrix/],
    ] as const) {
      const { status, stderr } = await reveille(home, ['receipt', 'verify', ...words]);
      assert.equal(status, 2, words.join(' '));
      assert.match(stderr, message);
    }
  });

  test('reads a receipt from a pipe, and requires a file at a terminal', async (t) => {
    const home = workingFolder(t);
    for (const words of [[], ['-']]) {
      const args = ['receipt', 'verify', '--trust-embedded', ...words];
      const { status, stdout } = await reveille(home, args, { input: `{"ok":true,"data":${TRANSFER}}\n` });
      assert.equal(status, 0, stdout);
      const last = (JSON.parse(TRANSFER) as { envelopes: object[] }).envelopes.at(-1)!;
      const digest = createHash('sha256').update(canonicalJson(last)).digest('hex');
      assert.match(stdout.replace(/\s+/g, ' '), new RegExp(`digest ${digest}`));
      const forged = await reveille(home, args, { input: TRANSFER.replace('100.00', '900.00') });
      assert.equal(forged.status, 1);
    }
    const nothing = await reveille(home, ['receipt', 'verify'], { input: '' });
    assert.equal(nothing.status, 1);
    assert.match(nothing.stdout, /standard input, line 1.*it contains no receipt/);
    const { status, stderr } = await reveille(home, ['receipt', 'verify'], { isTerminal: true });
    assert.equal(status, 2);
    assert.match(stderr, /name a file, or pipe a receipt/);
  });

  test('text in a receipt cannot control the terminal', async (t) => {
    const home = workingFolder(t);
    writeFileSync(join(home, 'r.json'), textOf('valid.jsonl', 'names-and-numbers'));
    const { stdout } = await reveille(home, ['receipt', 'verify', 'r.json']);
    assert.match(stdout, /Größe “½” 😀 \\u0007/);
  });
});
