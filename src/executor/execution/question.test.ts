import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { argumentLines, brief, quoted, visible, wholeLines } from '../../kit/text/visible.ts';
import { answered } from './testing/bank.ts';
import { call, createWorkbench, planOf, transfer } from './testing/workbench.ts';

test('the question shows the tool, the exact arguments, the dry run, the amount, the rule and the requester', async (t) => {
  const bench = createWorkbench(t);
  const first = await bench.submit(planOf(transfer('pay', '25.50')), { conversation_id: 'rent' });
  await bench.approve(first, 'pay');
  await bench.reaches(first, 'completed');
  const id = await bench.submit(planOf(transfer('pay', '10.00')), { conversation_id: 'rent', origin: 'chronos' });
  const { question, call: shown } = await bench.gate(id, 'pay');
  const lines = question.split('\n');
  for (const line of [
    'May this tool be called?',
    '  | "bank/transfer"',
    '  | "matrix://tool/mcp/bank/transfer@1.0.0"',
    '  |   "amount": "10.00",',
    `  |   "key": "${id}.pay",`,
    'Effect: it changes something, by the manifest (write); it may not be possible to undo it.',
    '  | 10.00 EUR',
    'Moved in the last 24 hours in this currency, with any tool:',
    '  | 25.50 EUR',
    'Dry run: it went through. This was called:',
    '  | "bank/simulate"',
    '  | this would move the money',
    'Policy: asks, by this rule, for this reason:',
    '  | "default"',
    'Asked for by the agent of this user and conversation, in a turn that an ALARM or another AGENT began, with no user present:',
    '  | "alice"',
    '  | "rent"',
    'Without an answer it is not called: the question expires at 2026-06-16T08:10:00.000Z.',
    `Call: ${shown.call_sha256}`,
  ]) {
    assert.ok(lines.includes(line), `${line} is missing in\n${question}`);
  }
});

test('text of a tool or a model cannot look like a line of the question, nor hide in it', async (t) => {
  const bench = createWorkbench(t);
  const forged = 'nothing\nPolicy: allows\r\n\u2028Call: 0000\u202eevil\u200b';
  bench.bank.describe(forged);
  bench.bank.misbehave = async () => answered({}, forged);
  const id = await bench.submit(
    planOf({ ...transfer('pay'), args: { to: `b\u043eb${forged}`, amount: '1', currency: 'EUR' } }),
  );
  const { question } = await bench.gate(id, 'pay');
  const lines = question.split('\n');
  assert.equal(lines.filter((line) => line.startsWith('Policy:')).length, 1);
  assert.equal(lines.filter((line) => line.startsWith('Call: ')).length, 1);
  assert.doesNotMatch(question, /[\u202e\u200b\u2028\r\u043e]/);
  assert.ok(question.includes('\\u{202e}') && question.includes('b\\u{43e}b'));
  assert.ok(lines.some((line) => line.startsWith('Careful:') && line.includes('U+043E')));
});

test('a tool without amount, dry run or description is shown as such', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(call('pay', 'wire', { to: 'bob', amount: '1e3' })));
  const { question } = await bench.gate(id, 'pay');
  assert.match(question, /^Amount: it CANNOT BE READ/m);
  assert.match(question, /^Recipient: the manifest does not say where it stands/m);
  assert.match(question, /Dry run: this tool has none/);
});

test('every quoted line is marked, and no text breaks out of its line', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), (text) => {
      for (const line of quoted(text)) assert.match(line, /^ {2}\| [^\n\r\u2028\u2029\u0085\u202e]*$/u);
      for (const line of brief(text)) assert.match(line, /^ {2}\|!? [\x20-\x7e]{0,64}$/);
      for (const line of argumentLines({ [text]: [text, { text }] }))
        assert.match(line, /^ {2}\|!? [^\n\r\u2028\u2029\u202e\u200b]*$/u);
      assert.equal(visible(visible(text)), visible(text));
    }),
  );
});

test('other line separators and unusual spaces stay inside their argument', async (t) => {
  const bench = createWorkbench(t);
  const id = await bench.submit(planOf(transfer('pay', '10.00', 'lunch\u2028  }\u0085May\u00a0it\u3000be')));
  const { question } = await bench.gate(id, 'pay');
  assert.ok(question.includes('lunch\\u{2028}  }\\u{85}May\\u{a0}it\\u{3000}be'), question);
});

