import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { dayAt } from '../../kit/clock/wall-clock.ts';
import { parseCalendar } from '../../kit/recurrence/calendar-file.ts';
import { type Calendars, daysOfEvents } from './holidays.ts';
import { compileSchedule } from './schedule.ts';
import { nextOccurrence, seriesOf } from './series.ts';
import { type Body, edit, LIMITS, NOW, scheduled, setAlarm } from './testing/alarm-state.ts';
import { viewAlarm } from './view.ts';
import { withoutDays } from './without-days.ts';

const DAY_MS = 86_400_000;

/** The calendar "office" with these events, each as the lines of its VEVENT. */
function officeOf(...events: string[][]): Calendars {
  const days = (timezone: string) => daysOfEvents(eventsOf(...events).events, timezone);
  const byZone = new Map<string, readonly number[]>();
  return {
    daysOf(name, timezone) {
      if (name !== 'office') return undefined;
      if (!byZone.has(timezone)) byZone.set(timezone, days(timezone));
      return byZone.get(timezone);
    },
    names: () => ['office', 'other'],
  };
}
const set = (body: Body, calendars: Calendars, now = NOW) => setAlarm(body, now, LIMITS, calendars);

const eventsOf = (...events: string[][]) =>
  parseCalendar(
    ['BEGIN:VCALENDAR', ...events.flatMap((lines) => ['BEGIN:VEVENT', ...lines, 'END:VEVENT']), 'END:VCALENDAR'].join(
      '\n',
    ),
  );
const datesOf = (days: readonly number[]) => days.map((day) => new Date(day * DAY_MS).toISOString().slice(0, 10));
const daysOf = (timezone: string, ...events: string[][]) => datesOf(daysOfEvents(eventsOf(...events).events, timezone));

/** What is said about events that cover no day. */
function problemsOf(...events: string[][]): string[] {
  const problems: string[] = [];
  daysOfEvents(eventsOf(...events).events, 'UTC', ({ problem }) => problems.push(problem));
  return problems;
}

test('an event covers its dates, or the days that it touches in the zone of the series', () => {
  assert.deepEqual(daysOf('UTC', ['DTSTART:20261225', 'DTEND:20261227']), ['2026-12-25', '2026-12-26']);
  assert.deepEqual(daysOf('Pacific/Apia', ['DTSTART:20261225', 'DURATION:P1W']).length, 7);
  assert.deepEqual(daysOf('UTC', ['DTSTART:20261225']), ['2026-12-25']);
  const evening = ['DTSTART;TZID=Europe/Berlin:20261231T230000', 'DTEND;TZID=Europe/Berlin:20270101T000000'];
  assert.deepEqual(daysOf('Europe/Berlin', evening), ['2026-12-31']);
  assert.deepEqual(daysOf('Asia/Tokyo', evening), ['2027-01-01']);
  assert.deepEqual(daysOf('Asia/Tokyo', ['DTSTART:20261231T200000Z', 'DURATION:PT0S']), ['2027-01-01']);
  assert.deepEqual(daysOf('Asia/Tokyo', ['DTSTART;TZID=Tokyo Standard Time:20261231T100000', 'DURATION:P1D']), [
    '2026-12-31',
    '2027-01-01',
  ]);
});

test('recurring events cover the days of their occurrences, until the end of the century', () => {
  const yearly = daysOf('UTC', ['DTSTART:20201225', 'RRULE:FREQ=YEARLY', 'EXDATE;VALUE=DATE:20221225']);
  assert.deepEqual([yearly.length, yearly[2], yearly.at(-1)], [79, '2023-12-25', '2099-12-25']);
  const thursday = daysOf('UTC', [
    'DTSTART:20261126',
    'RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=3',
    'RDATE:20261127',
  ]);
  assert.deepEqual(thursday, ['2026-11-26', '2026-11-27', '2027-11-25', '2028-11-23']);
  assert.match(problemsOf(['DTSTART:19000101', 'RRULE:FREQ=DAILY']).join(), /^it covers more than 50000 days/);
});

