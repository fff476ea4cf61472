import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { parseCalendar } from './calendar-file.ts';

const calendar = (...lines: string[]) =>
  ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test', ...lines, 'END:VCALENDAR', ''].join('\r\n');
const event = (...lines: string[]) => ['BEGIN:VEVENT', ...lines, 'END:VEVENT'];

function refused(text: string, expected: RegExp): void {
  assert.throws(
    () => parseCalendar(text),
    (error) => error instanceof ReveilleError && error.code === 'invalid_request' && expected.test(error.message),
    String(expected),
  );
}

test('events have their start, end, length and recurrence; other components and properties are ignored', () => {
  const text = calendar(
    'BEGIN:VTIMEZONE',
    'TZID:Europe/Berlin',
    'BEGIN:STANDARD',
    'DTSTART:19701025T030000',
    'RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU',
    'END:STANDARD',
    'END:VTIMEZONE',
    ...event(
      'DTSTART;VALUE=DATE:20261225',
      'DTEND;VALUE=DATE:20261227',
      'SUMMARY;LANGUAGE=de:Weihnachten: zwei',
      ' \tTage',
    ),
    ...event('DTSTART;TZID="Europe/Berlin":20261231T180000', 'DURATION:PT8H30M', 'RRULE:FREQ=YEARLY'),
    ...event('DTSTART:20260101', 'BEGIN:VALARM', 'TRIGGER:-PT5M', 'DURATION:nonsense', 'END:VALARM'),
    ...event('DTSTART:20260501', 'STATUS:CANCELLED'),
  );
  const events = parseCalendar(`\uFEFF${text}`);
  assert.deepEqual(
    events.map(({ start, durationMs, rules }) => [start.isDate, start.zone, durationMs / 3_600_000, rules.length]),
    [
      [true, undefined, 48, 0],
      [false, 'Europe/Berlin', 8.5, 1],
      [true, undefined, 24, 0],
    ],
  );
});

test('an occurrence that another event replaces is excluded', () => {
  const text = calendar(
    ...event('UID:a', 'DTSTART;VALUE=DATE:20260101', 'RRULE:FREQ=YEARLY'),
    ...event('UID:a', 'RECURRENCE-ID;VALUE=DATE:20270101', 'DTSTART;VALUE=DATE:20270102'),
  );
  const [first, second] = parseCalendar(text);
  assert.equal(new Date(first!.excluded[0]!.reading).toISOString().slice(0, 10), '2027-01-01');
  assert.equal(new Date(second!.start.reading).toISOString().slice(0, 10), '2027-01-02');
});

test('an error names line and column', () => {
  refused('', /^line 1, column 1: the file is empty/);
  refused('<html>', /^line 1, column 1: a line must have the form NAME:VALUE; is this an iCalendar file/);
  refused('DTSTART:20260101\r\n', /^line 1, column 1: BEGIN:VCALENDAR is expected/);
  refused(
    calendar(...event('DTSTART;VALUE=DATE:20260230')),
    /^line 5, column 20: DTSTART must be a date and time such as/,
  );
  refused(calendar(...event('DTSTART:20260101', 'RRULE:FREQ=SOMETIMES')), /^line 6, column 7: FREQ must be one of/);
  refused(calendar(...event('DTSTART:20260101', 'DURATION:1 day')), /^line 6, column 10: DURATION must be such as P1D/);
  refused(calendar(...event('SUMMARY:no start')), /^line 4, column 7: this event has no DTSTART/);
  refused(
    calendar(...event('DTSTART:20260102', 'DTEND:20260101')),
    /^line 4, column 7: this event ends before it begins/,
  );
  refused(
    calendar('BEGIN:VEVENT', 'DTSTART:20260101'),
    /^line 6, column 5: END:VEVENT is expected \(it is "VCALENDAR"\)/,
  );
  refused('BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\n', /^line 3, .*: END:VEVENT is missing/);
  refused(calendar('no colon here'), /^line 4, column 3: a line must have the form NAME:VALUE/);
});
