import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressRefusal, forbiddenAddress } from './addresses.ts';

const PUBLIC = [
  '1.1.1.1',
  '93.184.216.34',
  '172.15.0.1',
  '172.32.0.1',
  '192.167.0.1',
  '2606:4700::1111',
  '2a00:1450:4001::8a',
];
const PRIVATE = [
  '127.0.0.1',
  '127.255.0.9',
  '::1',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  'fc00::1',
  'fdab::1',
];
const NEVER = [
  ...['169.254.169.254', '169.254.0.1', 'fe80::1', 'fe80::1%eth0', '100.100.100.200', '168.63.129.16', 'fd00:ec2::254'],
  ...['0.0.0.0', '224.0.0.1', '255.255.255.255', '240.0.0.1', '192.0.2.1', '198.18.0.1', '203.0.113.9'],
  ...['::', 'ff02::1', '100::1', '2001:db8::1', '2001::1', '4000::1', 'not an address', ''],
];

test('public addresses are allowed', () => {
  for (const address of PUBLIC) assert.equal(addressRefusal(address, false), undefined, address);
});

test('private addresses are allowed only by option', () => {
  for (const address of PRIVATE) {
    assert.notEqual(addressRefusal(address, false), undefined, address);
    assert.equal(addressRefusal(address, true), undefined, address);
  }
});

test('metadata services, link-local and reserved addresses are never allowed', () => {
  for (const address of NEVER) assert.notEqual(addressRefusal(address, true), undefined, address);
});

test('an IPv4 address embedded in an IPv6 address is checked as IPv4', () => {
  const forms = (dotted: string) => {
    const [a, b, c, d] = dotted.split('.').map(Number) as [number, number, number, number];
    const hex = (high: number, low: number) => (high * 256 + low).toString(16);
    const groups = `${hex(a, b)}:${hex(c, d)}`;
    return [
      ...[`::ffff:${dotted}`, `::ffff:${groups}`, `0:0:0:0:0:ffff:${groups}`, `::ffff:0:${groups}`, `::${groups}`],
      ...[`64:ff9b::${groups}`, `64:ff9b::${dotted}`, `2002:${groups}::1`],
    ];
  };
  for (const form of forms('169.254.169.254')) assert.notEqual(addressRefusal(form, true), undefined, form);
  for (const form of forms('10.1.2.3')) {
    assert.notEqual(addressRefusal(form, false), undefined, form);
    assert.equal(addressRefusal(form, true), undefined, form);
  }
  for (const form of forms('1.1.1.1')) assert.equal(addressRefusal(form, false), undefined, form);
});

test('an operator may register any address except link-local ones and metadata services', () => {
  const forms = (dotted: string) => [dotted, `::ffff:${dotted}`, `64:ff9b::${dotted}`, `::${dotted}`];
  for (const address of ['169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16', '192.0.0.192'])
    for (const form of forms(address)) assert.notEqual(forbiddenAddress(form), undefined, form);
  for (const address of ['fe80::1', 'fe80::1%eth0', 'febf::1', 'fd00:ec2::254', 'fd20:ce::254', '::ffff:a9fe:a9fe'])
    assert.notEqual(forbiddenAddress(address), undefined, address);
  for (const address of [...PUBLIC, ...PRIVATE, '0.0.0.0', '198.18.0.1', 'fdaa:0:1::3'])
    assert.equal(forbiddenAddress(address), undefined, address);
});
