import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { columns, fit, pad, textWidth, wrap } from './columns.ts';

test('the width of text counts cells: wide characters two, combining ones none, emoji two', () => {
  const cases: [string, number][] = [
    ['', 0],
    ['abc', 3],
    ['日本', 4],
    ['e\u0301', 1],
    ['👩‍👩‍👧', 2],
    ['🇩🇪', 2],
    ['❤️', 2],
    ['한국', 4],
    ['Ａ', 2],
    ['\u200b', 0],
  ];
  for (const [text, width] of cases) assert.equal(textWidth(text), width, JSON.stringify(text));
});

test('text that does not fit is cut between characters and ends in an ellipsis', () => {
  assert.equal(fit('short', 5), 'short');
  assert.equal(fit('longer', 5), 'long…');
  assert.equal(fit('日本語テキスト', 6), '日本…');
  assert.equal(fit('a 👩‍👩‍👧 b', 4), 'a…');
});

test('any fitted text has at most the allowed cells', () => {
  const line = fc.string({ unit: 'grapheme' }).map(oneLine);
  fc.assert(
    fc.property(line, fc.integer({ min: 1, max: 40 }), (text, width) => {
      assert.ok(textWidth(fit(text, width)) <= width);
    }),
    { numRuns: 300 },
  );
});

test('columns are as wide as their widest cell and the last one is cut to the line', () => {
  const rows = [
    ['ID', 'NAME', 'TEXT'],
    ['1', '日本', 'short'],
    ['22', 'x', 'a text that is longer than the line allows'],
  ];
  assert.deepEqual(columns(rows, 30), ['ID  NAME  TEXT', '1   日本  short', '22  x     a text that is long…']);
  assert.ok(columns(rows, 30).every((line) => textWidth(line) <= 30));
  assert.deepEqual(columns([], 80), []);
});

test('a line of external text shows its control characters without executing them', () => {
  assert.equal(oneLine('a\nb\tc\u001b[31m\u202e'), 'a\\nb\\tc\\u001b[31m\\u202e');
});

test('padding and wrapping count cells', () => {
  assert.equal(pad('日', 4), '日  ');
  assert.equal(pad('longer', 2), 'longer');
  assert.deepEqual(wrap('one two three', 7), ['one two', 'three']);
  assert.deepEqual(wrap('unbreakable', 4), ['unbreakable']);
  assert.deepEqual(wrap('', 4), ['']);
});
