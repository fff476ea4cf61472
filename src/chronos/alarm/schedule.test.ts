import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ReveilleError } from '../../wire/errors.ts';
import { compileSchedule } from './schedule.ts';

const EXPRESSIONS = [
  '* * * * *',
  '*/15 2-4 * * *',
  '30 2 * * *',
  '0-59 1-3 * * *',
  '0 9 * * MON-FRI',
  '0 0 13 * FRI',
  '59 23 31 12 *',
  '0 0 29 2 *',
  '@hourly',
  '@every 10s',
  '@every 1h30m',
  '@every 777h',
];
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Africa/Casablanca',
  'Asia/Kathmandu',
];

const ANCHOR = Date.parse('2025-11-11T11:11:11.111Z');
const instants = fc.integer({ min: Date.parse('2010-01-01T00:00:00Z'), max: Date.parse('2060-01-01T00:00:00Z') });
const expressions = fc.constantFrom(...EXPRESSIONS);
const zones = fc.constantFrom(...ZONES);

test('occurrences are after the given instant and strictly increase', () => {
  fc.assert(
    fc.property(expressions, zones, instants, (expression, timezone, start) => {
      const schedule = compileSchedule(expression, timezone, ANCHOR);
      let after = start;
      for (let step = 0; step < 10; step++) {
        const next = schedule.next(after)!;
        assert.ok(next > after, `${next} > ${after}`);
        after = next;
      }
    }),
    { numRuns: 500 },
  );
});

test('there is no occurrence between an instant and the next occurrence', () => {
  fc.assert(
    fc.property(
      expressions,
      zones,
      instants,
      fc.double({ min: 0, max: 1, noNaN: true }),
      (expression, timezone, after, share) => {
        const schedule = compileSchedule(expression, timezone, ANCHOR);
        const next = schedule.next(after)!;
        const between = Math.min(next - 1, Math.floor(after + share * (next - after)));
        assert.equal(schedule.next(between), next);
      },
    ),
    { numRuns: 500 },
  );
});

test('the latest occurrence and the count agree with an iteration', () => {
  fc.assert(
    fc.property(expressions, zones, instants, fc.nat(3 * 86_400_000), (expression, timezone, after, gap) => {
      const schedule = compileSchedule(expression, timezone, ANCHOR);
      const now = after + (expression.startsWith('@every 10s') ? gap % 3_600_000 : gap);
      let expected: { at: number; count: number } | undefined;
      for (let at = schedule.next(after); at !== undefined && at <= now; at = schedule.next(at)) {
        expected = { at, count: (expected?.count ?? 0) + 1 };
      }
      assert.deepEqual(schedule.latest(after, now), expected);
    }),
    { numRuns: 300 },
  );
});

test('an occurrence is its own latest, and there is none in an empty or reversed gap', () => {
  for (const expression of EXPRESSIONS) {
    const schedule = compileSchedule(expression, 'Europe/Berlin', ANCHOR);
    const at = schedule.next(ANCHOR)!;
    assert.deepEqual(schedule.latest(at - 1, at), { at, count: 1 });
    assert.equal(schedule.latest(at, at), undefined);
    assert.equal(schedule.latest(at, at - 1), undefined);
  }
});

test('@every counts from its anchor without drift, two weeks of ten seconds included', () => {
  const schedule = compileSchedule('@every 10s', 'UTC', ANCHOR);
  assert.equal(schedule.next(ANCHOR), ANCHOR + 10_000);
  assert.equal(schedule.next(ANCHOR - 1), ANCHOR + 10_000);
  assert.equal(schedule.next(ANCHOR - 1e9), ANCHOR + 10_000);
  assert.equal(schedule.next(ANCHOR + 10_000), ANCHOR + 20_000);
  assert.equal(schedule.next(ANCHOR + 10_001), ANCHOR + 20_000);
  const twoWeeks = 14 * 86_400_000;
  assert.deepEqual(schedule.latest(ANCHOR, ANCHOR + twoWeeks + 9_999), { at: ANCHOR + twoWeeks, count: 120_960 });
  assert.equal(schedule.latest(ANCHOR - 1e9, ANCHOR + 9_999), undefined);
});

test('alarms that share an @every expression keep their own anchors', () => {
  const first = compileSchedule('@every 1h', 'UTC', ANCHOR);
  const second = compileSchedule('@every 1h', 'UTC', ANCHOR + 1);
  assert.deepEqual([first.next(ANCHOR), second.next(ANCHOR)], [ANCHOR + 3_600_000, ANCHOR + 3_600_001]);
});

test('the shortest interval of both kinds is correct', () => {
  assert.equal(compileSchedule('@every 250ms', 'UTC', 0).shortestIntervalMs, 250);
  assert.equal(compileSchedule('* * * * *', 'UTC', 0).shortestIntervalMs, 60_000);
  assert.equal(compileSchedule('@daily', 'UTC', 0).shortestIntervalMs, 86_400_000);
});

test('a bad expression or zone is rejected every time, naming its field', () => {
  const refused = (expression: string, timezone: string, message: RegExp) =>
    assert.throws(
      () => compileSchedule(expression, timezone, 0),
      (error) => error instanceof ReveilleError && error.code === 'invalid_request' && message.test(error.message),
    );
  for (let time = 0; time < 2; time++) {
    refused('0 0 * * * *', 'UTC', /^cron_expr: there are 6 fields/);
    refused('@every 5', 'UTC', /^cron_expr: "5" is not a duration/);
    refused('@daily', 'Mars/Base', /^timezone "Mars\/Base"/);
    refused('@every 5s', 'Mars/Base', /^timezone "Mars\/Base"/);
  }
});

test('results stay correct when the cache overflows', () => {
  const noon = Date.parse('2026-06-01T12:00:00Z');
  for (let round = 0; round < 2; round++) {
    for (let minute = 0; minute < 1_440; minute++) {
      for (const day of ['*', '1-31']) {
        const schedule = compileSchedule(`${minute % 60} ${Math.floor(minute / 60)} ${day} * *`, 'UTC', 0);
        const midnight = noon - 43_200_000;
        const today = midnight + minute * 60_000;
        assert.equal(schedule.next(noon), today > noon ? today : today + 86_400_000);
      }
    }
  }
});
