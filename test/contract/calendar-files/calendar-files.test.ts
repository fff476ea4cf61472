/**
 * Whole calendar files in the styles of many programs, with odd lines. No file is refused for one entry, and the days
 * are those of the independent reader ical.js, which expands the events that remain.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import ICAL from 'ical.js';
import { daysOfEvents } from '../../../src/chronos/alarm/holidays.ts';
import { parseCalendar } from '../../../src/kit/recurrence/calendar-file.ts';

const DAY_MS = 86_400_000;
const [FROM, UNTIL] = [Date.UTC(2026, 0, 1), Date.UTC(2029, 0, 1)];

/** How a program writes a file: its zone, the lines of its header, and the form of its text. */
type Style = {
  readonly product: string;
  readonly header?: readonly string[];
  readonly tzid?: string;
  readonly zone?: readonly string[];
  readonly also?: readonly string[];
  readonly write?: (text: string) => string;
};

/** Berlin, as most programs describe it. */
const berlin = (tzid: string, ...more: string[]) => [
  ...['BEGIN:VTIMEZONE', `TZID:${tzid}`, ...more, 'BEGIN:DAYLIGHT', 'TZOFFSETFROM:+0100', 'TZOFFSETTO:+0200'],
  ...['TZNAME:CEST', 'DTSTART:19700329T020000', 'RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU', 'END:DAYLIGHT'],
  ...['BEGIN:STANDARD', 'TZOFFSETFROM:+0200', 'TZOFFSETTO:+0100', 'TZNAME:CET', 'DTSTART:19701025T030000'],
  ...['RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU', 'END:STANDARD', 'END:VTIMEZONE'],
];
const outlookZone = (tzid: string) => [
  ...['BEGIN:VTIMEZONE', `TZID:${tzid}`, 'BEGIN:STANDARD', 'DTSTART:16010101T030000', 'TZOFFSETFROM:+0200'],
  ...['TZOFFSETTO:+0100', 'RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10', 'END:STANDARD', 'BEGIN:DAYLIGHT'],
  ...['DTSTART:16010101T020000', 'TZOFFSETFROM:+0100', 'TZOFFSETTO:+0200'],
  ...['RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3', 'END:DAYLIGHT', 'END:VTIMEZONE'],
];
const mozilla = '/mozilla.org/20050126_1/Europe/Berlin';
const evolution = '/freeassociation.sourceforge.net/Europe/Berlin';

