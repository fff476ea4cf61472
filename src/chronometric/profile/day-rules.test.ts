import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DAYS, type Day } from '../../wire/chronometric-vocabulary.ts';
import { logicalDay, protectedWindowAt, zoneAt } from './day-rules.ts';
import { DEFAULT_PROFILE, type Profile, type ProtectedWindow, UNREADABLE_PROFILE } from './profile.ts';
import { dayBefore, windowBegan, windowContains } from './time-of-day.ts';

const minuteOf = (text: string) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
const span = (text: string) => ({ from: minuteOf(text.slice(0, 5)), to: minuteOf(text.slice(6)) });
const window = (text: string, more: Partial<ProtectedWindow> = {}): ProtectedWindow => ({
  label: text,
  line: 1,
  ...span(text),
  ...more,
});

/** Work ends at 18:30, on Fridays at 16:00. */
const working: Profile = {
  ...DEFAULT_PROFILE,
  rulesOf: (day) => ({
    ...DEFAULT_PROFILE.rulesOf(day),
    endOfDay: { value: minuteOf(day === 'friday' ? '16:00' : '18:30'), line: 3 },
  }),
};

const minutes = fc.integer({ min: 0, max: 1439 });
const days = fc.constantFrom(...DAYS);

describe('a window', () => {
  test('is half-open', () => {
    assert.deepEqual(
      ['11:59', '12:00', '12:59', '13:00'].map((text) => windowContains(span('12:00-13:00'), minuteOf(text))),
      [false, true, true, false],
    );
  });

  test('that wraps midnight began on the day before', () => {
    const night = span('22:00-06:00');
    assert.deepEqual(
      ['21:59', '22:00', '23:59', '00:00', '05:59', '06:00'].map((text) =>
        windowBegan(night, 'monday', minuteOf(text)),
      ),
      [undefined, 'monday', 'monday', 'sunday', 'sunday', undefined],
    );
    const toMidnight = span('22:00-00:00');
    assert.deepEqual(
      ['23:59', '00:00'].map((text) => windowContains(toMidnight, minuteOf(text))),
      [true, false],
    );
  });

  test('contains exactly the minutes between its ends, also over midnight', () => {
    fc.assert(
      fc.property(minutes, minutes, (from, to) => {
        const held = Array.from({ length: 1440 }, (_, minute) => windowContains({ from, to }, minute));
        assert.equal(held.filter(Boolean).length, (to - from + 1440) % 1440 || 1440);
        assert.equal(held[from], true);
        assert.equal(held[to], from === to);
      }),
      { numRuns: 60 },
    );
  });

  test('and its complement share no minute and together cover the day', () => {
    fc.assert(
      fc.property(minutes, minutes, minutes, (from, to, minute) => {
        fc.pre(from !== to);
        assert.notEqual(windowContains({ from, to }, minute), windowContains({ from: to, to: from }, minute));
      }),
    );
  });
});

describe('a logical day', () => {
  test('continues past midnight, with the weekday and the end of the evening before', () => {
    const past = (day: Day, time: string) => {
      const { day: counts, pastEndOfDay } = logicalDay(working, { day, minute: minuteOf(time) });
      return [counts, pastEndOfDay];
    };
    assert.deepEqual(past('friday', '15:59'), ['friday', false]);
    assert.deepEqual(past('friday', '16:00'), ['friday', true]);
    assert.deepEqual(past('saturday', '00:30'), ['friday', true]);
    assert.deepEqual(past('saturday', '03:59'), ['friday', true]);
    assert.deepEqual(past('saturday', '04:00'), ['saturday', false]);
    assert.deepEqual(past('monday', '00:00'), ['sunday', true]);
  });

  test('with an end past midnight ends there', () => {
    const late: Profile = {
      ...working,
      rulesOf: (day) => ({ ...DEFAULT_PROFILE.rulesOf(day), endOfDay: { value: minuteOf('01:30') } }),
    };
    const past = (time: string) => logicalDay(late, { day: 'tuesday', minute: minuteOf(time) }).pastEndOfDay;
    assert.deepEqual(['23:59', '00:30', '01:29', '01:30', '03:59', '04:00', '12:00'].map(past), [
      ...[false, false, false, true, true, false, false],
    ]);
  });

  test('without a declared end has no `pastEndOfDay`', () => {
    assert.equal(logicalDay(DEFAULT_PROFILE, { day: 'monday', minute: 1400 }).pastEndOfDay, undefined);
  });

  test('is past its end from one minute on until the next day starts, once', () => {
    fc.assert(
      fc.property(minutes, minutes, days, (start, end, day) => {
        fc.pre(start !== end);
        const profile: Profile = {
          ...DEFAULT_PROFILE,
          logicalDayStart: start,
          rulesOf: (of) => ({ ...DEFAULT_PROFILE.rulesOf(of), endOfDay: { value: end } }),
        };
        const after = DAYS[(DAYS.indexOf(day) + 1) % 7]!;
        const course = Array.from({ length: 1440 }, (_, passed) => {
          const minute = (start + passed) % 1440;
          return logicalDay(profile, { day: start + passed < 1440 ? day : after, minute });
        });
        assert.ok(course.every((moment) => moment.day === day));
        const past = course.map(({ pastEndOfDay }) => pastEndOfDay === true);
        assert.equal(past.indexOf(true), (end - start + 1440) % 1440);
        assert.ok(past.slice(past.indexOf(true)).every(Boolean));
      }),
      { numRuns: 40 },
    );
  });
});

