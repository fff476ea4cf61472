import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { amountText, centsOf } from './money.ts';

test('amounts are read to the cent', () => {
  assert.deepEqual(
    ['12.50', '12.5', '7', '0.01', '999999999999.99'].map(centsOf),
    [1250, 1250, 700, 1, 99999999999999],
  );
});

test('what is no amount above zero with at most two decimals is not read', () => {
  const wrong = [
    '',
    '0',
    '0.00',
    '-1',
    '+1',
    '1e2',
    '1,5',
    '.5',
    '5.',
    '1.234',
    '007',
    ' 1',
    '1\n',
    '1_000',
    '٣',
    'NaN',
    '1000000000000',
  ];
  for (const text of wrong) assert.equal(centsOf(text), undefined, JSON.stringify(text));
});

test('every amount survives being written and read', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 99999999999999 }), (cents) =>
      assert.equal(centsOf(amountText(cents)), cents),
    ),
  );
  assert.deepEqual([0, 5, -5, -12345].map(amountText), ['0.00', '0.05', '-0.05', '-123.45']);
});