const STYLES: readonly Style[] = [
  {
    product: '-//Microsoft Corporation//Outlook 16.0 MIMEDIR//EN',
    header: ['METHOD:PUBLISH', 'X-MS-OLK-FORCEINSPECTOROPEN:TRUE'],
    tzid: 'W. Europe Standard Time',
    zone: outlookZone('W. Europe Standard Time'),
    also: ['CLASS:PUBLIC', 'PRIORITY:5', 'X-MICROSOFT-CDO-BUSYSTATUS:OOF', 'X-ALT-DESC;FMTTYPE=text/html:<p>a; b</p>'],
  },
  {
    product: 'Microsoft Exchange Server 2010',
    header: ['METHOD:PUBLISH', 'X-WR-CALNAME:Kalender'],
    tzid: '"(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna"',
    zone: outlookZone('(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna'),
    also: ['TRANSP:OPAQUE', 'X-MICROSOFT-DISALLOW-COUNTER:FALSE', 'SEQUENCE:0'],
  },
  {
    product: '-//Google Inc//Google Calendar 70.9054//EN',
    header: ['CALSCALE:GREGORIAN', 'METHOD:PUBLISH', 'X-WR-CALNAME:Feiertage', 'X-WR-TIMEZONE:Europe/Berlin'],
    tzid: 'Europe/Berlin',
    zone: berlin('Europe/Berlin', 'X-LIC-LOCATION:Europe/Berlin'),
    also: ['CREATED:00001231T000000Z', 'LOCATION:', 'TRANSP:TRANSPARENT', 'DESCRIPTION:Folded', ' text'],
  },
  {
    product: '-//Apple Inc.//macOS 15.1//EN',
    header: ['CALSCALE:GREGORIAN', 'X-APPLE-CALENDAR-COLOR:#FF2968'],
    tzid: 'Europe/Berlin',
    zone: berlin('Europe/Berlin'),
    also: [
      'X-APPLE-TRAVEL-ADVISORY-BEHAVIOR:AUTOMATIC',
      'X-APPLE-STRUCTURED-LOCATION;VALUE=URI;X-ADDRESS="a, b";X-TITLE=c:geo:52.5,13.4',
      ...['BEGIN:VALARM', 'ACTION:NONE', 'TRIGGER;VALUE=DATE-TIME:19760401T005545Z', 'END:VALARM'],
    ],
  },
  {
    product: '-//Mozilla.org/NONSGML Mozilla Calendar V1.1//EN',
    tzid: mozilla,
    zone: berlin(mozilla, 'X-LIC-LOCATION:Europe/Berlin'),
    also: ['X-MOZ-GENERATION:4', 'LAST-MODIFIED:20260101T000000Z', 'X-MOZ-LASTACK:20260101T000000Z'],
    write: (text) => text.replaceAll('\r\n', '\n'),
  },
  {
    product: '-//Ximian//NONSGML Evolution Calendar//EN',
    tzid: evolution,
    zone: berlin(evolution),
    also: ['X-EVOLUTION-CALDAV-HREF:x', 'CLASS:PUBLIC'],
    write: (text) => text.replaceAll('\r\n', '\r\r\n'),
  },
  {
    product: '-//Moodle Pty Ltd//NONSGML Moodle Version 2024100100//EN',
    header: ['METHOD:PUBLISH'],
    also: [
      'CLASS:PUBLIC',
      'CATEGORIES:Course',
      'DESCRIPTION:Hand in\nthe second line is not folded\nhttps://x.example/a',
    ],
  },
  {
    product: '-//Sports League//Schedule 1.0//EN',
    header: ['X-PUBLISHED-TTL:PT12H', 'REFRESH-INTERVAL;VALUE=DURATION:PT12H', 'a line of no form'],
    tzid: 'Europe/Berlin',
    also: [
      'GEO:48.2188;11.6247',
      'URL:https://x.example/?a=1;b=2',
      'TRANSP:OPAQUE',
      'ATTENDEE;CN="A; B: C":mailto:a@x.example',
    ],
    write: (text) => `\uFEFF${text}\r\n\r\n`,
  },
  {
    product: '-//Schulferien//iCal Generator//DE',
    also: ['SUMMARY;LANGUAGE=de:Feiertag: frei', 'DTSTAMP:20260101T000000Z'],
    write: (text) => text.replaceAll('BEGIN:VEVENT', 'begin:vevent').replaceAll('END:VEVENT', 'End:VEvent'),
  },
  {
    product: '-//Nextcloud calendar v4.7//EN',
    tzid: 'Europe/Berlin',
    zone: berlin('Europe/Berlin', 'TZURL:http://tzurl.org/zoneinfo-outlook/Europe/Berlin'),
    also: ['COLOR:lightcoral', 'SEQUENCE:2', 'ORGANIZER;CN=a;SCHEDULE-STATUS=1.1:mailto:b@x.example'],
  },
];

/** Events by kind; `z` writes a time in the zone of the style. Only the first line differs in ical.js, where named. */
type Form = { readonly name: string; readonly events: (z: (name: string, time: string) => string) => string[][] };

