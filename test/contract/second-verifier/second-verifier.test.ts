import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { APPROVER, signedAnswer } from '../../support/cluster/approval.ts';
import { reveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { EXECUTOR_TOKEN, startExecutorProcess } from '../../system/rail/executor-process.ts';

type Finding = {
  ok: boolean;
  intent_id?: string;
  ends_with?: string | null;
  key?: string;
  seq?: number;
  what?: string;
  rule?: string;
};
type Verify = (content: string | Uint8Array, key?: string, approvers?: string[]) => Finding[];
type Held = { valid: true; envelopes: number; ended: boolean; last_kind: string };
type Broken = { valid: false; property: string; seq?: number; rule?: string };
type Vector<Expected> = { name: string; text: string; key?: string; approver?: string; expected: Expected };

const PROGRAM = join(import.meta.dirname, 'verifier.mjs');
// The compiler does not check it, as it would not check a third party's program.
const { verify } = (await import(PROGRAM)) as { verify: Verify };

function vectors<Expected>(file: string): Vector<Expected>[] {
  const lines = readFileSync(join(import.meta.dirname, '..', 'receipt-vectors', file), 'utf8')
    .trimEnd()
    .split('\n');
  return lines.map((line) => JSON.parse(line) as Vector<Expected>);
}

const valid = vectors<Held>('valid.jsonl');
const broken = vectors<Broken>('broken.jsonl');
const example = valid.find(({ name }) => name === 'asked-back')!;

const named = (approver: string | undefined) => (approver === undefined ? [] : [approver]);

/** Runs the program; returns the printed line for each receipt, and the exit status. */
function run(input: string, ...argv: string[]): { findings: Finding[]; status: number | null } {
  const { stdout, stderr, status } = spawnSync(process.execPath, [PROGRAM, ...argv], { input, encoding: 'utf8' });
  assert.equal(stderr, '');
  const lines = stdout.trimEnd().split('\n');
  return { findings: lines.map((line) => JSON.parse(line) as Finding), status };
}

test("it shares nothing with the first verifier: it imports only Node's own modules", () => {
  const imports = [...readFileSync(PROGRAM, 'utf8').matchAll(/(?:\bfrom|\bimport)\s*\(?\s*(['"])(.+?)\1/g)];
  assert.ok(imports.length >= 4);
  assert.deepEqual(
    imports.map(([, , name]) => name).filter((name) => !name?.startsWith('node:')),
    [],
  );
});

test('every valid vector is accepted, with the end that the vector names', () => {
  for (const { name, text, key, approver, expected } of valid) {
    const [finding, ...others] = verify(text, key, named(approver));
    assert.deepEqual(others, [], name);
    assert.equal(finding?.ok, true, `${name}: ${JSON.stringify(finding)}`);
    assert.equal(finding?.ends_with !== null, expected.ended, name);
    assert.equal(finding?.key, key === undefined ? 'claimed' : 'named', name);
  }
});

test('every broken vector is refused at the same envelope, by the same check and the same rule', () => {
  for (const { name, text, key, approver, expected } of broken) {
    const findings = verify(text, key, named(approver));
    const { ok, seq, what, rule } = findings.at(-1)!;
    assert.ok(findings.length === 1 || what === 'unreadable', name);
    const { valid: expectedOk, property, seq: expectedSeq, rule: expectedRule } = expected;
    assert.deepEqual([ok, what, seq, rule], [expectedOk, property, expectedSeq, expectedRule], name);
  }
});

test('it treats a bare receipt and one in the envelope of an answer alike, and checks several in a file one by one', () => {
  const answer = `{"data":${example.text},"more":1,"ok":true}`;
  for (const content of [example.text, answer, `\n${answer}\r\n\t${example.text} `, Buffer.from(`\ufeff${answer}`)]) {
    for (const { intent_id, ends_with } of verify(content))
      assert.deepEqual([intent_id, ends_with], ['intent-1', null]);
  }
  assert.equal(verify(`\ufeff${answer}\n${example.text}${example.text}`).length, 3);
  for (const content of [`{"ok":false,"data":${example.text}}`, `{"ok":true,"data":${answer}}`, `[${answer}]`, '1']) {
    assert.deepEqual(verify(content), [{ ok: false, seq: 0, what: 'malformed' }], content.slice(0, 20));
  }
});

test('text that two readers could read differently is unreadable', () => {
  const good = ['0.1', '1e30', '1.50', '-0', '0e99999999999999999999', '1E+2', '100000000000000000000', '5e-324'];
  const bad = [
    '12345678901234567890',
    '1e400',
    '1e-400',
    '4.9e-324',
    '9007199254740993',
    '01',
    '+1',
    '1.',
    '.1',
    'NaN',
  ];
  const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const word = [
    ...bad,
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\x"',
    '"\t"',
    '"',
    'tru',
    '[1,]',
    '{"a":1,}',
    '{"a":1 "b":2}',
  ];
  const whole = ['', ' ', '{', '\ufeff\ufeff{}', '\u00a0{}', '{"a":1,"\\u0061":2}', deep(257), '//\n{}'];
  for (const text of [...good, '"\\ud83d\\ude00"', deep(256), '{"__proto__":1,"constructor":{}}']) {
    assert.equal(verify(text)[0]?.what, 'malformed', text.slice(0, 40));
  }
  const refused = [...word.map((value) => `[${value}]`), ...whole];
  for (const text of refused) assert.equal(verify(text)[0]?.what, 'unreadable', text.slice(0, 40));
  const after = verify(`${example.text}\n{"a":1,"a":1}\n${example.text}`);
  assert.deepEqual(
    after.map(({ ok, what }) => [ok, what]),
    [
      [true, undefined],
      [false, 'unreadable'],
    ],
  );
  assert.equal(verify(Buffer.from([0x22, 0xc0, 0x80, 0x22]))[0]?.what, 'unreadable');
});

test('a receipt with any character changed is refused', () => {
  for (let at = 0; at < example.text.length; at++) {
    const char = example.text[at] === '1' ? '2' : '1';
    const changed = example.text.slice(0, at) + char + example.text.slice(at + 1);
    const [finding] = verify(changed);
    assert.equal(finding?.ok, false, changed.slice(Math.max(0, at - 20), at + 20));
  }
});

test('as a command it prints a line for each receipt and exits with the result', (t) => {
  const file = join(temporaryFolder(t), 'receipt.json');
  writeFileSync(file, example.text);
  const { public_key: key } = JSON.parse(example.text) as { public_key: string };
  const validFinding = { ok: true, intent_id: 'intent-1', ends_with: null };
  assert.deepEqual(run('', file), { findings: [{ ...validFinding, key: 'claimed' }], status: 0 });
  assert.deepEqual(run('', file, '--key', key), { findings: [{ ...validFinding, key: 'named' }], status: 0 });
  const wrong = { ok: false, seq: 0, what: 'key' };
  assert.deepEqual(run('', file, '--key', '0'.repeat(64)), { findings: [wrong], status: 1 });
  const doubled = run('{"a":1,"a":1}', '-');
  assert.deepEqual([doubled.findings.length, doubled.findings[0]?.what, doubled.status], [1, 'unreadable', 1]);
  const both = run(`${example.text}\n{}`, '-');
  assert.deepEqual(both, {
    findings: [
      { ...validFinding, key: 'claimed' },
      { ok: false, seq: 0, what: 'malformed' },
    ],
    status: 1,
  });
  const odd = [
    [file, '--approver'],
    [file, '--approver', 'x'],
    [file, '--key', key, '--key', key],
    [file, '--why', key],
  ];
  for (const argv of [[], [`${file}.none`], [file, '--key'], [file, '--key', 'x'], ...odd]) {
    const { findings, status } = run('', ...argv);
    assert.deepEqual([findings[0]?.what, status], ['unusable', 2], argv.join(' '));
  }
});

test('both verifiers accept a receipt that the executor has just made, and refuse a forged one', async (t) => {
  const home = temporaryFolder(t);
  const executor = await startExecutorProcess(home, {});
  t.after(() => executor.end('SIGKILL'));
  const get = async <T>(path: string) => JSON.parse(await executor.get('alice', path)) as T;
  const post = async <T>(path: string, body: object) => {
    const answer = await fetch(executor.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${EXECUTOR_TOKEN}`,
        'x-matrix-user': 'alice',
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return (JSON.parse(text) as { data: T }).data;
  };
  const args = { from: 'alice', to: 'rent', amount: '12.50', currency: 'EUR' };
  const plan = { id: 'pay', kind: 'call', tool: 'ledger/transfer', args };
  const { intent_id } = await post<{ intent_id: string }>('/messages/async', { intent: { verb: 'transfer', plan } });
  type Gates = { pending: { node_id: string; call: { call_sha256: string } }[] };
  const gates = async () => (await get<Gates>(`/intents/${intent_id}/gates`)).pending;
  await eventually('a person is asked', async () => (await gates()).length === 1, 20_000);
  const asked = await executor.get('alice', `/intents/${intent_id}/receipt`);
  const [gate] = await gates();
  const at = { url: executor.url, token: EXECUTOR_TOKEN };
  const approval = await signedAnswer(at, 'alice', intent_id, gate!.node_id);
  await post(`/intents/${intent_id}/gates/${gate!.node_id}/answer`, approval);
  const status = async () => (await get<{ status: string }>(`/intents/${intent_id}`)).status;
  await eventually('it is completed', async () => (await status()) === 'completed', 20_000);

  const receipt = await executor.get('alice', `/intents/${intent_id}/receipt`);
  const { public_key: key } = JSON.parse(receipt) as { public_key: string };
  const validFinding = { ok: true, intent_id, key: 'named' };
  const { approver } = APPROVER;
  assert.deepEqual(verify(receipt, key, [approver]), [{ ...validFinding, ends_with: 'intent.completed' }]);
  assert.deepEqual(
    verify(receipt, key, [key]).map(({ what }) => what),
    ['approver'],
  );
  assert.deepEqual(verify(asked, key), [{ ...validFinding, ends_with: null }]);
  assert.deepEqual(verify(receipt, key), [{ ...validFinding, ends_with: 'intent.completed' }]);
  const forged = receipt.replaceAll('12.50', '99.99');
  assert.equal(verify(forged, key)[0]?.what, 'signature');
  for (const [content, expected] of [
    [receipt, 0],
    [forged, 1],
  ] as const) {
    const file = join(home, 'receipt.json');
    writeFileSync(file, content);
    const argv = ['--key', key, '--approver', approver];
    const first = await reveille(home, ['receipt', 'verify', file, ...argv]);
    assert.equal(first.status, expected, first.stderr + first.stdout);
    if (expected === 0) assert.match(first.stdout.replace(/\s+/g, ' '), new RegExp(`signed by ${approver}`));
    const second = await promisify(execFile)(process.execPath, [PROGRAM, file, ...argv]).then(
      () => 0,
      (error: { code: number }) => error.code,
    );
    assert.equal(second, expected);
  }
});