test('the days of an event in a zone with another name than that of IANA are those of its zone', () => {
  const morning = ['20261221T090000', 'DTEND;TZID=New Zealand Standard Time:20261221T120000'];
  assert.deepEqual(daysOf('Europe/Berlin', [`DTSTART;TZID=New Zealand Standard Time:${morning[0]}`, morning[1]!]), [
    '2026-12-20',
  ]);
  // A zone of the file: 11 hours ahead of UTC, 10 from April to October.
  const zone = [
    ...['BEGIN:VTIMEZONE', 'TZID:Customized Time Zone', 'BEGIN:STANDARD', 'DTSTART:16010101T030000'],
    ...['TZOFFSETFROM:+1100', 'TZOFFSETTO:+1000', 'RRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=1SU', 'END:STANDARD'],
    ...['BEGIN:DAYLIGHT', 'DTSTART:16010101T020000', 'TZOFFSETFROM:+1000', 'TZOFFSETTO:+1100'],
    ...['RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=1SU', 'END:DAYLIGHT', 'END:VTIMEZONE'],
  ];
  const days = (...lines: string[]) =>
    datesOf(
      daysOfEvents(
        parseCalendar(['BEGIN:VCALENDAR', ...zone, 'BEGIN:VEVENT', ...lines, 'END:VEVENT', 'END:VCALENDAR'].join('\n'))
          .events,
        'UTC',
      ),
    );
  const at = (time: string) => `DTSTART;TZID=Customized Time Zone:${time}`;
  assert.deepEqual(days(at('20261221T103000')), ['2026-12-20']);
  assert.deepEqual(days(at('20261221T110000')), ['2026-12-21']);
  assert.deepEqual(days(at('20260621T103000')), ['2026-06-21']);
  assert.deepEqual(days(at('20260621T093000'), 'RRULE:FREQ=MONTHLY;COUNT=2'), ['2026-06-20', '2026-07-20']);
  assert.deepEqual(
    days(at('20260921T103000'), 'RRULE:FREQ=MONTHLY;UNTIL=20261120T233000Z', 'EXDATE:20260921T003000Z'),
    ['2026-10-20', '2026-11-20'],
  );
});

