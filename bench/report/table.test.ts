import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderMarkdown, renderText, type Table } from './table.ts';

const TABLE: Table = {
  title: 'Late',
  headings: ['System', 'p50', 'p99'],
  rows: [
    ['Reveille', '1.5', '12'],
    ['a|b', '-', '1,000'],
  ],
  note: 'In milliseconds.',
};

test('on a terminal, names are left-aligned and figures right-aligned', () => {
  assert.deepEqual(renderText(TABLE), [
    '',
    'Late',
    '',
    '  System    p50    p99',
    '  --------  ---  -----',
    '  Reveille  1.5     12',
    '  a|b         -  1,000',
    '',
    '  In milliseconds.',
  ]);
});

test('in Markdown, a bar inside a cell does not end the cell', () => {
  assert.deepEqual(renderMarkdown(TABLE), [
    '| System | p50 | p99 |',
    '| --- | ---: | ---: |',
    '| Reveille | 1.5 | 12 |',
    '| a\\|b | - | 1,000 |',
    '',
    'In milliseconds.',
  ]);
});
