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
  const { events } = parseCalendar(`\uFEFF${text}`);
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
  const { events } = parseCalendar(text);
  const [second, first] = events;
  assert.equal(new Date(first!.excluded[0]!.reading).toISOString().slice(0, 10), '2027-01-01');
  assert.equal(new Date(second!.start.reading).toISOString().slice(0, 10), '2027-01-02');
});

test('a text that is no calendar is refused with line and column', () => {
  refused('', /^line 1, column 1: the file is empty/);
  refused('<html>', /^line 1, column 1: a line must have the form NAME:VALUE; is this an iCalendar file/);
  refused('DTSTART:20260101\r\n', /^line 1, column 1: BEGIN:VCALENDAR is expected/);
  refused(
    calendar('BEGIN:VEVENT', 'DTSTART:20260101'),
    /^line 6, column 5: END:VEVENT is expected \(it is "VCALENDAR"\)/,
  );
  refused('BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\n', /^line 3, .*: END:VEVENT is missing/);
});

/** Events with a problem, each with what is said about it. */
const UNUSABLE: [lines: string[], problem: RegExp][] = [
  [['DTSTART;VALUE=DATE:20260230'], /^line 5, column 20: DTSTART must be a date and time such as/],
  [['DTSTART:20260101', 'RRULE:FREQ=SOMETIMES'], /^line 6, column 7: FREQ must be one of/],
  [['DTSTART:20260101', 'RRULE;VALUE=TEXT:FREQ=DAILY'], /^line 6, column 18: RRULE takes VALUE=RECUR/],
  [['DTSTART:20260101', 'RRULE:RSCALE=CHINESE;FREQ=YEARLY'], /^line 6, .*"RSCALE=CHINESE" is no part of a rule/],
  [['DTSTART:20260101', 'RRULE:FREQ=DAILY;COUNT=0'], /^line 6, .*COUNT must be a whole number from 1/],
  [['DTSTART:20260101', 'RRULE:FREQ=MONTHLY;BYYEARDAY=1;BYMONTHDAY=1'], /^line 6, .*BYYEARDAY is not for FREQ=MONTHLY/],
  [['DTSTART:20260101', 'EXRULE:FREQ=NEVER'], /^line 6, column 8: FREQ must be one of/],
  [['DTSTART:20260101', 'DURATION:1 day'], /^line 6, column 10: DURATION must be such as P1D/],
  [['DTSTART:20260101', 'RDATE;VALUE=PERIOD:20260102T100000Z/1h'], /^line 6, .*RDATE must be a date and time/],
  [['DTSTART:20260101', 'RRULE FREQ=DAILY'], /^line 6, column 6: a line must have the form NAME:VALUE/],
  [['SUMMARY:no start'], /^line 4, column 7: this event has no DTSTART/],
  [['DTSTART:20260102T100000', 'DTEND:20260101T100000'], /^line 4, column 7: this event ends before it begins/],
];

test('an event that cannot be used is left out and named; the others stay', () => {
  const good = event('DTSTART:20260101');
  for (const [lines, problem] of UNUSABLE) {
    const { events, omitted } = parseCalendar(calendar(...event(...lines), ...good));
    assert.equal(events.length, 1, lines.join(' '));
    assert.deepEqual(
      omitted.map(({ place, problem: text }) => problem.test(`line ${place.line}, column ${place.column}: ${text}`)),
      [true],
      `${lines.join(' ')}: ${JSON.stringify(omitted)}`,
    );
  }
  const all = parseCalendar(calendar(...UNUSABLE.flatMap(([lines]) => event(...lines)), ...good));
  assert.deepEqual([all.events.length, all.omitted.length], [1, UNUSABLE.length]);
  const cancelled = parseCalendar(calendar(...event('DTSTART:nonsense', 'STATUS:CANCELLED'), ...good));
  assert.deepEqual([cancelled.events.length, cancelled.omitted.length], [1, 0]);
});

