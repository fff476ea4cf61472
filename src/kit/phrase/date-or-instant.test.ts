import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatInstant } from '../../wire/rfc3339.ts';
import { readDateOrInstant } from './date-or-instant.ts';

test('a date or a time of the past is read in the zone; an instant needs none', () => {
  const read = (text: string) => {
    const at = readDateOrInstant(text, 'Europe/Berlin');
    return at === undefined ? undefined : formatInstant(at);
  };
  assert.equal(read('2026-07-01'), '2026-06-30T22:00:00.000Z');
  assert.equal(read('2026-11-20 9:05'), '2026-11-20T08:05:00.000Z');
  assert.equal(read('2026-11-20T09:05:30'), '2026-11-20T08:05:30.000Z');
  assert.equal(read('2026-11-20T09:05:00+09:00'), '2026-11-20T00:05:00.000Z');
  for (const text of ['', 'yesterday', '2026-02-30', '2026-11-20 25:00', '20.11.2026', '@daily'])
    assert.equal(read(text), undefined, text);
});
