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
  const days = (timezone: string) => daysOfEvents(eventsOf(...events), timezone);
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
const daysOf = (timezone: string, ...events: string[][]) => datesOf(daysOfEvents(eventsOf(...events), timezone));

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
  assert.throws(() => daysOf('UTC', ['DTSTART:19000101', 'RRULE:FREQ=DAILY']), /cover more than 50000 days/);
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
  const days = daysOfEvents(eventsOf([start, 'RRULE:FREQ=HOURLY;INTERVAL=5', 'RDATE:20251230T113000']), 'UTC');
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

test('a rule with too many occurrences, or too much work for each, is refused', () => {
  const begun = performance.now();
  for (const rule of ['FREQ=SECONDLY', 'FREQ=MINUTELY;BYDAY=MO', 'FREQ=HOURLY'])
    assert.throws(() => daysOf('UTC', ['DTSTART:20260101T000000Z', `RRULE:${rule}`]), /recur more than 200000 times/);
  const never = 'RRULE:FREQ=HOURLY;BYMONTHDAY=1,29;BYYEARDAY=366,-1;BYDAY=FR;BYMINUTE=22;BYSECOND=8';
  assert.throws(() => daysOf('UTC', ['DTSTART:20260101T000000Z', 'RRULE:FREQ=DAILY', never]), /too much work/);
  assert.deepEqual(daysOf('UTC', ['DTSTART:99980101', 'RRULE:FREQ=DAILY']), ['9998-01-01']);
  assert.ok(performance.now() - begun < 20_000);
});

test('an installed calendar that cannot be read is refused', () => {
  const unreadable: Calendars = { daysOf: () => undefined, names: () => ['office'] };
  assert.throws(
    () => set({ kind: 'cron', cron_expr: '@daily', holidays: 'office' }, unreadable),
    /usable calendar \(got "office", whose file cannot be read\); "reveille calendar list" says why/,
  );
});