const FORMS: readonly Form[] = [
  {
    name: 'holidays of a year',
    events: () => [
      ['UID:1', 'DTSTART;VALUE=DATE:20260101', 'DTEND;VALUE=DATE:20260102'],
      ['UID:2', 'DTSTART;VALUE=DATE:20261225', 'DTEND;VALUE=DATE:20261227', 'RRULE:FREQ=YEARLY;COUNT=3'],
      ['UID:3', 'DTSTART;VALUE=DATE:20260403'],
      ['UID:4', 'DTSTART;VALUE=DATE:20261126', 'RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;UNTIL=20281231'],
    ],
  },
  {
    name: 'a weekly meeting with exceptions',
    events: (z) => [
      [
        ...['UID:1', z('DTSTART', '20260105T233000'), z('DTEND', '20260106T003000')],
        ...[
          'RRULE:FREQ=WEEKLY;WKST=SU;BYDAY=MO,TH;UNTIL=20260630T215959Z',
          z('EXDATE', '20260108T233000,20260223T233000'),
        ],
      ],
      ['UID:1', z('RECURRENCE-ID', '20260112T233000'), z('DTSTART', '20260114T100000'), z('DTEND', '20260114T110000')],
      ['UID:2', z('DTSTART', '20260329T013000'), z('DTEND', '20260329T033000'), 'STATUS:CANCELLED'],
    ],
  },
  {
    name: 'months, positions and intervals',
    events: (z) => [
      [
        'UID:1',
        z('DTSTART', '20260130T080000'),
        'DURATION:PT1H',
        'RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=12',
      ],
      ['UID:2', 'DTSTART;VALUE=DATE:20260131', 'RRULE:FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=-1;COUNT=9'],
      ['UID:3', z('DTSTART', '20260107T220000'), 'DURATION:PT4H', 'RRULE:FREQ=WEEKLY;INTERVAL=3;COUNT=20'],
      ['UID:4', 'DTSTART;VALUE=DATE:20260101', 'RRULE:FREQ=YEARLY;BYYEARDAY=1,100,-1;COUNT=6'],
    ],
  },
  {
    name: 'dates that are listed',
    events: (z) => [
      ['UID:1', 'DTSTART;VALUE=DATE:20260504', 'RDATE;VALUE=DATE:20260505,20260608', 'RDATE;VALUE=DATE:20270101'],
      ['UID:2', z('DTSTART', '20260210T090000'), 'DURATION:P1D', z('RDATE', '20260310T090000,20260410T090000')],
      [
        'UID:3',
        'DTSTART:20260601T100000Z',
        'DTEND:20260601T120000Z',
        'RRULE;X-ANY=THING:FREQ=DAILY;COUNT=5',
        'EXDATE:20260603T100000Z',
      ],
    ],
  },
  {
    name: 'times of day in all-day events',
    events: () => [
      ['UID:1', 'DTSTART;VALUE=DATE:20261225', 'RRULE:FREQ=YEARLY;UNTIL=20281225'],
      ['UID:2', 'DTSTART;VALUE=DATE:20260501', 'DURATION:P2D', 'RRULE:FREQ=YEARLY;COUNT=2'],
    ],
  },
  {
    name: 'many small events of a season',
    events: (z) =>
      Array.from({ length: 40 }, (_, n) => {
        const day = new Date(FROM + n * 9 * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '');
        return [`UID:${n}`, z('DTSTART', `${day}T${n % 2 === 0 ? '203000' : '001500'}`), 'DURATION:PT1H45M'];
      }),
  },
];

/** Entries that cannot be used; one is in each file. */
const ODD: readonly string[][] = [
  ['DTSTART;VALUE=DATE:20260916', 'RRULE:RSCALE=HEBREW;FREQ=YEARLY;SKIP=FORWARD'],
  ['DTSTART;VALUE=DATE:20260917', 'RRULE:FREQ=DAILY;COUNT=0'],
  ['DTSTART;VALUE=DATE:20260918', 'RRULE:FREQ=MONTHLY;BYYEARDAY=1;BYMONTHDAY=1'],
  ['DTSTART;VALUE=DATE:20260931'],
  ['SUMMARY:no start'],
  ['DTSTART:20260919T100000Z', 'DTEND:20260918T100000Z'],
  ['DTSTART:20260920T100000Z', 'RRULE:FREQ=SECONDLY'],
];

const event = (lines: readonly string[], also: readonly string[] = []) => [
  ...['BEGIN:VEVENT', 'DTSTAMP:20260101T000000Z', ...lines, ...also, 'END:VEVENT'],
];

