import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { quietUntil } from './quiet-hours.ts';
import { zonesOfIntl } from './testing/zones-of-intl.ts';

type QuietHours = Parameters<typeof quietUntil>[0];

const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
const MINUTE = 60_000;

const night: QuietHours = { from: '22:00', to: '07:00', timezone: 'Europe/Berlin' };
const at = (text: string) => Date.parse(text);
const until = (quiet: QuietHours, text: string) => {
  const end = quietUntil(quiet, at(text));
  return end === undefined ? undefined : new Date(end).toISOString();
};

/** Reference implementation with Temporal: the wall clock's time, and the day on which that night began. */
function isQuiet({ from, to, timezone, days }: QuietHours, instant: number): boolean {
  const wall = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
  const time = wall.toPlainTime();
  const [begin, end] = [Temporal.PlainTime.from(from), Temporal.PlainTime.from(to)];
  const sinceBegin = Temporal.PlainTime.compare(time, begin) >= 0;
  const beforeEnd = Temporal.PlainTime.compare(time, end) < 0;
  const overnight = Temporal.PlainTime.compare(begin, end) > 0;
  if (overnight ? !sinceBegin && !beforeEnd : !(sinceBegin && beforeEnd)) return false;
  const began = overnight && !sinceBegin ? wall.toPlainDate().subtract({ days: 1 }) : wall.toPlainDate();
  return days === undefined || days.includes(WEEKDAYS[began.dayOfWeek - 1]!);
}

describe('quiet hours', () => {
  test('that span midnight begin in the evening and end in the morning', () => {
    assert.equal(until(night, '2026-06-15T19:59:59.999Z'), undefined);
    assert.equal(until(night, '2026-06-15T20:00:00Z'), '2026-06-16T05:00:00.000Z');
    assert.equal(until(night, '2026-06-16T04:59:59.999Z'), '2026-06-16T05:00:00.000Z');
    assert.equal(until(night, '2026-06-16T05:00:00Z'), undefined);
  });

  test('within one day begin and end on it', () => {
    const noon: QuietHours = { from: '12:00', to: '13:30', timezone: 'Asia/Kathmandu' };
    assert.equal(until(noon, '2026-06-15T06:14:59Z'), undefined);
    assert.equal(until(noon, '2026-06-15T06:15:00Z'), '2026-06-15T07:45:00.000Z');
    assert.equal(until(noon, '2026-06-15T07:45:00Z'), undefined);
  });

  test('limited to some days begin on these days', () => {
    // 19 June 2026 is a Friday.
    const friday: QuietHours = { ...night, days: ['fri'] };
    assert.equal(until(friday, '2026-06-18T21:00:00Z'), undefined, 'Thursday night');
    assert.equal(until(friday, '2026-06-19T04:00:00Z'), undefined, 'Friday morning belongs to Thursday night');
    assert.equal(until(friday, '2026-06-19T21:00:00Z'), '2026-06-20T05:00:00.000Z');
    assert.equal(until(friday, '2026-06-20T04:00:00Z'), '2026-06-20T05:00:00.000Z');
    assert.equal(until(friday, '2026-06-20T21:00:00Z'), undefined, 'Saturday night');
  });

  test('are an hour shorter or longer in the night of a clock change', () => {
    assert.equal(until(night, '2026-03-28T21:00:00Z'), '2026-03-29T05:00:00.000Z', 'eight hours');
    assert.equal(until(night, '2026-10-24T20:00:00Z'), '2026-10-25T06:00:00.000Z', 'ten hours');
  });

  test('whose end is skipped by a clock change end with the change', () => {
    const short: QuietHours = { ...night, to: '02:30' };
    assert.equal(until(short, '2026-03-29T00:59:00Z'), '2026-03-29T01:00:00.000Z');
    assert.equal(until(short, '2026-03-29T01:00:00Z'), undefined);
  });

  test('repeated by a clock change begin again', () => {
    const short: QuietHours = { ...night, to: '02:30' };
    assert.equal(until(short, '2026-10-25T00:15:00Z'), '2026-10-25T00:30:00.000Z', 'before the change');
    assert.equal(until(short, '2026-10-25T00:45:00Z'), undefined);
    assert.equal(until(short, '2026-10-25T01:15:00Z'), '2026-10-25T01:30:00.000Z', 'after the change');
  });

  test('agree with Temporal in 120 zones, around clock changes', () => {
    const all = zonesOfIntl().filter((zone) => zone.includes('/'));
    const zones = Array.from({ length: 120 }, (_, n) => all[Math.floor((n * all.length) / 120)]!);
    const time = fc
      .integer({ min: 0, max: 95 })
      .map((quarter) => `${String(quarter >> 2).padStart(2, '0')}:${String((quarter % 4) * 15).padStart(2, '0')}`);
    const hours = fc
      .record({
        from: time,
        to: time,
        days: fc.option(fc.subarray([...WEEKDAYS], { minLength: 1 }), { nil: undefined }),
      })
      .filter(({ from, to }) => from !== to);
    const offset = fc.integer({ min: -36 * 60, max: 36 * 60 });
    for (const timezone of zones) {
      const start = Temporal.Instant.from('2026-01-15T00:00:00Z').toZonedDateTimeISO(timezone);
      const change = start.getTimeZoneTransition('next')?.epochMilliseconds;
      // Most errors occur around a clock change.
      const middle = change !== undefined && change < at('2028-01-01T00:00:00Z') ? change : start.epochMilliseconds;
      fc.assert(
        fc.property(hours, offset, ({ days, ...rest }, minutes) => {
          const quiet: QuietHours = { ...rest, timezone, ...(days && { days }) };
          const instant = middle + minutes * MINUTE;
          const end = quietUntil(quiet, instant);
          assert.equal(end !== undefined, isQuiet(quiet, instant), `${timezone} at ${new Date(instant).toISOString()}`);
          if (end === undefined) return;
          assert.ok(end > instant && end - instant <= 26 * 60 * MINUTE);
          assert.ok(!isQuiet(quiet, end), 'not quiet at the end');
          assert.ok(isQuiet(quiet, end - 1), 'quiet until the end');
          for (let between = instant; between < end; between += 15 * MINUTE) assert.ok(isQuiet(quiet, between));
        }),
        { numRuns: 12, seed: 7 },
      );
    }
  });
});
