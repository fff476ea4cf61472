import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatDecimal, isMore, plus, readDecimal } from './decimal.ts';

test('ambiguous amounts are not read', () => {
  const odd = [
    '',
    ' 1',
    '1 ',
    '+1',
    '01',
    '1.',
    '.5',
    '1e3',
    '1,000',
    '1_000',
    '0x10',
    'NaN',
    'Infinity',
    '١٢',
    '１',
    '1\u200b',
    '--1',
    '1.2.3',
  ];
  for (const value of [
    ...odd,
    1e21,
    1e-7,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    undefined,
    true,
    [1],
    {},
    '9'.repeat(79),
  ])
    assert.equal(readDecimal(value), undefined, String(value));
  for (const value of ['0', '0.10', '-1.5', 12.5, 0.1]) assert.equal(formatDecimal(readDecimal(value)!), String(value));
});

test('sums and comparisons are exact', () => {
  const cents = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
  const text = (units: bigint) => formatDecimal({ units, scale: 2 });
  fc.assert(
    fc.property(cents, cents, (one, other) => {
      assert.equal(formatDecimal(plus(readDecimal(text(one))!, readDecimal(text(other))!)), text(one + other));
      assert.equal(isMore(readDecimal(text(one))!, readDecimal(text(other))!), one > other);
    }),
  );
  assert.equal(formatDecimal(plus(readDecimal('0.1')!, readDecimal('0.2')!)), '0.3');
  assert.equal(isMore(readDecimal('1.50')!, readDecimal('1.5')!), false);
});
