import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duration } from '../wire/chronometric.ts';
import { isoDuration } from './iso-duration.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;

test('a length is written in hours, minutes and whole seconds, without those that are nothing', () => {
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

test('nothing becomes negative', () => {
  assert.equal(isoDuration(-1), 'PT0S');
  assert.equal(isoDuration(-5 * HOUR), 'PT0S');
});