describe('energy zones', () => {
  test('are the default zones without a declaration, and the other hours are the night', () => {
    const zone = (time: string) => zoneAt(DEFAULT_PROFILE, 'monday', minuteOf(time));
    assert.deepEqual(
      ['04:59', '05:00', '11:59', '12:00', '13:59', '14:00', '16:29', '16:30', '19:29', '19:30', '00:30'].map(zone),
      [
        'night_owl_caution',
        ...['morning_peak', 'morning_peak', 'midday', 'midday', 'afternoon_dip', 'afternoon_dip'],
        ...['evening_quiet', 'evening_quiet', 'night_owl_caution', 'night_owl_caution'],
      ],
    );
  });

  test('past midnight follow the rules of the evening before', () => {
    const festive: Profile = {
      ...DEFAULT_PROFILE,
      rulesOf: (day) =>
        day === 'friday'
          ? { ...DEFAULT_PROFILE.rulesOf(day), zones: [{ zone: 'evening_quiet', ...span('20:00-02:00') }] }
          : DEFAULT_PROFILE.rulesOf(day),
    };
    assert.equal(zoneAt(festive, 'saturday', minuteOf('01:59')), 'evening_quiet');
    assert.equal(zoneAt(festive, 'saturday', minuteOf('02:00')), 'unknown');
    assert.equal(zoneAt(festive, 'friday', minuteOf('01:59')), 'night_owl_caution');
  });

  test('are unknown with an unreadable profile', () => {
    fc.assert(fc.property(days, minutes, (day, minute) => zoneAt(UNREADABLE_PROFILE, day, minute) === 'unknown'));
  });
});

describe('protected windows', () => {
  test('are checked in order, and the first match counts', () => {
    const profile = { ...DEFAULT_PROFILE, protectedWindows: [window('12:00-13:00'), window('12:30-14:00')] };
    const label = (time: string) => protectedWindowAt(profile, 'monday', minuteOf(time))?.label;
    assert.deepEqual(['11:59', '12:30', '13:00', '14:00'].map(label), [
      ...[undefined, '12:00-13:00', '12:30-14:00', undefined],
    ]);
  });

  test('with days apply when they begin on one of these days', () => {
    const profile = { ...DEFAULT_PROFILE, protectedWindows: [window('22:00-07:00', { days: ['friday'] })] };
    const holds = (day: Day, time: string) => protectedWindowAt(profile, day, minuteOf(time)) !== undefined;
    assert.ok(!holds('friday', '06:00'), 'Friday morning belongs to Thursday night');
    assert.ok(holds('friday', '22:00'));
    assert.ok(holds('saturday', '06:59'));
    assert.ok(!holds('saturday', '07:00'));
    assert.ok(!holds('saturday', '22:00'));
  });

  test('contain a minute exactly when their days include the day on which they began', () => {
    fc.assert(
      fc.property(minutes, minutes, days, days, minutes, (from, to, on, day, minute) => {
        const only = { label: 'x', line: 1, from, to, days: [on] };
        const holds = protectedWindowAt({ ...DEFAULT_PROFILE, protectedWindows: [only] }, day, minute) !== undefined;
        const began = minute >= from ? day : dayBefore(day);
        assert.equal(holds, windowContains(only, minute) && began === on);
      }),
    );
  });
});
