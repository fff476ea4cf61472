import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { amountText, centsAtRate, centsOf } from './money.ts';

test('amounts are read to the cent', () => {
  assert.deepEqual(
    ['12.50', '12.5', '7', '0.01', '999999999999.99'].map(centsOf),
    [1250, 1250, 700, 1, 99999999999999],
  );
});

test('text other than an amount above zero with at most two decimals is refused', () => {
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

test('every amount is the same after it is written and read', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 99999999999999 }), (cents) =>
      assert.equal(centsOf(amountText(cents)), cents),
    ),
  );
  assert.deepEqual([0, 5, -5, -12345].map(amountText), ['0.00', '0.05', '-0.05', '-123.45']);
});

test('an amount at a rate is computed exactly and rounded down to the cent', () => {
  const cases: [number, string, number | undefined][] = [
    [1000, '1.1637', 1163],
    [1, '0.8576', undefined],
    [2, '0.8576', 1],
    [100, '1', 100],
    // In floating point 1.1 * 110 is 121.00000000000001, and 4.35 * 100 is 434.99999999999994.
    [110, '1.1', 121],
    [100, '4.35', 435],
    [99_999_999_999_999, '0.999999999999', 99_999_999_999_899],
    [99_999_999_999_999, '1.000000000001', undefined],
  ];
  for (const [cents, rate, expected] of cases) assert.equal(centsAtRate(cents, rate), expected, `${cents} at ${rate}`);
  for (const rate of ['', '-1', '1e2', '01', '.5', '1,5', '1.0000000000001', 'NaN'])
    assert.throws(() => centsAtRate(1, rate), RangeError, rate);
});