test('lines that RFC 5545 allows, and lines that programs break, are read', () => {
  const lines = [
    ['RRULE;X-ANY=THING:FREQ=WEEKLY;COUNT=3'],
    ['RRULE;VALUE=RECUR:FREQ=WEEKLY;COUNT=3'],
    ['RRULE;VALUE=RECUR;X-A="b:c;d":FREQ=WEEKLY;COUNT=3;'],
    ['RRULE:RSCALE=GREGORIAN;FREQ=WEEKLY;SKIP=OMIT;COUNT=3'],
    ['rrule:freq=weekly;count=3'],
    ['RRULE:FREQ=WEEKLY;C', ' OUNT=3'],
    ['RRULE:FREQ=WEEKLY;COUNT=3', 'DESCRIPTION:first line', 'second line, not folded', 'https://example.org/x'],
  ];
  for (const more of lines)
    for (const join of ['\r\n', '\n', '\r', '\r\r\n']) {
      const text = calendar(...event('DTSTART:20261201T095960', ...more)).replaceAll('\r\n', join);
      const { events, omitted } = parseCalendar(text);
      assert.deepEqual(omitted, [], more.join(' '));
      assert.deepEqual(
        events.map(({ start, rules }) => [new Date(start.reading).toISOString().slice(11, 19), rules[0]!.count]),
        [['09:59:59', 3]],
        more.join(' '),
      );
    }
  const periods = 'RDATE;VALUE=PERIOD:20261209T100000Z/PT1H,20261210T100000Z/20261210T123000Z';
  const [read] = parseCalendar(calendar(...event('DTSTART:20261201T100000Z', periods))).events;
  assert.deepEqual(
    read!.added.map(({ lengthMs }) => lengthMs! / 3_600_000),
    [1, 2.5],
  );
});

test('a TZID is an IANA or a Windows name, has a prefix, or is described by the file; others are refused', () => {
  const zoneOf = (tzid: string, ...more: string[]) =>
    parseCalendar(calendar(...more, ...event(`DTSTART;TZID=${tzid}:20261221T090000`))).events[0]!.start.zone;
  const names = {
    'Europe/Berlin': 'Europe/Berlin',
    'New Zealand Standard Time': 'Pacific/Auckland',
    'w. europe standard time': 'Europe/Berlin',
    '/mozilla.org/20050126_1/Europe/Berlin': 'Europe/Berlin',
    '/freeassociation.sourceforge.net/America/Argentina/Buenos_Aires': 'America/Argentina/Buenos_Aires',
    '/example.org/Tzfile/UTC': 'UTC',
    '"UTC"': 'UTC',
  };
  for (const [tzid, zone] of Object.entries(names)) assert.equal(zoneOf(tzid), zone, tzid);
  const described = (tzid: string, ...more: string[]) => [
    ...['BEGIN:VTIMEZONE', `TZID:${tzid}`, ...more, 'BEGIN:STANDARD', 'DTSTART:16010101T000000'],
    ...['TZOFFSETFROM:+0200', 'TZOFFSETTO:+0200', 'END:STANDARD', 'END:VTIMEZONE'],
  ];
  assert.equal(zoneOf('Ours', ...described('Ours')), 'Ours');
  assert.equal(zoneOf('Ours', ...described('Ours', 'X-LIC-LOCATION:Europe/Kyiv')), 'Europe/Kyiv');
  assert.equal(zoneOf('Romance Standard Time', ...described('Romance Standard Time')), 'Europe/Paris');
  refused(
    calendar(...event('SUMMARY:x', 'DTSTART;TZID=Mars/Base:20261221T090000')),
    /^line 6, column 24: TZID "Mars\/Base" is neither an IANA nor a Windows zone, and the file has no VTIMEZONE for it/,
  );
  refused(
    calendar(...event('DTSTART:20261221T090000', 'EXDATE;TZID=Mars/Base:20261221T090000')),
    /^line 6, column 23: TZID/,
  );
  // Dates are the same in each zone, and a cancelled event matters not.
  const fine = calendar(
    ...event('DTSTART;TZID=Mars/Base;VALUE=DATE:20261221'),
    ...event('DTSTART;TZID=Mars/Base:20261221T090000', 'STATUS:CANCELLED'),
  );
  assert.equal(parseCalendar(fine).events.length, 1);
});
