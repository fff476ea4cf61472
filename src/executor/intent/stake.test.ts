import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountOf, referencesOf } from './stake.ts';

const tool = { rail: { amount: '/amount', currency: '/currency', references: ['/id', '/deep/hash'] } };
const eur = (amount: unknown) => amountOf(tool, { amount, currency: 'EUR' });

test('the amount is read at the pointer of the manifest', () => {
  assert.deepEqual(eur('12.50'), { value: '12.50', currency: 'EUR' });
  assert.deepEqual(eur(7), { value: '7', currency: 'EUR' });
  assert.deepEqual(amountOf({ rail: { amount: '/n' } }, { n: '1' }), { value: '1', currency: '' });
  assert.equal(amountOf({ rail: undefined }, { amount: 1 }), undefined);
  assert.equal(amountOf({ rail: {} }, { amount: 1 }), undefined);
});

test('an ambiguous or missing amount is unreadable', () => {
  const amounts = ['-1', '1e3', '1,000', ' 1', '1 ', '0x10', '١٢', '', '.5', '5.', 'NaN', '1'.repeat(79), '1\n'];
  for (const amount of [...amounts, -1, 1e21, 1e-7, null, undefined, true, ['1'], { value: '1' }])
    assert.equal(eur(amount), 'unreadable', JSON.stringify(amount));
  for (const currency of [undefined, '', 1, 'EU R', 'E\u200bUR', ['EUR']])
    assert.equal(amountOf(tool, { amount: '1', currency }), 'unreadable', JSON.stringify(currency));
});

test('references are kept by their pointers when they are texts or exact numbers', () => {
  assert.deepEqual(referencesOf(tool, { id: 'tx-1', deep: { hash: 17 } }), { '/id': 'tx-1', '/deep/hash': 17 });
  assert.deepEqual(referencesOf(tool, { id: 'tx-1', deep: { hash: 2 ** 60 } }), { '/id': 'tx-1' });
  assert.equal(referencesOf(tool, { id: { nested: true } }), undefined);
  assert.equal(referencesOf(tool, undefined), undefined);
  assert.equal(referencesOf({ rail: undefined }, { id: 1 }), undefined);
});
