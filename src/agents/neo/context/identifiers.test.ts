import assert from 'node:assert/strict';
import { test } from 'node:test';
import { droppedIdentifiers, identifiersIn } from './summary.ts';

test('an identifier is found in the middle of prose, whatever surrounds it', () => {
  const identifiers = [
    '0xAbC0000000000000000000000000000000dEf123',
    'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
    '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    'e3b0c44',
    '0197f5a0-1111-7000-8000-000000000001',
    'alarm_xyz789',
    'T1000',
    'did:matrix:alice:0123456789abcdef',
    'matrix://tool/mcp/chronos/alarm_set@0.1.0',
    'https://en.wikipedia.org/wiki/Foo_(bar)?q=1#frag',
    'http://127.0.0.1:8080/healthz',
    '/home/ü/Übersicht/датей.txt',
    './notes/plan.md',
    '~/.reveille/config.yaml',
    'src/neo/loop/loop.ts',
    'C:\\Users\\neo\\notes.txt',
    '12345678',
    '1,234,567.89',
    '1 234 567',
    '-1001234567890',
    '+4915112345678',
    'someone@example.org',
    '10.0.0.1:9096',
    'AKIAIOSFODNN7EXAMPLE',
    'dGhpcyBpcyBub3QgYSBzZWNyZXQ=',
    'chronos__alarm_set',
    'QmYwAPJzv5CZsnAzt8auVZRnGzr1rRkVJmZ',
  ];
  for (const identifier of identifiers) {
    for (const [before, after] of [
      ['', ''],
      ['see ', ' for more'],
      ['(', ')'],
      ['"', '",'],
      ['at ', '.'],
      ['订单 ', ' 已完成'],
      ['[x](', ')'],
      ['id: ', '\nnext'],
    ]) {
      const text = `${before}${identifier}${after}`;
      assert.ok(
        [...identifiersIn(text)].some((found) => found === identifier),
        `${JSON.stringify(text)} gave ${JSON.stringify([...identifiersIn(text)])}`,
      );
    }
  }
});

test('a path between quotes keeps its spaces', () => {
  assert.deepEqual([...identifiersIn('open "/home/neo/My Documents/a b.txt" now')], ['/home/neo/My Documents/a b.txt']);
});

test('words and small numbers are not identifiers', () => {
  const prose = 'On Monday the 3 agents met, as usual; 240 of 512 holders were paid. It went well: nobody complained!';
  assert.deepEqual([...identifiersIn(prose)], []);
});

test('a part of an identifier does not count as the identifier', () => {
  assert.deepEqual(droppedIdentifiers('pay 12345678', 'paid 123456789'), ['12345678']);
  assert.deepEqual(droppedIdentifiers('read /a/b/c.txt', 'I read /a/b/c.txt.bak'), ['/a/b/c.txt']);
  assert.deepEqual(droppedIdentifiers('read /a/b/c.txt', 'I read "/a/b/c.txt".'), []);
});

test('long texts without a space cost time in proportion to their length', () => {
  const started = process.cpuUsage().user;
  for (const text of [
    'a'.repeat(300_000),
    '/'.repeat(300_000),
    'a/'.repeat(150_000),
    '1 '.repeat(150_000),
    '\\a'.repeat(150_000),
  ]) {
    identifiersIn(text);
  }
  // A quadratic algorithm takes minutes.
  assert.ok(process.cpuUsage().user - started < 30_000_000);
});