test('an excluded date, an EXRULE and a change of later occurrences are heeded', () => {
  const daily = ['DTSTART;TZID=Europe/Berlin:20261207T090000', 'RRULE:FREQ=DAILY;COUNT=4'];
  const december = (...days: number[]) => days.map((day) => `2026-12-${String(day).padStart(2, '0')}`);
  const cases: [lines: string[], days: string[]][] = [
    [[...daily, 'EXDATE;VALUE=DATE:20261207'], december(8, 9, 10)],
    [[...daily, 'EXDATE;VALUE=DATE:20261207,20261209'], december(8, 10)],
    [[...daily, 'EXDATE:20261207T080000Z'], december(8, 9, 10)],
    [[...daily, 'EXDATE;TZID=America/New_York:20261207T030000'], december(8, 9, 10)],
    [[...daily, 'EXDATE:20261207T090000'], december(8, 9, 10)],
    [[...daily, 'EXRULE:FREQ=DAILY;INTERVAL=2'], december(8, 10)],
    [[...daily, 'EXRULE:FREQ=WEEKLY;BYDAY=TU,WE;UNTIL=20261208T080000Z'], december(7, 9, 10)],
    [['DTSTART:20261207', 'RRULE:FREQ=DAILY;COUNT=4', 'EXRULE:FREQ=DAILY;INTERVAL=3;BYHOUR=8'], december(8, 9)],
    [['DTSTART:20261207T090000Z', 'EXDATE:20261207T090000Z'], []],
    [
      ['DTSTART:20261207T090000Z', 'RDATE;VALUE=PERIOD:20261209T100000Z/PT1H,20261211T220000Z/PT4H'],
      december(7, 9, 11, 12),
    ],
    [['DTSTART:20261207T090000Z', 'RDATE:20261201T090000Z'], december(1, 7)],
  ];
  for (const [lines, days] of cases) assert.deepEqual(daysOf('Europe/Berlin', lines), days, lines.join(' '));
  const weekly = ['UID:a', 'DTSTART;TZID=Europe/Berlin:20261201T230000', 'DURATION:PT1H', 'RRULE:FREQ=WEEKLY;COUNT=4'];
  const from = 'RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261215T230000';
  const later = (...lines: string[]) => daysOf('Europe/Berlin', weekly, ['UID:a', from, ...lines]);
  assert.deepEqual(
    later('DTSTART;TZID=Europe/Berlin:20261216T230000', 'DURATION:PT2H'),
    december(1, 8, 16, 17, 23, 24),
  );
  assert.deepEqual(later('DTSTART:20261214T200000Z'), december(1, 8, 14, 21));
  assert.deepEqual(later('DTSTART;TZID=Europe/Berlin:20261215T230000', 'STATUS:CANCELLED'), december(1, 8));
  assert.deepEqual(later('DTSTART;VALUE=DATE:20261217'), december(1, 8, 17, 24));
  assert.deepEqual(later('DTSTART:20261218T100000', 'RRULE:FREQ=DAILY;COUNT=2'), december(1, 8, 18, 19));
  const moved = ['UID:a', 'RECURRENCE-ID;TZID=Europe/Berlin:20261222T230000', 'DTSTART:20261228T100000'];
  assert.deepEqual(
    daysOf('Europe/Berlin', weekly, ['UID:a', from, 'DTSTART;TZID=Europe/Berlin:20261216T220000'], moved),
    december(1, 8, 16, 28),
  );
  const dates = ['UID:b', 'DTSTART;VALUE=DATE:20261201', 'RRULE:FREQ=WEEKLY;COUNT=4'];
  const change = ['UID:b', 'RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20261215', 'DTSTART;VALUE=DATE:20261216'];
  assert.deepEqual(daysOf('UTC', dates, change), december(1, 8, 16, 23));
});

