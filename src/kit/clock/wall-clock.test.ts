import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { zonesOfIntl } from './testing/zones-of-intl.ts';
import { dayAt, dayBeganAt, formatWithOffset, nextDayAfter, wallReading } from './wall-clock.ts';

const instant = (text: string) => Date.parse(text);
const next = (zone: string, text: string) => new Date(nextDayAfter(zone, instant(text))).toISOString();

test('days have 23, 24 or 25 hours, and begin late if the clock skips midnight', () => {
  assert.equal(next('Europe/Berlin', '2026-03-28T23:00:00Z'), '2026-03-29T22:00:00.000Z', '23 hours');
  assert.equal(next('Europe/Berlin', '2026-06-14T22:00:00Z'), '2026-06-15T22:00:00.000Z');
  assert.equal(next('Europe/Berlin', '2026-10-24T22:00:00Z'), '2026-10-25T23:00:00.000Z', '25 hours');
  assert.equal(next('Africa/Cairo', '2026-04-23T12:00:00Z'), '2026-04-23T22:00:00.000Z', 'midnight is skipped');
  assert.equal(next('Pacific/Apia', '2011-12-30T09:00:00Z'), '2011-12-30T10:00:00.000Z', 'a whole day is skipped');
});

test('days agree with Temporal in many zones, around clock changes', () => {
  const zones = fc.constantFrom(
    'UTC',
    'Europe/Berlin',
    'Africa/Cairo',
    'Atlantic/Azores',
    'Australia/Lord_Howe',
    'Asia/Kathmandu',
    'America/Santiago',
    'Asia/Beirut',
  );
  fc.assert(
    fc.property(
      zones,
      fc.integer({ min: instant('2024-01-01T00:00:00Z'), max: instant('2027-01-01T00:00:00Z') }),
      (zone, at) => {
        const date = (ms: number) => Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).toPlainDate();
        assert.equal(dayAt(zone, at), date(at).since('1970-01-01', { largestUnit: 'day' }).days);
        const end = nextDayAfter(zone, at);
        assert.ok(end > at && end - at <= 25 * 3_600_000);
        assert.ok(Temporal.PlainDate.compare(date(end), date(at)) > 0, 'a later day');
        assert.ok(date(end - 1).equals(date(at)), 'the same day before the end');
      },
    ),
    { numRuns: 400 },
  );
});

test('days that begin after midnight agree with Temporal', () => {
  assert.equal(nextDayAfter('Europe/Berlin', instant('2026-06-15T01:00:00Z'), 240), instant('2026-06-15T02:00:00Z'));
  assert.equal(dayBeganAt('Europe/Berlin', instant('2026-06-15T01:00:00Z'), 240), instant('2026-06-14T02:00:00Z'));
  assert.equal(dayBeganAt('Europe/Berlin', instant('2026-06-15T02:00:00Z'), 240), instant('2026-06-15T02:00:00Z'));
  // That night skips half past two: the day begins at the clock change.
  assert.equal(nextDayAfter('Europe/Berlin', instant('2026-03-28T20:00:00Z'), 150), instant('2026-03-29T01:00:00Z'));
  fc.assert(
    fc.property(
      fc.constantFrom('UTC', 'Asia/Kathmandu', 'Pacific/Chatham', 'Australia/Lord_Howe', 'America/New_York'),
      fc.integer({ min: instant('2025-01-01T00:00:00Z'), max: instant('2027-01-01T00:00:00Z') }),
      fc.integer({ min: 0, max: 1439 }),
      (zone, at, begins) => {
        const day = (ms: number) => dayAt(zone, ms, begins);
        const began = dayBeganAt(zone, at, begins);
        assert.ok(began <= at && at < nextDayAfter(zone, began, begins));
        assert.ok(day(began - 1) < day(began));
        const wall = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
        const shifted = wall.toPlainDateTime().subtract({ minutes: begins }).toPlainDate();
        assert.equal(day(at), shifted.since('1970-01-01', { largestUnit: 'day' }).days);
      },
    ),
    { numRuns: 200 },
  );
});

test('an instant is formatted with the offset of its zone', () => {
  const written = (zone: string, text: string) => formatWithOffset(zone, instant(text));
  assert.equal(written('UTC', '2026-06-15T08:10:00.999Z'), '2026-06-15T08:10:00+00:00');
  assert.equal(written('Asia/Kathmandu', '2026-06-15T20:10:00Z'), '2026-06-16T01:55:00+05:45');
  assert.equal(written('Pacific/Chatham', '2026-06-15T20:10:00Z'), '2026-06-16T08:55:00+12:45');
  assert.equal(written('Pacific/Chatham', '2026-12-15T20:10:00Z'), '2026-12-16T09:55:00+13:45');
  assert.equal(written('America/St_Johns', '2026-01-01T00:00:00Z'), '2025-12-31T20:30:00-03:30');
  assert.equal(written('Australia/Lord_Howe', '2026-04-04T14:59:59Z'), '2026-04-05T01:59:59+11:00');
  assert.equal(
    written('Australia/Lord_Howe', '2026-04-04T15:00:00Z'),
    '2026-04-05T01:30:00+10:30',
    'half an hour back',
  );
  assert.equal(written('Europe/Berlin', '2026-03-29T00:59:59Z'), '2026-03-29T01:59:59+01:00');
  assert.equal(written('Europe/Berlin', '2026-03-29T01:00:00Z'), '2026-03-29T03:00:00+02:00', 'the gap');
  assert.equal(written('Europe/Berlin', '2026-10-25T00:30:00Z'), '2026-10-25T02:30:00+02:00', 'before the change');
  assert.equal(written('Europe/Berlin', '2026-10-25T01:30:00Z'), '2026-10-25T02:30:00+01:00', 'the second');
  assert.equal(Date.parse(written('Africa/Monrovia', '1971-06-15T08:10:07Z')), instant('1971-06-15T08:10:07Z'));
  assert.throws(() => formatWithOffset('Mars/Olympus', 0), RangeError);
  assert.throws(() => formatWithOffset('UTC', Number.NaN), RangeError);
});

test('the wall clock agrees with Temporal in every zone', () => {
  const zones = fc.constantFrom(...zonesOfIntl());
  // On that day, Monrovia was the last zone to give up an offset with seconds, which RFC 3339 cannot express.
  const instants = fc.integer({ min: instant('1972-01-08T00:00:00Z'), max: instant('2040-01-01T00:00:00Z') });
  fc.assert(
    fc.property(zones, instants, (zone, at) => {
      const wall = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
      assert.deepEqual(wallReading(zone, at), {
        date: wall.toPlainDate().toString(),
        weekday: wall.dayOfWeek - 1,
        minuteOfDay: wall.hour * 60 + wall.minute,
      });
      const text = formatWithOffset(zone, at);
      assert.equal(text, wall.toString({ timeZoneName: 'never', fractionalSecondDigits: 0 }));
      assert.equal(Date.parse(text), Math.floor(at / 1000) * 1000);
    }),
    { numRuns: 400 },
  );
  assert.deepEqual(wallReading('Pacific/Chatham', instant('1969-12-31T23:00:00Z')), {
    ...{ date: '1970-01-01', weekday: 3, minuteOfDay: 705 },
  });
  assert.deepEqual(wallReading('UTC', -1), { date: '1969-12-31', weekday: 2, minuteOfDay: 1439 });
});
