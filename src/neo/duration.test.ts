import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDuration, formatLateness } from './duration.ts';

test('a duration is written in its two largest units, rounded down', () => {
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
  for (const [ms, words] of cases) assert.equal(formatDuration(ms), words);
});

test('lateness names its direction', () => {
  assert.equal(formatLateness(0), 'on time');
  assert.equal(formatLateness(12), '12 ms late');
  assert.equal(formatLateness(-3), "3 ms early by this machine's clock");
});
