import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duration } from '../../wire/chronometric.ts';
import { formatDuration, formatLateness, isoDuration, parseDuration } from './duration.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;

test('a duration is formatted in its two largest units, rounded down', () => {
  const cases: [number, string][] = [
    [0, '0 ms'],
    [999, '999 ms'],
    [1000, '1 s'],
    [3299, '3.2 s'],
    [9999, '9.9 s'],
    [10_000, '10 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [250_000, '4 min 10 s'],
    [7_200_000, '2 h'],
    [7_259_999, '2 h'],
    [9_000_000, '2 h 30 min'],
    [2_692_800_000, '31 d 4 h'],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test('lateness is formatted with its direction', () => {
  assert.equal(formatLateness(0), 'on time');
  assert.equal(formatLateness(12), '12 ms late');
  assert.equal(formatLateness(-3), "3 ms early by this machine's clock");
});

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

test('a text without a unit, with an unknown unit or with a sign is not a duration', () => {
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

test('a number too large for milliseconds is not a duration', () => {
  assert.equal(parseDuration(`${'9'.repeat(400)}d`), undefined);
});

test('an ISO duration has hours, minutes and whole seconds, without zero parts', () => {
  const written: [number, string][] = [
    [0, 'PT0S'],
    [999, 'PT0S'],
    [1000, 'PT1S'],
    [90 * 60 * SECOND, 'PT1H30M'],
    [60 * SECOND, 'PT1M'],
    [HOUR + 1999, 'PT1H1S'],
    [50 * HOUR, 'PT50H'],
  ];
  for (const [milliseconds, text] of written) {
    assert.equal(isoDuration(milliseconds), text);
    assert.ok(duration.safeParse(text).success);
  }
});

test('a negative duration becomes zero', () => {
  assert.equal(isoDuration(-1), 'PT0S');
  assert.equal(isoDuration(-5 * HOUR), 'PT0S');
});