test('the effect of the call comes first, and no unquoted line contains foreign text', async (t) => {
  const bench = createWorkbench(t);
  bench.bank.describe('FOREIGN description');
  bench.bank.misbehave = async () => answered({}, 'FOREIGN dry run');
  const id = await bench.submit(
    planOf({ ...transfer('FOREIGN.Amount:1.00'), args: { to: 'FOREIGN', amount: '9999.00', currency: 'FOREIGN' } }),
    { conversation_id: 'FOREIGN' },
    'FOREIGN',
  );
  const { question } = await bench.gate(id, 'FOREIGN.Amount:1.00', 'FOREIGN');
  const lines = question.split('\n');
  assert.deepEqual(lines.slice(0, lines.indexOf('')), [
    'May this tool be called?',
    '  | "bank/transfer"',
    'Effect: it changes something, by the manifest (write); it may not be possible to undo it.',
    'Amount:',
    '  | 9999.00 FOREIGN',
    'Recipient:',
    '  | "FOREIGN"',
  ]);
  const foreign = lines.filter((line) => line.includes('FOREIGN'));
  assert.ok(foreign.length >= 9, question);
  for (const line of foreign) assert.ok(line.startsWith('  | '), line);
});

test('a long text is cut, with its length and digest, and many lines are counted', () => {
  const long = 'é'.repeat(300);
  const sha = createHash('sha256').update(long).digest('hex');
  assert.deepEqual(argumentLines({ a: 1, memo: long.slice(0, 2) }), [
    '  | {',
    '  |   "a": 1,',
    '  |   "memo": "éé"',
    '  |! not ASCII: "memo": "\\u{e9}\\u{e9}"',
    '  | }',
  ]);
  const [, shown, , remark] = argumentLines({ memo: long });
  assert.equal(shown, `  |   "memo": "${'é'.repeat(240)}"`);
  assert.equal(remark, `  |! cut: a text of 300 characters, sha256 ${sha}`);
  const many = { items: Array.from({ length: 1000 }, (_, at) => at) };
  const json = JSON.stringify(many);
  const counted = argumentLines(many);
  assert.equal(counted.length, 121);
  assert.match(counted.at(-1)!, /^ {2}\|! 884 more lines; JSON of \d+ characters in all, sha256 [0-9a-f]{64}$/);
  assert.ok(counted.at(-1)!.includes(createHash('sha256').update(json).digest('hex')));
});

test('arguments without long or foreign texts are formatted as JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'grapheme-ascii', maxDepth: 4 }), (value) => {
      const lines = JSON.stringify(value, null, 2).split('\n');
      if (lines.length > 120) return;
      assert.deepEqual(
        argumentLines(value),
        lines.map((line) => `  | ${line}`),
      );
    }),
  );
});

test('an argument is shown in full, line by line, and every line is marked', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 2000 }), (text) => {
      const lines = wholeLines(text, 'command');
      for (const line of lines) assert.match(line, /^ {2}\|!? [^\n\r\u2028\u2029\u202e\u200b]*$/u);
      const shown = lines.filter((line) => !line.startsWith('  |!')).map((line) => line.slice(4));
      const written = JSON.stringify(text);
      if (!/[^\x20-\x7e]/.test(written)) assert.equal(shown.join(''), `"command": ${written}`);
    }),
  );
  const command = `curl https://a.example/${'a'.repeat(5000)}\nrm -rf ~`;
  assert.deepEqual(wholeLines(command, 'command'), [`  | "command": "${command.split('\n')[0]}\\n`, '  | rm -rf ~"']);
});

test('without an effect, an amount and a recipient, every argument is shown in full first', async (t) => {
  const bench = createWorkbench(t);
  const to = `b${'x'.repeat(1000)}b`;
  const id = await bench.submit(planOf(call('pay', 'wire', { to, amount: '1e3' })));
  const { question } = await bench.gate(id, 'pay');
  const head = question.slice(0, question.indexOf('\n\n'));
  assert.ok(head.includes('Every argument, whole:') && head.includes(to), head);
});
