import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import type { WaitingGate } from '../../executor/client.ts';
import { argumentLines, quoted } from '../../kit/text/visible.ts';
import { renderGate, renderGist, renderInline, screenLines } from './gate-screen.ts';
import { statusWords } from './intent-screen.ts';
import type { Reader } from './render.ts';

const look = (width: number): Reader => ({ now: 0, zone: 'UTC', width, paint: (_, text) => text });

/** No terminal gives a code point more than two cells. */
const mostCells = (line: string) => [...line].reduce((sum, one) => sum + (one <= '\u007e' ? 1 : 2), 0);

test('a line is broken before any terminal would break it, and each piece of external text is marked', () => {
  const text = fc.string({
    unit: fc.oneof(
      fc.constantFrom('日', 'e\u0301', '👩‍👩‍👧', ' ', 'x', '\ufdfd'),
      fc.string({ unit: anyCharacter, maxLength: 4 }),
    ),
  });
  fc.assert(
    fc.property(text, fc.integer({ min: 20, max: 120 }), (foreign, width) => {
      const lines = screenLines([...quoted(foreign), ...argumentLines({ [foreign]: foreign })], look(width));
      for (const line of lines) {
        assert.match(line, /^ {2}\|(?: |! |\+ )/);
        assert.ok(mostCells(line) < width, line);
      }
    }),
  );
  assert.deepEqual(screenLines([`  | ${'x'.repeat(30)}`], look(24)), [
    `  | ${'x'.repeat(18)}`,
    `  |+ ${'x'.repeat(12)}`,
  ]);
  assert.deepEqual(screenLines(['Our own words are wrapped'], look(24)), ['Our own words are', '    wrapped']);
});

const sha = (text: string) => createHash('sha256').update(text).digest('hex');

const gateOf = (question: string, args: unknown): WaitingGate => ({
  node_id: 'pay',
  question,
  call: { tool: 'bank/transfer', args, call_sha256: sha('call') },
  displayed_sha256: sha(question),
  expires_at: '2026-06-16T08:10:00.000Z',
});

test('the exact call is shown when the question shows another one, and completely on request', () => {
  const args = { to: 'bob', memo: 'm'.repeat(1000) };
  const honest = gateOf(
    ['May this tool be called?', '  | "bank/transfer"', '', 'Arguments:', ...argumentLines(args)].join('\n'),
    args,
  );
  const memo = (lines: string[]) => lines.join('').replaceAll('  |+ ', '').includes('m'.repeat(1000));
  const shown = renderGate('id', honest, look(80));
  assert.equal(shown.includes('This exact call is made:'), false);
  assert.ok(
    shown
      .join('')
      .replaceAll('  |+ ', '')
      .includes(`1000 characters, sha256 ${sha(args.memo)}`),
  );
  assert.equal(memo(shown), false);
  assert.ok(memo(renderGate('id', honest, look(80), true)));
  const gist = renderGist(honest, look(80)).slice(1);
  assert.deepEqual(gist.slice(0, 3), ['May this tool be called?', '  | "bank/transfer"', 'Every argument, whole:']);
  assert.ok(memo(gist), 'a question without a list of important arguments is shown with all of them');

  const lying = gateOf('May this tool be called?\n  | "bank/look"\n\nArguments:\n  | {}', args);
  assert.ok(renderGate('id', lying, look(80)).includes('This exact call is made:'));
  assert.ok(renderGist(lying, look(80)).includes('  | "bank/transfer"'));
});

test('the state of an intent names the intent before it in the queue', () => {
  assert.equal(
    statusWords({ status: 'planned', queued_behind: 'other' }, look(80)),
    'planned, waits behind intent other',
  );
});

test('with any output of a dry run, the effect of the call stays visible, and every line of its server is marked', () => {
  const args = { to: 'bob', amount: '5.00' };
  const head = [
    'May this tool be called?',
    '  | "bank/transfer"',
    'Amount:',
    '  | 5.00 EUR',
    'Recipient:',
    '  | "bob"',
  ];
  const record = (n: number, balance: string) => ({ account: `account ${n} ${'x'.repeat(40)}`, balance });
  const trials = {
    plain: { before: [{ account: 'alice', balance: '5.00' }], after: [{ account: 'alice', balance: '0.00' }] },
    long: { before: [record(1, 'a'.repeat(900))], after: [record(1, 'b'.repeat(900))] },
    many: {
      before: Array.from({ length: 9 }, (_, n) => record(n, '1')),
      after: Array.from({ length: 9 }, (_, n) => record(n, '\nAmount:\n  | 0.01 EUR')),
    },
  };
  for (const [name, trial] of Object.entries(trials))
    for (const rows of [24, 60]) {
      const words = quoted(JSON.stringify(trial));
      const question = [
        ...[...head, '', 'Arguments, exactly as they will be sent:', ...argumentLines(args)],
        ...['Dry run: it went through. This was called:', '  | "bank/simulate"', 'In its own words:', ...words],
        ...['Policy: asks, by this rule, for this reason:', '  | "default"'],
      ].join('\n');
      const lines = renderInline('id', gateOf(question, args), look(80), rows);
      const seen = lines.slice(-(rows - 1));
      for (const line of head) assert.ok(seen.includes(line), `${name}, ${rows} rows: ${line}`);
      assert.ok(
        seen.some((line) => line.startsWith('The dry run predicts these changes:')),
        name,
      );
      const own = lines.filter((line) => !/^ {2}\|(?: |! |\+ )/.test(line));
      assert.equal(
        own.some((line) => /xxx|aaa|0\.01/.test(line)),
        false,
        name,
      );
      if (rows === 60) assert.equal(own.filter((line) => line === 'Amount:').length, 1, name);
      assert.equal(
        lines.includes('Policy: asks, by this rule, for this reason:'),
        false,
        'the rest is available on request',
      );
    }
  const another = gateOf('May this tool be called?\n  | "bank/transfer"\n\nIn another form', args);
  assert.ok(renderInline('id', another, look(80), 60).includes('In another form'), 'shown completely');
});