test('no time of day reaches the days of an all-day event', () => {
  const christmas = ['2025-12-25', '2026-12-25', '2027-12-25'];
  const start = 'DTSTART;VALUE=DATE:20251225';
  const yearly = 'RRULE:FREQ=YEARLY;COUNT=3';
  const cases: [lines: string[], days: string[]][] = [
    [[start, `${yearly};BYMONTH=12;BYMONTHDAY=25;BYHOUR=8`], christmas],
    [[start, `${yearly};BYHOUR=8,20;BYMINUTE=0,30;BYSECOND=15`], christmas],
    [[start, `${yearly};BYDAY=TH,FR,SA;BYMONTHDAY=25;BYMONTH=12;BYHOUR=8,9;BYSETPOS=1`], christmas],
    [[start, 'RRULE:FREQ=YEARLY;BYHOUR=8;UNTIL=20271225T070000Z'], christmas],
    [[start, 'RRULE:FREQ=YEARLY;UNTIL=20271225T000000'], christmas],
    [[start, 'RRULE:FREQ=YEARLY;UNTIL=20271224T235959Z'], christmas.slice(0, 2)],
    [['DTSTART;VALUE=DATE:20251225T093000', yearly], christmas],
    [
      [start, yearly, 'EXDATE:20261225T000000Z'],
      [christmas[0]!, christmas[2]!],
    ],
    [[start, yearly, 'EXDATE;TZID=Europe/Berlin:20261225T093000,20271225T110000'], [christmas[0]!]],
    [[start, yearly, 'EXDATE;VALUE=DATE:20251225T093000'], christmas.slice(1)],
    [[start, 'RDATE:20261225T180000,20271225T230000Z'], christmas],
    [
      [start, 'DTEND:20251226T180000'],
      ['2025-12-25', '2025-12-26'],
    ],
    [[start, 'DTEND:20251225'], ['2025-12-25']],
    [[start, 'DURATION:PT8H'], ['2025-12-25']],
    [
      [start, 'DURATION:PT36H'],
      ['2025-12-25', '2025-12-26'],
    ],
    [[start, 'DURATION:PT0S', yearly], christmas],
    [
      [start, 'RRULE:FREQ=HOURLY;COUNT=30'],
      ['2025-12-25', '2025-12-26'],
    ],
    [
      [start, 'RRULE:FREQ=HOURLY;INTERVAL=36;COUNT=3'],
      ['2025-12-25', '2025-12-26', '2025-12-28'],
    ],
    [
      [start, 'RRULE:FREQ=MINUTELY;INTERVAL=720;BYHOUR=8;COUNT=3'],
      ['2025-12-25', '2025-12-26'],
    ],
  ];
  for (const timezone of ['UTC', 'Europe/Berlin', 'Pacific/Auckland', 'America/Los_Angeles'])
    for (const [lines, days] of cases)
      assert.deepEqual(daysOf(timezone, lines), days, `${timezone} ${lines.join(' ')}`);
  const replaced = [
    ['UID:a', start, yearly],
    ['UID:a', 'RECURRENCE-ID;TZID=Europe/Berlin:20261225T000000', 'DTSTART;VALUE=DATE:20261228'],
  ];
  assert.deepEqual(daysOf('UTC', ...replaced), ['2025-12-25', '2026-12-28', '2027-12-25']);
  const days = daysOfEvents(eventsOf([start, 'RRULE:FREQ=HOURLY;INTERVAL=5', 'RDATE:20251230T113000']).events, 'UTC');
  assert.ok(days.every(Number.isInteger));
});

test('a series does not fire on the days of its calendar, and its counts leave them out', () => {
  const office = officeOf(['DTSTART:20260617', 'DTEND:20260619']);
  const noon = { timezone: 'Europe/Berlin', holidays: 'office' };
  for (const body of [
    { kind: 'cron', cron_expr: '0 12 * * *', ...noon },
    { kind: 'rrule', rrule: 'FREQ=DAILY;BYHOUR=12;BYMINUTE=0;BYSECOND=0', ...noon },
  ]) {
    const { alarm } = set(body, office);
    const dates: string[] = [];
    const after = (at: number) => nextOccurrence(alarm, at, office);
    for (let at = after(NOW); at && dates.length < 4; at = after(at.nominal))
      dates.push(new Date(at.nominal).toISOString().slice(0, 10));
    assert.deepEqual(dates, ['2026-06-15', '2026-06-16', '2026-06-19', '2026-06-20']);
    const latest = seriesOf(alarm, office).latest(NOW, Date.parse('2026-06-18T20:00:00Z'));
    assert.deepEqual(latest, { at: Date.parse('2026-06-16T10:00:00Z'), count: 2 });
    assert.equal(seriesOf(alarm, office).latest(NOW, Date.parse('2026-06-21T20:00:00Z'))?.count, 5);
  }
});

