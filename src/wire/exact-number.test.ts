import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isExact, isNumberLiteral } from './json.ts';

test('a number is exact in every spelling if JavaScript prints the same decimal number', () => {
  for (const literal of [
    '0',
    '-0',
    '0.0',
    '1',
    '1.0',
    '1.50',
    '0.1',
    '15e-1',
    '1E3',
    '600',
    '1e22',
    '5e-324',
    '0e999999999',
  ]) {
    assert.equal(isExact(literal), true, literal);
  }
});

test('a number that JavaScript rounds, overflows or flushes to zero is not exact', () => {
  const literals = ['12345678901234567890', '9007199254740993', '1.00000000000000000001', '1e400', '-1e400', '1e-400'];
  for (const literal of literals) assert.equal(isExact(literal), false, literal);
});

test('every finite double is exact in the form JavaScript prints, also with added zeros', () => {
  fc.assert(
    fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (value) => {
      assert.equal(isExact(JSON.stringify(value)), true);
      assert.equal(isExact(value.toExponential()), true);
      assert.equal(
        isExact(value.toExponential().replace(/(\.\d+)?e/, (fraction) => `${fraction.slice(0, -1) || '.'}00e`)),
        true,
      );
    }),
  );
});

test('an integer is exact if and only if JavaScript prints the same integer', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }), (value) => {
      assert.equal(isExact(String(value)), printed(Number(value)) === value);
    }),
  );
});

/** The integer in JavaScript's text of a double. */
function printed(value: number): bigint {
  const [mantissa, exponent = '0'] = String(value).split('e+') as [string, string?];
  const [whole, fraction = ''] = mantissa.split('.') as [string, string?];
  return BigInt(`${whole}${fraction}`) * 10n ** BigInt(Number(exponent) - fraction.length);
}

test('the check of a long number takes time linear in its length', () => {
  assert.equal(isExact(`1${'0'.repeat(200_000)}1e-200000`), false);
  assert.equal(isExact(`0.${'0'.repeat(200_000)}`), true);
});

test('only whole JSON numbers are number literals', () => {
  for (const text of ['600', '-1', '0.5', '1e3', '1E+3']) assert.equal(isNumberLiteral(text), true, text);
  for (const text of ['', ' 600', '600 ', '+1', '01', '.5', '5.', '1e', '0x10', 'NaN', 'Infinity', '1_000', '१']) {
    assert.equal(isNumberLiteral(text), false, text);
  }
});
