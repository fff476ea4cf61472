import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatInstant, parseInstant } from './rfc3339.ts';

test('a parsed instant can be formatted again', () => {
  for (const text of [
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
    '2026-06-15T10:10:00.5+02:00',
    '2026-06-15t08:10:00z',
  ])
    assert.equal(parseInstant(formatInstant(parseInstant(text)!)), parseInstant(text), text);
  for (const text of ['0000-01-01T00:00:00+14:00', '9999-12-31T23:59:59.999-00:01'])
    assert.equal(parseInstant(text), undefined, text);
});

test('a text that is not an instant gives undefined', () => {
  for (const text of [
    '2026-02-30T00:00:00Z',
    '2026-06-15T25:00:00Z',
    '2026-06-15T08:10:00',
    '2026-06-15',
    '',
    '2026-06-15T08:10:00+24:00',
  ])
    assert.equal(parseInstant(text), undefined, text);
});

test('an instant is written as Date writes it, whatever the day', () => {
  const limit = 8.64e15;
  for (const instant of [0, -1, 1, 86_399_999, 86_400_000, -86_400_000, -limit, limit, 253_402_300_799_999, 0.5])
    assert.equal(formatInstant(instant), new Date(instant).toISOString());
  for (let count = 0; count < 10_000; count++) {
    const instant = Math.floor((Math.random() - 0.5) * 2 * limit);
    assert.equal(formatInstant(instant), new Date(instant).toISOString(), String(instant));
  }
  for (const instant of [Number.NaN, limit + 1]) assert.throws(() => formatInstant(instant), RangeError);
});