function fileOf(style: Style, events: readonly string[][], odd: readonly string[]): string {
  const lines = [
    ...['BEGIN:VCALENDAR', `PRODID:${style.product}`, 'VERSION:2.0', ...(style.header ?? []), ...(style.zone ?? [])],
    ...events.flatMap((one) => event(one, style.also)),
    ...[...(odd.length === 0 ? [] : event(odd, style.also)), 'END:VCALENDAR'],
  ];
  const text = `${lines.join('\r\n')}\r\n`;
  return style.write ? style.write(text) : text;
}

/** The days by the independent reader, with Berlin as the zone of floating times and of the series. */
function expectedDays(events: readonly string[][]): string[] {
  const text = [
    ...['BEGIN:VCALENDAR', 'VERSION:2.0', ...berlin('Europe/Berlin'), ...events.flatMap((one) => event(one))],
    'END:VCALENDAR',
  ].join('\r\n');
  const calendar = new ICAL.Component(ICAL.parse(text));
  ICAL.TimezoneService.reset();
  for (const zone of calendar.getAllSubcomponents('vtimezone')) ICAL.TimezoneService.register(zone);
  const berlinZone = ICAL.TimezoneService.get('Europe/Berlin')!;
  const days = new Set<number>();
  const dayOf = (time: ICAL.Time, beforeSeconds: number): number => {
    const shown = time.isDate ? time : time.convertToZone(berlinZone);
    const reading = Date.UTC(shown.year, shown.month - 1, shown.day, shown.hour, shown.minute, shown.second);
    return Math.floor((reading - beforeSeconds * 1000) / DAY_MS);
  };
  const cover = (start: ICAL.Time, end: ICAL.Time) => {
    const first = dayOf(start, 0);
    for (let day = first; day <= Math.max(first, dayOf(end, 1)); day++) days.add(day);
  };
  const components = calendar
    .getAllSubcomponents('vevent')
    .filter((one) => one.getFirstPropertyValue('status') !== 'CANCELLED');
  const masters = components.filter((one) => !one.hasProperty('recurrence-id'));
  for (const master of masters) {
    const uid = master.getFirstPropertyValue('uid');
    const exceptions = components.filter(
      (one) => one.hasProperty('recurrence-id') && one.getFirstPropertyValue('uid') === uid,
    );
    const whole = new ICAL.Event(master, { exceptions });
    if (!whole.isRecurring()) {
      cover(whole.startDate, whole.endDate);
      continue;
    }
    // The reader omits the start of an event with RDATE alone.
    if (!master.hasProperty('rrule')) cover(whole.startDate, whole.endDate);
    const expansion = whole.iterator();
    for (let next = expansion.next(), n = 0; next && n < 1_000; next = expansion.next(), n++) {
      if (next.year > 2029) break;
      const { startDate, endDate } = whole.getOccurrenceDetails(next);
      cover(startDate, endDate);
    }
  }
  return datesOf([...days].sort((one, other) => one - other));
}

const datesOf = (days: readonly number[]) =>
  days
    .filter((day) => day * DAY_MS >= FROM && day * DAY_MS < UNTIL)
    .map((day) => new Date(day * DAY_MS).toISOString().slice(0, 10));

let files = 0;
for (const [n, style] of STYLES.entries())
  test(`files of ${style.product} have the days of the independent reader, and none is refused for one entry`, () => {
    for (const [m, form] of FORMS.entries()) {
      const written = (tzid: string | undefined) => (name: string, time: string) =>
        tzid === undefined ? `${name}:${time}` : `${name};TZID=${tzid}:${time}`;
      const events = form.events(written(style.tzid));
      const odd = ODD[(n + m) % ODD.length]!;
      const { events: read, omitted } = parseCalendar(fileOf(style, events, odd));
      const problems = omitted.map(({ problem }) => problem);
      const days = daysOfEvents(read, 'Europe/Berlin', ({ problem }) => problems.push(problem));
      assert.equal(problems.length, 1, `${form.name}: ${problems.join('; ')}`);
      const plain = form.events(written('Europe/Berlin'));
      assert.deepEqual(datesOf(days), expectedDays(plain), `${form.name}, ${odd.join(' ')}`);
      files++;
    }
  });

test('the files are sixty', () => {
  assert.equal(files, 60);
});
