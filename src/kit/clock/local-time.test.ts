import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromNow, localTime, shortTime, wallTime, zoneName } from './local-time.ts';

const at = (text: string) => Date.parse(text);
const here = { now: at('2026-06-15T12:00:00Z'), zone: 'Europe/Berlin' };

test('an instant is formatted in the zone, with the date only on another day', () => {
  assert.equal(localTime(at('2026-06-15T12:10:00Z'), here), '14:10:00 CEST');
  assert.equal(localTime(at('2026-06-15T22:00:00Z'), here), '2026-06-16 00:00:00 CEST');
  assert.equal(localTime(at('2026-06-14T22:00:00Z'), here), '00:00:00 CEST');
  assert.equal(localTime(at('2026-12-24T17:00:00Z'), here), '2026-12-24 18:00:00 CET');
  assert.equal(wallTime(at('2026-06-15T12:10:00.999Z'), here), '14:10:00');
});

test('a zone has its short English name, or else its offset', () => {
  const summer = here.now;
  assert.equal(zoneName(summer, 'America/New_York'), 'EDT');
  assert.equal(zoneName(summer, 'Australia/Sydney'), 'AEST');
  assert.equal(zoneName(summer, 'Asia/Kathmandu'), 'UTC+5:45');
  assert.equal(zoneName(summer, 'UTC'), 'UTC');
});

test('a short time has the time today, the day this year, and the year otherwise', () => {
  assert.equal(shortTime(at('2026-06-15T03:04:05Z'), here), '05:04:05');
  assert.equal(shortTime(at('2026-06-20T07:00:00Z'), here), '20 Jun 09:00');
  assert.equal(shortTime(at('2027-01-02T07:00:00Z'), here), '2 Jan 2027');
});

test('distances are formatted in two units, in both directions', () => {
  assert.equal(fromNow(here.now + 598_400, here.now), 'in 9 min 58 s');
  assert.equal(fromNow(here.now - 7_200_000, here.now), '2 h ago');
  assert.equal(fromNow(here.now + 7_200_000 - 40, here.now), 'in 2 h');
  assert.equal(fromNow(here.now + 3_600_000 - 400, here.now), 'in 1 h');
  assert.equal(fromNow(here.now + 86_400_000 - 1_500, here.now), 'in 1 d');
  assert.equal(fromNow(here.now + 9_700, here.now), 'in 9.7 s');
  assert.equal(fromNow(here.now + 999, here.now), 'now');
  assert.equal(fromNow(here.now - 999, here.now), 'now');
});
