import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countWallTimes, MINUTE_MS, nextWallTime, shortestWallGap } from './calendar.ts';
import { parseCron } from './cron.ts';

function wall(text: string): number {
  return Date.parse(`${text}Z`);
}

function show(wallTime: number | undefined): string {
  return wallTime === undefined ? 'none' : new Date(wallTime).toISOString().slice(0, 16);
}

/** The first few matches after a wall time. */
function matches(expression: string, after: string, count: number): string[] {
  const fields = parseCron(expression);
  const found: string[] = [];
  let reached = wall(after);
  for (let index = 0; index < count; index++) {
    const match = nextWallTime(fields, reached);
    found.push(show(match));
    if (match === undefined) break;
    reached = match;
  }
  return found;
}

test('a match is strictly after the given wall time, to the millisecond', () => {
  const fields = parseCron('30 9 * * *');
  const at = wall('2026-05-04T09:30');
  assert.equal(nextWallTime(fields, at - 1), at);
  assert.equal(show(nextWallTime(fields, at)), '2026-05-05T09:30');
  assert.equal(show(nextWallTime(fields, at + 1)), '2026-05-05T09:30');
});

test('the last minute of a year leads into the next', () => {
  assert.deepEqual(matches('* * * * *', '2026-12-31T23:58', 2), ['2026-12-31T23:59', '2027-01-01T00:00']);
  assert.deepEqual(matches('@yearly', '2026-12-31T23:59', 2), ['2027-01-01T00:00', '2028-01-01T00:00']);
});

test('the 29th of February is found across a century that has none', () => {
  assert.deepEqual(matches('0 0 29 2 *', '2095-01-01T00:00', 3), [
    '2096-02-29T00:00',
    '2104-02-29T00:00',
    '2108-02-29T00:00',
  ]);
});

test('a leap day on a Sunday is found after forty years', () => {
  assert.deepEqual(matches('0 0 29 2 */7', '2088-03-01T00:00', 1), ['2128-02-29T00:00']);
});

test('restricted day-of-month and day-of-week match either, otherwise both must match', () => {
  assert.deepEqual(matches('0 0 13 * FRI', '2026-02-01T00:00', 4), [
    '2026-02-06T00:00',
    '2026-02-13T00:00',
    '2026-02-20T00:00',
    '2026-02-27T00:00',
  ]);
  assert.deepEqual(matches('0 0 */12 * FRI', '2026-02-01T00:00', 2), ['2026-02-13T00:00', '2026-03-13T00:00']);
});

test('months without the day are skipped', () => {
  assert.deepEqual(matches('0 12 31 * *', '2026-01-31T12:00', 3), [
    '2026-03-31T12:00',
    '2026-05-31T12:00',
    '2026-07-31T12:00',
  ]);
});

const EXPRESSIONS = [
  '* * * * *',
  '*/7 * * * *',
  '0 9-17 * * MON-FRI',
  '15,45 3 1,15 * *',
  '0 0 29 2 *',
  '59 23 31 */2 *',
  '3/11 */5 * * SUN',
  '0 0 13 * FRI',
];

test('counting agrees with iterating', () => {
  const starts = fc.integer({ min: wall('1999-01-01T00:00'), max: wall('2101-01-01T00:00') });
  const gaps = fc.oneof(fc.nat(3 * 1440), fc.nat(400 * 1440)).map((minutes) => minutes * MINUTE_MS + (minutes % 3));
  fc.assert(
    fc.property(fc.constantFrom(...EXPRESSIONS), starts, gaps, (expression, after, gap) => {
      const fields = parseCron(expression);
      fc.pre(gap < 5 * 86_400_000 || fields.minutes.length * fields.hours.length < 10);
      let walked = 0;
      for (let at = nextWallTime(fields, after); at !== undefined && at <= after + gap; at = nextWallTime(fields, at))
        walked++;
      assert.equal(countWallTimes(fields, after, after + gap), walked);
    }),
    { numRuns: 500 },
  );
});

test('the shortest gap considers hours, midnight and days', () => {
  const minutes = (expression: string) => shortestWallGap(parseCron(expression)) / MINUTE_MS;
  assert.equal(minutes('* * * * *'), 1);
  assert.equal(minutes('*/15 * * * *'), 15);
  assert.equal(minutes('0,59 * * * *'), 1);
  assert.equal(minutes('*/7 * * * *'), 4);
  assert.equal(minutes('0 * * * *'), 60);
  assert.equal(minutes('0 0,23 * * *'), 60);
  assert.equal(minutes('0 0,23 * * MON'), 23 * 60);
  assert.equal(minutes('59 23 * * *'), 24 * 60);
  assert.equal(minutes('0 0 * * MON,WED'), 2 * 24 * 60);
  assert.equal(minutes('@weekly'), 7 * 24 * 60);
  assert.equal(minutes('@monthly'), 28 * 24 * 60);
  assert.equal(minutes('@yearly'), 365 * 24 * 60);
  assert.equal(minutes('0 0 29 2 *'), (4 * 365 + 1) * 24 * 60);
  assert.equal(minutes('0 0 29 2 */7'), 28 * 365 * 24 * 60);
});
