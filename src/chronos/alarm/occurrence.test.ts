import assert from 'node:assert/strict';
import { test } from 'node:test';
import { zoneOf } from '../../kit/clock/zone.ts';
import { parseCron } from './cron.ts';
import { cronOccurrences } from './occurrence.ts';

/** The occurrences in `(after, until]`, formatted with the zone's own offset. */
function between(expression: string, timezone: string, after: string, until: string): string[] {
  const series = cronOccurrences(parseCron(expression), zoneOf(timezone));
  const found: string[] = [];
  for (let at = series.next(Date.parse(after)); at !== undefined && at <= Date.parse(until); at = series.next(at)) {
    found.push(inZone(at, timezone));
  }
  const latest = series.latest(Date.parse(after), Date.parse(until));
  assert.equal(latest?.count ?? 0, found.length, 'count');
  assert.equal(latest && inZone(latest.at, timezone), found.at(-1), 'latest');
  return found;
}

/** `03:00+02:00`, with the date where it matters to the test. */
function inZone(instant: number, timezone: string): string {
  const { offset } = zoneOf(timezone).spanAt(instant);
  const wall = new Date(instant + offset).toISOString().slice(8, 16).replace('T', ' ');
  const size = new Date(Math.abs(offset)).toISOString().slice(11, 16);
  return `${wall}${offset < 0 ? '-' : '+'}${size}`;
}

const FORWARD = ['2026-03-28T23:30:00Z', '2026-03-29T02:30:00Z'] as const; // Berlin, 29 March: 02:00 becomes 03:00
const BACK = ['2026-10-24T23:30:00Z', '2026-10-25T02:30:00Z'] as const; // Berlin, 25 October: 03:00 becomes 02:00

test('a fixed time in the gap is due at the first instant after it', () => {
  assert.deepEqual(between('30 2 * * *', 'Europe/Berlin', ...FORWARD), ['29 03:00+02:00']);
});

test('several fixed times in the gap are one occurrence, also together with a regular one at its end', () => {
  assert.deepEqual(between('0,20,40 2 * * *', 'Europe/Berlin', ...FORWARD), ['29 03:00+02:00']);
  assert.deepEqual(between('0,30 1-3 * * *', 'Europe/Berlin', ...FORWARD), [
    '29 01:00+01:00',
    '29 01:30+01:00',
    '29 03:00+02:00',
    '29 03:30+02:00',
  ]);
});

test('a fixed time that occurs twice is due the first time', () => {
  assert.deepEqual(between('30 2 * * *', 'Europe/Berlin', ...BACK), ['25 02:30+02:00']);
  assert.deepEqual(between('0,30 1-3 * * *', 'Europe/Berlin', ...BACK), [
    '25 02:00+02:00',
    '25 02:30+02:00',
    '25 03:00+01:00',
    '25 03:30+01:00',
  ]);
});

test('an instant in the second pass of a repeated hour is followed by the next day', () => {
  const series = cronOccurrences(parseCron('45 2 * * *'), zoneOf('Europe/Berlin'));
  const secondRound = Date.parse('2026-10-25T01:10:00Z');
  assert.equal(inZone(series.next(secondRound)!, 'Europe/Berlin'), '26 02:45+01:00');
});

test('an hour wildcard follows real time through both changes', () => {
  assert.deepEqual(between('30 * * * *', 'Europe/Berlin', ...FORWARD), [
    '29 01:30+01:00',
    '29 03:30+02:00',
    '29 04:30+02:00',
  ]);
  assert.deepEqual(between('30 * * * *', 'Europe/Berlin', ...BACK), [
    '25 02:30+02:00',
    '25 02:30+01:00',
    '25 03:30+01:00',
  ]);
});

test('a minute wildcard is not due in a skipped hour, and due in both passes of a repeated hour', () => {
  assert.deepEqual(between('*/30 2 * * *', 'Europe/Berlin', ...FORWARD), []);
  assert.deepEqual(between('*/30 2 * * *', 'Europe/Berlin', ...BACK), [
    '25 02:00+02:00',
    '25 02:30+02:00',
    '25 02:00+01:00',
    '25 02:30+01:00',
  ]);
});

