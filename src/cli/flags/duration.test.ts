import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDuration } from './duration.ts';

test('a duration is a sum of numbers with units, in milliseconds', () => {
  const cases: [string, number][] = [
    ['90s', 90_000],
    ['10m', 600_000],
    ['10min', 600_000],
    ['1h30m', 5_400_000],
    ['2d', 172_800_000],
    ['1w', 604_800_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['1h 30m', 5_400_000],
    [' 5s ', 5000],
    ['0s', 0],
  ];
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text);
});

test('what has no unit, an unknown one or a sign is no duration', () => {
  for (const text of [
    '',
    '10',
    'm',
    '10x',
    '-5m',
    '+5m',
    '5m-',
    '1e3s',
    '1,5h',
    '5 m',
    '.5h',
    '1h30',
    'NaNs',
    '10M',
    '９m',
  ])
    assert.equal(parseDuration(text), undefined, JSON.stringify(text));
});

test('a number too large to count milliseconds in is no duration', () => {
  assert.equal(parseDuration(`${'9'.repeat(400)}d`), undefined);
});
