import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { indexWords } from './sources.ts';

const has = (text: string, value: string) => indexWords(text).has(value);
const hasNumber = (text: string, value: number | string) => indexWords(text).hasNumber(String(value));

test('a value occurs in a text as a whole word, with any punctuation around it', () => {
  const value = 'acct-1';
  for (const text of [
    'acct-1',
    'from acct-1, please',
    'from acct-1.',
    'is it (acct-1)?',
    '"acct-1"',
    '“acct-1”',
    "'acct-1'",
    '`acct-1`',
    '**acct-1**',
    '_acct-1_',
    '[acct-1]',
    'to=acct-1 amount=5',
    '{"to":"acct-1","amount":5}',
    'acct-1,acct-2',
    'acct-1;acct-2',
    '| acct-1 |',
    'from:\nacct-1\n',
    '转账到acct-1。',
    '送金先acct-1へ',
  ]) {
    assert.ok(has(text, value), text);
  }
});

test('a part of a word is not the word', () => {
  const pairs: [string, string][] = [
    ['acct-12', 'acct-1'],
    ['acct-1.5', 'acct-1'],
    ['acct-1-old', 'acct-1'],
    ['my-acct-1', 'acct-1'],
    ['xacct-1', 'acct-1'],
    ['acct-1_2', 'acct-1'],
    ['acct-1:2', 'acct-1'],
    ['acct-1/2', 'acct-1'],
    ['acct-1@x', 'acct-1'],
    ['/a/b/c', '/a/b'],
    ['/a/b/', '/a/b'],
    ['x/a/b', '/a/b'],
    ['https://pay.example/x?to=acct-1&n=2', 'acct-1'],
    ['https://pay.example/x', 'https://pay.example'],
    ['https://pay.example.evil.example', 'https://pay.example'],
    ['bob@bank.example.evil', 'bob@bank.example'],
    ['0xABCDEF', '0xABCD'],
    ['0xABCD', '0xabcd'],
    ['acct-9一2', 'acct-9'],
    ['DE89 3704 0044', 'DE89'],
    ['DE89 3704 0044', 'DE89 3704'],
    ['1 000 000', '1'],
    ['f(acct-1)', 'acct-1'],
    ['.env', 'env'],
    ['', ''],
    ['abc', ''],
  ];
  for (const [text, value] of pairs) assert.ok(!has(text, value), `${value} in ${text}`);
});

test('lookalike characters do not match', () => {
  assert.ok(!has('аcct-1', 'acct-1'));
  assert.ok(!has('acct‐1', 'acct-1'));
  assert.ok(!has('acct-\u200b1', 'acct-1'));
  assert.ok(!has('acct-１', 'acct-1'));
  assert.ok(!has('cafe\u0301', 'caf\u00e9'));
});

test('a number occurs as the same decimal, and not within another number', () => {
  const there: [string, number | string][] = [
    ['pay 5 now', 5],
    ['pay 5.00.', 5],
    ['pay $5', 5],
    ['pay 5€', 5],
    ['5%', 5],
    ['invoice #42', 42],
    ['amount=5', 5],
    ['{"amount":5}', 5],
    ['1,000,000', 1_000_000],
    ['1,234.50', 1234.5],
    ['-5', -5],
    ['转账5美元', 5],
    ['0.1', 0.1],
    ['100000000000000000000000', '1e+23'],
  ];
  for (const [text, value] of there) assert.ok(hasNumber(text, value), `${value} in ${text}`);
  const not: [string, number][] = [
    ['50', 5],
    ['150', 5],
    ['5.5', 5],
    ['0.5', 5],
    ['5k', 5],
    ['5 million', 5],
    ['5 thousand', 5],
    ['5万', 5],
    ['1,000', 1],
    ['1,000', 1000],
    ['1.000,50', 1],
    ['1 000', 1],
    ['5-10', 5],
    ['5/10', 10],
    ['acct-5', 5],
    ['-5', 5],
    ['~5', 5],
    ['2026-06-15', 15],
    ['007', 7],
    ['5x', 5],
    ['５', 5],
    ['5e3', 5],
    ['0x5', 5],
    ['five', 5],
  ];
  for (const [text, value] of not) assert.ok(!hasNumber(text, value), `${value} in ${text}`);
});

test('a duration occurs with its unit', () => {
  const has = (text: string, seconds: number) => indexWords(text).hasSeconds(seconds);
  assert.ok(has('wait 10 minutes', 600));
  assert.ok(has('wait 10min.', 600));
  assert.ok(has('in 2 h', 7200));
  assert.ok(has('wait 600', 600));
  assert.ok(!has('wait 10 minutes', 6000));
  assert.ok(!has('wait 110 minutes', 600));
});

/** Parts of identifiers and amounts. */
const piece = fc.stringMatching(/^[a-z0-9]{1,6}([-._:/@][a-z0-9]{1,6}){0,2}$/);

test('adjacent characters of a word hide a value; spaces and quotes do not', () => {
  const glue = fc.constantFrom('a', '0', '-', '_', '/', '@', '+', '&', '\u0430', '\u200b', '％');
  fc.assert(
    fc.property(piece, piece, glue, (value, other, joint) => {
      for (const text of [`${value}${joint}${other}`, `${other}${joint}${value}`]) {
        assert.ok(!has(` ${text} `, value) || has(` ${text.replace(value, ' ')} `, value), text);
      }
      for (const text of [`${other} ${value} x`, `"${value}"`, `(${value}),`, `x "${value}" ${other}`]) {
        const apart = /\d$/.test(other) && /^\d+([.,]|$)|^\d[\d.,:]*$/.test(value);
        assert.ok(apart || has(text, value), text);
      }
    }),
    { numRuns: 500 },
  );
});

test('an amount is found as itself and not as another amount', () => {
  const amount = fc.integer({ min: 1, max: 10_000_000 }).map((cents) => cents / 100);
  fc.assert(
    fc.property(amount, amount, (written, asked) => {
      const words = indexWords(`Move ${written.toFixed(2)} USD from acct-1 to acct-2.`);
      assert.equal(words.hasNumber(String(asked)), asked === written);
      assert.ok(words.hasNumber(String(written)));
    }),
    { numRuns: 500 },
  );
});

test('no text makes the indexing slow', () => {
  const size = 64 * 1024;
  for (const text of [
    'a'.repeat(size),
    '('.repeat(size),
    '1,'.repeat(size / 2),
    '1 '.repeat(size / 2),
    '*'.repeat(size),
    'a='.repeat(size / 2),
  ]) {
    const words = indexWords(text);
    assert.equal(words.has('a-value-that-is-not-there'), false);
    assert.equal(words.hasNumber('77'), false);
  }
});