test('over clock changes, no occurrence is on a holiday, and counts are exact', () => {
  const property = fc.property(
    fc.constantFrom('0 * * * *', '30 2 * * *', '*/20 0,23 * * *', '@every 45m'),
    fc.constantFrom('Europe/Berlin', 'America/Santiago', 'Asia/Beirut', 'Pacific/Apia', 'Australia/Lord_Howe'),
    fc
      .constantFrom('2026-03-27', '2026-04-03', '2026-09-04', '2026-10-23', '2011-12-28')
      .map((date) => Date.parse(date)),
    fc.uniqueArray(fc.nat({ max: 6 })),
    (cron, timezone, after, offsets) => {
      const days = offsets.map((offset) => after / DAY_MS + offset).sort((one, other) => one - other);
      const all = compileSchedule(cron, timezone, 0);
      const { next, latest } = withoutDays(all, timezone, days);
      const expected: number[] = [];
      for (let at = all.next(after)!; at < after + 8 * DAY_MS; at = all.next(at)!)
        if (!days.includes(dayAt(timezone, at))) expected.push(at);
      const found: number[] = [];
      for (let at = next(after); at !== undefined && at < after + 8 * DAY_MS; at = next(at)) found.push(at);
      assert.deepEqual(found, expected);
      const last = expected.at(-1);
      assert.deepEqual(latest(after, after + 8 * DAY_MS - 1), last && { at: last, count: expected.length });
    },
  );
  fc.assert(property, { numRuns: 200 });
});

test('the day is the one of the zone of the alarm', () => {
  const office = officeOf(['DTSTART:20260616']);
  const first = (timezone: string) =>
    new Date(
      scheduled(set({ kind: 'cron', cron_expr: '0 0 * * *', timezone, holidays: 'office' }, office)).nominal,
    ).toISOString();
  assert.equal(first('UTC'), '2026-06-17T00:00:00.000Z');
  assert.equal(first('Europe/Berlin'), '2026-06-16T22:00:00.000Z');
  assert.equal(first('Asia/Tokyo'), '2026-06-16T15:00:00.000Z');
});

test('an unknown calendar is refused with the installed ones, in a create and in an edit', () => {
  const office = officeOf();
  const refusal = /^holidays must name an installed calendar \(got "offices"\); installed are office, other$/;
  const series = { kind: 'cron', cron_expr: '@daily' };
  assert.throws(() => set({ ...series, holidays: 'offices' }, office), { message: refusal });
  assert.throws(() => edit(setAlarm(series), { holidays: 'offices' }, NOW, office), { message: refusal });
  assert.throws(
    () => setAlarm({ ...series, holidays: 'office' }),
    /none is installed; add one with "reveille calendar add/,
  );
});

test('a calendar that goes missing later excludes nothing, and the view says so', () => {
  const office = officeOf(['DTSTART:20260616']);
  const body = { kind: 'cron', cron_expr: '0 12 * * *', holidays: 'office' };
  const state = set(body, office, Date.UTC(2026, 5, 15, 13));
  assert.equal(viewAlarm(state, { calendars: office }).holidays_missing, undefined);
  assert.equal(viewAlarm(state, { calendars: office }).next_fire_at, '2026-06-17T12:00:00.000Z');
  assert.equal(viewAlarm(state).holidays_missing, true);
  const after = Date.UTC(2026, 5, 15, 13);
  assert.equal(nextOccurrence(state.alarm, after)?.nominal, Date.UTC(2026, 5, 16, 12));
  assert.equal(viewAlarm(edit(state, { holidays: null })).holidays_missing, undefined);
});

test('a calendar whose last day has passed excludes nothing, and the view says so', () => {
  const office = officeOf(['DTSTART:20260616', 'DTEND:20260618']);
  const state = set({ kind: 'cron', cron_expr: '0 12 * * *', timezone: 'Asia/Tokyo', holidays: 'office' }, office);
  const ended = (at: string) =>
    viewAlarm(state, { calendars: office, clock: { now: () => Date.parse(at) } }).holidays_ended;
  assert.equal(ended('2026-06-17T14:59:00Z'), undefined, 'the last minute of its last day in Tokyo');
  assert.equal(ended('2026-06-17T15:00:00Z'), '2026-06-17');
  assert.equal(viewAlarm(state, { clock: { now: () => NOW } }).holidays_ended, undefined, 'a missing one has no end');
  const plain = edit(state, { holidays: null });
  assert.equal(viewAlarm(plain, { calendars: office, clock: { now: () => NOW * 2 } }).holidays_ended, undefined);
});