test('every minute is every real minute, whatever the clock shows', () => {
  assert.equal(between('* * * * *', 'Europe/Berlin', ...FORWARD).length, 180);
  assert.equal(between('* * * * *', 'Europe/Berlin', ...BACK).length, 180);
});

test('a change by half an hour is applied', () => {
  // Lord Howe, 4 October 2026: 02:00 becomes 02:30; 5 April 2026: 02:00 becomes 01:30.
  const lordHowe = 'Australia/Lord_Howe';
  assert.deepEqual(between('15 2 * * *', lordHowe, '2026-10-03T12:00:00Z', '2026-10-04T00:00:00Z'), ['04 02:30+11:00']);
  assert.deepEqual(between('45 1 * * *', lordHowe, '2026-04-04T12:00:00Z', '2026-04-05T00:00:00Z'), ['05 01:45+11:00']);
  assert.deepEqual(between('45 * * * *', lordHowe, '2026-04-04T14:00:00Z', '2026-04-04T16:00:00Z'), [
    '05 01:45+11:00',
    '05 01:45+10:30',
  ]);
});

test('a midnight that does not exist is due when the day begins', () => {
  // Beirut, 29 March 2026: 00:00 becomes 01:00.
  assert.deepEqual(between('@daily', 'Asia/Beirut', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z'), [
    '29 01:00+03:00',
  ]);
});

test('a midnight that occurs twice is due once', () => {
  // Havana, 2 November 2025: 01:00 becomes 00:00.
  assert.deepEqual(between('@daily', 'America/Havana', '2025-11-01T12:00:00Z', '2025-11-02T12:00:00Z'), [
    '02 00:00-04:00',
  ]);
});

test('the times of a day that a zone skips are due at its end', () => {
  // Samoa had no 30 December 2011.
  const days = ['2011-12-29T12:00:00Z', '2011-12-31T12:00:00Z'] as const;
  assert.deepEqual(between('0 9 * * *', 'Pacific/Apia', ...days), [
    '29 09:00-10:00',
    '31 00:00+14:00',
    '31 09:00+14:00',
  ]);
  assert.deepEqual(between('0 9 30 12 *', 'Pacific/Apia', ...days), ['31 00:00+14:00']);
  assert.deepEqual(between('0 * 30 12 *', 'Pacific/Apia', ...days), []);
});

test('a zone that changes its clock in winter instead of summer has the same occurrences', () => {
  assert.deepEqual(between('30 1 * * *', 'Europe/Dublin', '2026-03-29T00:00:00Z', '2026-03-29T12:00:00Z'), [
    '29 02:00+01:00',
  ]);
});

test('a month of Ramadan with the clock set back has each fixed time once a day', () => {
  const due = between('30 2 * * *', 'Africa/Casablanca', '2027-01-31T12:00:00Z', '2027-03-31T12:00:00Z');
  assert.equal(due.length, 59);
});

test('a long gap is counted exactly and fast', () => {
  const series = cronOccurrences(parseCron('* * * * *'), zoneOf('Europe/Berlin'));
  const after = Date.parse('2020-01-01T00:00:00Z');
  const now = Date.parse('2030-01-01T00:00:30Z');
  assert.deepEqual(series.latest(after, now), {
    at: Date.parse('2030-01-01T00:00:00Z'),
    count: (now - 30_000 - after) / 60_000,
  });
});

test('nothing is due after the last representable year, nor after an invalid instant', () => {
  const series = cronOccurrences(parseCron('@yearly'), zoneOf('America/New_York'));
  const last = Date.parse('9999-01-01T05:00:00Z');
  assert.equal(series.next(last - 1), last);
  assert.equal(series.next(last), undefined);
  assert.equal(series.latest(last, last + 1e15), undefined);
  for (const after of [Number.NaN, Number.POSITIVE_INFINITY, 9e15]) assert.equal(series.next(after), undefined);
});