test('a series that has only holidays for ten years never fires', () => {
  const office = officeOf(['DTSTART:20200105', 'RRULE:FREQ=WEEKLY;BYDAY=SU']);
  assert.throws(
    () => set({ kind: 'cron', cron_expr: '0 12 * * 0', holidays: 'office' }, office),
    /cron_expr never fires again outside the days of the calendar "office" \(got "0 12 \* \* 0"\)/,
  );
});

test('two calendars of one name in one process exclude their own days', () => {
  const body = { kind: 'cron', cron_expr: '0 7 * * *', holidays: 'office' };
  const [one, other] = [officeOf(['DTSTART:20260616']), officeOf(['DTSTART:20260617'])];
  const days = (calendars: Calendars) => {
    const { alarm } = set(body, calendars);
    const first = nextOccurrence(alarm, NOW, calendars)!;
    return [first, nextOccurrence(alarm, first.nominal, calendars)!].map(({ nominal }) =>
      new Date(nominal).getUTCDate(),
    );
  };
  assert.deepEqual([one, other, one].map(days), [
    [17, 18],
    [16, 18],
    [17, 18],
  ]);
});

test('an edit of the calendar moves the next occurrence and keeps the series', () => {
  const office = officeOf(['DTSTART:20260616']);
  const state = setAlarm({ kind: 'cron', cron_expr: '0 7 * * *' });
  assert.equal(scheduled(state).nominal, Date.UTC(2026, 5, 16, 7));
  const without = edit(state, { holidays: 'office' }, NOW, office);
  assert.equal(scheduled(without).nominal, Date.UTC(2026, 5, 17, 7));
  assert.equal(scheduled(edit(without, { holidays: null }, NOW, office)).nominal, Date.UTC(2026, 5, 16, 7));
  // The limits alone, and a series that is due already, keep their pending occurrence.
  assert.equal(scheduled(edit(without, { max_fires: 5 }, NOW, office)).nominal, Date.UTC(2026, 5, 17, 7));
  const late = Date.UTC(2026, 5, 17, 8);
  assert.equal(scheduled(edit(without, { holidays: null }, late, office)).nominal, Date.UTC(2026, 5, 17, 7));
});

test('an event with too many occurrences, or too much work for each, covers no day', () => {
  const begun = performance.now();
  const often = ['FREQ=SECONDLY', 'FREQ=MINUTELY;BYDAY=MO', 'FREQ=HOURLY'].map((rule) => [
    ...['DTSTART:20260101T000000Z', `RRULE:${rule}`],
  ]);
  for (const lines of often) assert.match(problemsOf(lines).join(), /^it recurs more than 200000 times/);
  assert.deepEqual(daysOf('UTC', ...often, ['DTSTART:20261225']), ['2026-12-25']);
  const eight = Array.from({ length: 8 }, () => often[0]!);
  assert.throws(
    () => daysOf('UTC', ...eight),
    /the events cover more than 50000 days or recur more than 1000000 times/,
  );
  const never = 'RRULE:FREQ=HOURLY;BYMONTHDAY=1,29;BYYEARDAY=366,-1;BYDAY=FR;BYMINUTE=22;BYSECOND=8';
  assert.match(problemsOf(['DTSTART:20260101T000000Z', 'RRULE:FREQ=DAILY', never]).join(), /too much work/);
  assert.deepEqual(daysOf('UTC', ['DTSTART:99980101', 'RRULE:FREQ=DAILY']), ['9998-01-01']);
  assert.ok(performance.now() - begun < 60_000);
});

test('an installed calendar that cannot be read is refused', () => {
  const unreadable: Calendars = { daysOf: () => undefined, names: () => ['office'] };
  assert.throws(
    () => set({ kind: 'cron', cron_expr: '@daily', holidays: 'office' }, unreadable),
    /usable calendar \(got "office", whose file cannot be read\); "reveille calendar list" says why/,
  );
});
