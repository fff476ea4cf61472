import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { zoneOf } from '../../kit/clock/zone.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { compileRule, compileSchedule } from './schedule.ts';
import { seriesOf } from './series.ts';
import { edit, NOW, scheduled, setAlarm } from './testing/alarm-state.ts';
import { viewAlarm } from './view.ts';

const ANCHOR = Date.parse('2026-11-27T14:00:05.123Z');
const BERLIN = 'Europe/Berlin';
const DAY_MS = 86_400_000;

/** The next occurrences after an instant, as the zone's wall clock shows them: `2026-11-30 10:00`. */
function next(rrule: string, { zone = BERLIN, after = ANCHOR, most = 4 } = {}): string[] {
  const schedule = compileRule(rrule, zone, ANCHOR);
  const found: number[] = [];
  for (let at = schedule.next(after); at !== undefined && found.length < most; at = schedule.next(at)) found.push(at);
  const latest = found.length === 0 ? undefined : schedule.latest(after, found.at(-1)!);
  assert.equal(latest?.count ?? 0, found.length, 'count');
  assert.equal(latest?.at, found.at(-1), 'latest');
  return found.map((at) => shown(at, zone));
}

function shown(at: number, zone: string): string {
  const wall = new Date(at + zoneOf(zone).spanAt(at).offset).toISOString();
  return wall.slice(0, 16).replace('T', ' ') + (wall.slice(17, 19) === '00' ? '' : wall.slice(16, 19));
}

const AT_TEN = 'BYHOUR=10;BYMINUTE=0;BYSECOND=0';

test('rules name instants that cron cannot', () => {
  const mondays = next(`DTSTART:20261130T100000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO`);
  assert.deepEqual(mondays, ['2026-11-30 10:00', '2026-12-14 10:00', '2026-12-28 10:00', '2027-01-11 10:00']);
  const fridays = next('FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0', { most: 3 });
  assert.deepEqual(fridays, ['2026-11-27 17:00', '2026-12-25 17:00', '2027-01-29 17:00']);
  const workdays = next(`FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;${AT_TEN}`, { most: 2 });
  assert.deepEqual(workdays, ['2026-11-30 10:00', '2026-12-31 10:00']);
  const weeks = next(`FREQ=YEARLY;BYWEEKNO=20,53;BYDAY=MO;${AT_TEN}`, { most: 2 });
  assert.deepEqual(weeks, ['2026-12-28 10:00', '2027-05-17 10:00']);
  assert.deepEqual(next(`FREQ=YEARLY;BYDAY=20MO;${AT_TEN}`, { most: 1 }), ['2027-05-17 10:00']);
  assert.deepEqual(next(`FREQ=YEARLY;BYYEARDAY=-1;${AT_TEN}`, { most: 1 }), ['2026-12-31 10:00']);
  assert.deepEqual(next(`FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=1;${AT_TEN}`, { most: 2 }), [
    '2027-02-01 10:00',
    '2027-05-01 10:00',
  ]);
});

test('without DTSTART a rule begins after its anchor, with the hour and minute of the anchor', () => {
  assert.deepEqual(next('FREQ=DAILY;COUNT=3'), ['2026-11-28 15:00', '2026-11-29 15:00', '2026-11-30 15:00']);
  assert.deepEqual(next('FREQ=DAILY;INTERVAL=3', { most: 2 }), ['2026-11-30 15:00', '2026-12-03 15:00']);
  assert.deepEqual(next('FREQ=DAILY;BYHOUR=16;BYMINUTE=0;COUNT=1'), ['2026-11-27 16:00']);
  // The anchor is five seconds past the minute: what it has passed does not count.
  assert.deepEqual(next('FREQ=MINUTELY;BYSECOND=2,40;COUNT=2'), ['2026-11-27 15:00:40', '2026-11-27 15:01:02']);
});

test('DTSTART is an occurrence only if a rule names it, and it may be a date or in UTC', () => {
  const after = Date.parse('2026-01-01T00:00:00Z');
  assert.deepEqual(next('DTSTART:20260105T100000\nRRULE:FREQ=DAILY;COUNT=2', { after }), [
    '2026-01-05 10:00',
    '2026-01-06 10:00',
  ]);
  assert.deepEqual(next('DTSTART:20260105T100000\nRRULE:FREQ=WEEKLY;BYDAY=TU;COUNT=1', { after }), [
    '2026-01-06 10:00',
  ]);
  assert.deepEqual(next('DTSTART:20260105T090000Z\nRRULE:FREQ=DAILY;COUNT=1', { after }), ['2026-01-05 10:00']);
  assert.deepEqual(next('DTSTART;VALUE=DATE:20260105\nRRULE:FREQ=DAILY;COUNT=1', { after }), ['2026-01-05 00:00']);
  assert.deepEqual(next('DTSTART;TZID=Europe/Berlin:20260105T100000\nRRULE:FREQ=DAILY;COUNT=1', { after }), [
    '2026-01-05 10:00',
  ]);
});

test('a rule may begin before 1970', () => {
  const rule = 'DTSTART:19650301T102030\nRRULE:FREQ=';
  assert.deepEqual(next(`${rule}YEARLY`, { most: 1 }), ['2027-03-01 10:20:30']);
  assert.deepEqual(next(`${rule}HOURLY`, { most: 1 }), ['2026-11-27 15:20:30']);
});

test('UNTIL includes its instant, and a date its whole day', () => {
  const rule = (until: string) => `DTSTART:20261201T100000\nRRULE:FREQ=DAILY;UNTIL=${until}`;
  for (const until of ['20261202T100000', '20261202T090000Z', '20261202'])
    assert.deepEqual(next(rule(until)), ['2026-12-01 10:00', '2026-12-02 10:00'], until);
  assert.deepEqual(next(rule('20261202T095959')), ['2026-12-01 10:00']);
  assert.deepEqual(next(rule('20261202T085959Z')), ['2026-12-01 10:00']);
});

test('several rules are united, RDATE adds and EXDATE removes instants', () => {
  const lines = [
    'DTSTART:20261201T100000',
    'RRULE:FREQ=DAILY;INTERVAL=2;COUNT=3',
    'RRULE:FREQ=DAILY;BYHOUR=10,12;BYMINUTE=0;BYSECOND=0;UNTIL=20261203T235959',
    'RDATE:20261224T180000,20261224T170000Z',
    'EXDATE:20261203T100000',
    'EXDATE;VALUE=DATE:20261202',
  ];
  const expected = [
    ...['2026-12-01 10:00', '2026-12-01 12:00', '2026-12-03 12:00', '2026-12-05 10:00'],
    '2026-12-24 18:00',
  ];
  assert.deepEqual(next(lines.join('\r\n'), { most: 9 }), expected);
});

test('folded lines, lower case and a trailing semicolon are read', () => {
  assert.deepEqual(next('rrule:freq=weekly;byday=mo;\r\n byhour=10;byminute=0;bysecond=0;', { most: 1 }), [
    '2026-11-30 10:00',
  ]);
});

const BEFORE_GAP = Date.parse('2027-03-27T12:00:00Z'); // Berlin, 28 March 2027: 02:00 becomes 03:00
const BEFORE_FOLD = Date.parse('2027-10-30T12:00:00Z'); // Berlin, 31 October 2027: 03:00 becomes 02:00

test('a fixed time fires once over a clock change: at its first reading, or at the first instant after the gap', () => {
  const daily = 'FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0';
  assert.deepEqual(next(daily, { after: BEFORE_GAP, most: 2 }), ['2027-03-28 03:00', '2027-03-29 02:30']);
  assert.deepEqual(next(daily, { after: BEFORE_FOLD, most: 2 }), ['2027-10-31 02:30', '2027-11-01 02:30']);
  const quarters = 'FREQ=MINUTELY;INTERVAL=15;BYHOUR=2;BYSECOND=0';
  const start = 'DTSTART:20270101T000000\nRRULE:';
  assert.deepEqual(next(start + quarters, { after: BEFORE_GAP, most: 2 }), ['2027-03-28 03:00', '2027-03-29 02:00']);
  assert.deepEqual(next(start + quarters, { after: BEFORE_FOLD, most: 5 }).at(-1), '2027-11-01 02:00');
});

test('hours and minutes without BYHOUR follow real time', () => {
  const hours = 'DTSTART:20270101T000000\nRRULE:FREQ=HOURLY;INTERVAL=';
  const distances = (rule: string, after: number) => {
    const { next: following } = compileRule(rule, BERLIN, ANCHOR);
    const found = [following(after)!];
    for (let step = 0; step < 12; step++) found.push(following(found.at(-1)!)!);
    return [...new Set(found.slice(1).map((at, index) => (at - found[index]!) / 3_600_000))];
  };
  for (const after of [BEFORE_GAP, BEFORE_FOLD])
    for (const interval of [1, 2, 5, 24])
      assert.deepEqual(distances(hours + interval, after), [interval], `${interval}`);
});

test('in Lord Howe, whose change is half an hour, an hourly rule keeps its minute as cron does', () => {
  const zone = 'Australia/Lord_Howe';
  const rule = compileRule('DTSTART:20270101T001500\nRRULE:FREQ=HOURLY', zone, ANCHOR);
  const cron = compileSchedule('15 * * * *', zone, ANCHOR);
  for (const change of ['2027-04-03T12:00:00Z', '2027-10-02T12:00:00Z'])
    for (let at = Date.parse(change), step = 0; step < 12; step++) {
      assert.equal(rule.next(at), cron.next(at));
      at = rule.next(at)!;
    }
});

test('COUNT counts from the start, however far the first occurrence is', () => {
  const rule = 'DTSTART:20181230T053729\nRRULE:FREQ=YEARLY;INTERVAL=6;BYWEEKNO=45,44,-49;BYMONTHDAY=7;BYDAY=MO;COUNT=1';
  assert.deepEqual(next(rule, { after: Date.parse('2040-08-03T22:18:18Z') }), ['2072-11-07 05:37:29']);
});

test('COUNT of a rule that follows real time counts the repeated hour', () => {
  const rule = 'DTSTART:20271031T000000\nRRULE:FREQ=HOURLY;COUNT=5';
  const expected = ['2027-10-31 00:00', '2027-10-31 01:00', '2027-10-31 02:00', '2027-10-31 02:00', '2027-10-31 03:00'];
  assert.deepEqual(next(rule, { after: BEFORE_FOLD, most: 9 }), expected);
});

const refused = (rrule: string, expected: RegExp, zone = BERLIN) =>
  assert.throws(
    () => void compileRule(rrule, zone, ANCHOR).shortestIntervalMs,
    (error) => {
      assert.ok(error instanceof ReveilleError && error.code === 'invalid_request', String(error));
      assert.match(error.message, expected);
      return true;
    },
  );

test('errors name the field, the line, the value and the remedy', () => {
  refused('nonsense', /^rrule: a line must begin with RRULE, DTSTART, RDATE, EXDATE; write .* \(got "nonsense"\)$/);
  refused('RRULE:FREQ=DAILY\nEXRULE:FREQ=DAILY', /^rrule: line 2: a line must begin with RRULE/);
  refused('FREQ=FORTNIGHTLY', /FREQ must be one of SECONDLY, .* \(it is "FORTNIGHTLY"\)/);
  refused('INTERVAL=2', /a line must begin/);
  refused('RRULE:INTERVAL=2', /FREQ must be one of .* \(it is nothing\)/);
  refused('FREQ=DAILY;INTERVAL=0', /INTERVAL must be a whole number from 1 to 1000000 \(it is "0"\)/);
  refused('FREQ=DAILY;BYHOUR=24', /BYHOUR takes whole numbers from 0 to 23/);
  refused('FREQ=DAILY;BYSECOND=60', /BYSECOND takes whole numbers from 0 to 59/);
  refused('FREQ=MONTHLY;BYMONTHDAY=0', /BYMONTHDAY takes whole numbers from 1 to 31 or -31 to -1/);
  refused('FREQ=WEEKLY;BYMONTHDAY=1', /BYMONTHDAY is not for FREQ=WEEKLY; use .*MONTHLY or YEARLY/);
  refused('FREQ=MONTHLY;BYWEEKNO=1', /BYWEEKNO is not for FREQ=MONTHLY; use YEARLY/);
  refused('FREQ=WEEKLY;BYDAY=2MO', /BYDAY=2MO needs FREQ=MONTHLY or FREQ=YEARLY .*; write MO without a number/);
  refused('FREQ=WEEKLY;BYDAY=Mon', /BYDAY takes MO, TU, .* \(it is "MON"\)/);
  refused('FREQ=DAILY;BYSETPOS=1', /BYSETPOS selects from the days or times of other parts/);
  refused('FREQ=DAILY;COUNT=2;UNTIL=20270101', /COUNT and UNTIL exclude each other/);
  refused('FREQ=DAILY;FREQ=DAILY', /FREQ occurs twice/);
  refused('FREQ=DAILY;SKIP=FORWARD', /"SKIP=FORWARD" is no part of a rule; parts are FREQ, INTERVAL/);
  refused('FREQ=DAILY;UNTIL=20270230', /UNTIL must be a date and time such as .* \(it is "20270230"\)/);
  refused(
    'DTSTART;TZID=Asia/Tokyo:20260101T100000\nRRULE:FREQ=DAILY',
    /DTSTART is in zone "Asia\/Tokyo", but timezone is "Europe\/Berlin"; set timezone/,
  );
  refused('DTSTART:20260101T100000', /a rule is missing/);
  refused('FREQ=DAILY', /^timezone "Berlin" is not an IANA zone; did you mean "Europe\/Berlin"/, 'Berlin');
  const hours = Array.from({ length: 24 }, (_, hour) => hour).join();
  const sixty = Array.from({ length: 60 }, (_, minute) => minute).join();
  refused(`FREQ=DAILY;BYHOUR=${hours};BYMINUTE=${sixty};BYSECOND=0,30`, /name 2880 times of a day; name at most 1500/);
});

test('a rule whose next occurrence takes too much work is refused', () => {
  refused('FREQ=SECONDLY;INTERVAL=8639;BYHOUR=9;BYMINUTE=0;BYSECOND=0', /takes too much work to find/);
});

test('a rule that never fires has no next occurrence, and says so quickly', () => {
  const began = performance.now();
  for (const rule of [
    'FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30',
    'FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3',
    'FREQ=SECONDLY;INTERVAL=4;BYSECOND=53',
    'FREQ=MINUTELY;BYHOUR=9;BYMONTH=4;BYMONTHDAY=31',
    'DTSTART:20200101T000000\nRRULE:FREQ=DAILY;COUNT=5',
    'FREQ=DAILY;UNTIL=20260101',
  ])
    assert.equal(compileRule(rule, 'UTC', Date.parse('2026-11-27T14:00:04Z')).next(ANCHOR), undefined, rule);
  assert.ok(performance.now() - began < 2_000);
});

test('the shortest distance of a rule is known, whatever the clock changes', () => {
  const shortest = (rule: string) => compileRule(rule, BERLIN, ANCHOR).shortestIntervalMs;
  assert.equal(shortest('FREQ=SECONDLY'), 1_000);
  assert.equal(shortest('FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,1;BYSECOND=0'), 60_000);
  assert.equal(shortest('FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0;BYSECOND=5'), 3_600_000);
  assert.equal(shortest('FREQ=DAILY'), DAY_MS);
  assert.equal(shortest('FREQ=MINUTELY;INTERVAL=1440'), DAY_MS);
  assert.equal(shortest('RRULE:FREQ=WEEKLY\nRRULE:FREQ=DAILY;INTERVAL=3'), DAY_MS);
  assert.equal(shortest('DTSTART:20270101T100000\nRRULE:FREQ=DAILY\nRDATE:20270105T100002'), 2_000);
});

const RULES = [
  'FREQ=DAILY;BYHOUR=0,1,2,3;BYMINUTE=0,20,40;BYSECOND=0',
  'FREQ=HOURLY',
  'FREQ=HOURLY;INTERVAL=5;BYMINUTE=10,50',
  'FREQ=MINUTELY;INTERVAL=25',
  'FREQ=MINUTELY;INTERVAL=7;BYHOUR=1,2',
  'FREQ=MINUTELY;INTERVAL=30;BYDAY=SA,SU',
  'FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;BYHOUR=2;BYMINUTE=30;BYSECOND=0',
  'FREQ=MONTHLY;BYDAY=-1SU;BYHOUR=1,2,3;BYMINUTE=15,45',
  'FREQ=YEARLY;BYMONTH=3,10;BYDAY=SU;BYSETPOS=-1,-2;BYHOUR=2;BYMINUTE=30',
  'FREQ=DAILY;BYHOUR=2,3\nRRULE:FREQ=HOURLY;INTERVAL=3\nEXDATE;VALUE=DATE:20270328',
];
const ZONES = [
  ...['UTC', 'America/New_York', BERLIN, 'Australia/Lord_Howe', 'Pacific/Apia', 'Africa/Casablanca'],
  ...['America/Santiago', 'Asia/Beirut', 'Antarctica/Troll'],
];

/** Clock changes of a zone from 2008 to 2030, as the last instants before them. */
function changesOf(zone: string): number[] {
  const changes: number[] = [];
  for (let span = zoneOf(zone).spanAt(Date.UTC(2008, 0, 1)); span.end < Date.UTC(2030, 0, 1); ) {
    const following = zoneOf(zone).spanAt(span.end);
    if (following.offset !== span.offset) changes.push(span.end - 1);
    span = following;
  }
  return changes.length > 0 ? changes : [Date.UTC(2027, 2, 28)];
}

const CHANGES = new Map(ZONES.map((zone) => [zone, changesOf(zone)]));

test('over clock changes, instants strictly increase, each wall time fires once, and counts are exact', () => {
  const property = fc.property(
    fc.constantFrom(...RULES),
    fc.constantFrom(...ZONES),
    fc.nat(),
    fc.integer({ min: 0, max: 3 * DAY_MS }),
    (rule, zone, which, before) => {
      const changes = CHANGES.get(zone)!;
      const after = changes[which % changes.length]! - before;
      const schedule = compileRule(`DTSTART:20070101T003000\nRRULE:${rule}`, zone, ANCHOR);
      const found: number[] = [];
      for (let at = schedule.next(after); at !== undefined && at < after + 5 * DAY_MS; at = schedule.next(at)) {
        assert.ok(at > (found.at(-1) ?? after), 'instants increase');
        assert.equal(schedule.next(at - 1), at, 'an occurrence is found from just before it');
        found.push(at);
      }
      for (const end of [0, 1, Math.floor(found.length / 2), found.length - 1])
        if (found[end] !== undefined) {
          assert.deepEqual(schedule.latest(after, found[end]), { at: found[end], count: end + 1 });
          assert.equal(schedule.latest(after, found[end] - 1)?.count ?? 0, end);
        }
      const readings = found.map((at) => at + zoneOf(zone).spanAt(at).offset);
      const isFixed = !/HOURLY|MINUTELY/.test(rule) || rule.includes('INTERVAL=7;BYHOUR');
      if (isFixed) assert.equal(new Set(readings).size, readings.length, 'no wall time fires twice');
    },
  );
  fc.assert(property, { numRuns: 600 });
});

test('an alarm by a rule is checked when it is set, and its view has the start of the rule', () => {
  const body = { kind: 'rrule', timezone: BERLIN };
  const message = (rrule: string) => {
    try {
      setAlarm({ ...body, rrule });
      return 'set';
    } catch (error) {
      assert.ok(error instanceof ReveilleError && error.code === 'invalid_request', String(error));
      return error.message;
    }
  };
  assert.match(
    message('FREQ=SECONDLY'),
    /^rrule must leave at least 10 seconds between two occurrences \(got "FREQ=SECONDLY"\)$/,
  );
  assert.match(message('FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30'), /^rrule never fires again \(got "FREQ=YEARLY;/);
  assert.match(message('DTSTART:20200101T100000\nRRULE:FREQ=DAILY;UNTIL=20200131'), /^rrule never fires again/);
  assert.match(message('FREQ=DAILY;BYDAY=MONDAY'), /^rrule: BYDAY takes MO, TU/);
  assert.throws(() => setAlarm({ kind: 'cron', rrule: 'FREQ=DAILY' }), /rrule is only for kind "rrule"/);
  const state = setAlarm({ ...body, rrule: `FREQ=DAILY;${AT_TEN}`, max_fires: 3 });
  const view = viewAlarm(state);
  assert.deepEqual(
    [view.kind, view.rrule, view.cron_expr, view.starts_at, view.next_fire_at],
    ['rrule', `FREQ=DAILY;${AT_TEN}`, undefined, '2026-06-15T08:10:00.000Z', '2026-06-16T08:00:00.000Z'],
  );
  assert.equal(viewAlarm(setAlarm({ kind: 'cron', cron_expr: '@daily' })).starts_at, undefined);
});

test('an edit of the rule restarts it at the edit', () => {
  const state = setAlarm({ kind: 'rrule', rrule: 'FREQ=HOURLY;INTERVAL=6' });
  const later = edit(state, { rrule: 'FREQ=HOURLY;INTERVAL=6;COUNT=2' }, NOW + 3_600_000);
  assert.equal(scheduled(later).nominal, NOW + 7 * 3_600_000);
});

test('work is bounded, of all rules and spans between clock changes together', () => {
  const never = 'RRULE:FREQ=HOURLY;BYMONTHDAY=1,29;BYYEARDAY=366,-1;BYDAY=FR;BYMINUTE=22;BYSECOND=8';
  const begun = performance.now();
  for (const rules of [`${never}\nRRULE:FREQ=DAILY`, `RRULE:FREQ=DAILY\n${never}`])
    assert.throws(() => setAlarm({ kind: 'rrule', rrule: rules }), /takes too much work to find/, rules);
  // Without a bound these take minutes.
  assert.ok(performance.now() - begun < 20_000);
});

test('a rule has no occurrence in a period that is beyond the calendar', () => {
  const rrule = 'FREQ=YEARLY;INTERVAL=999983;BYMONTH=9,1;BYHOUR=10;BYMINUTE=0;BYSECOND=0;BYSETPOS=2';
  const { alarm, occurrences } = setAlarm({ kind: 'rrule', rrule });
  assert.equal(new Date(occurrences[0]!.nominal).toISOString(), '2026-09-15T10:00:00.000Z');
  assert.equal(seriesOf(alarm).next(occurrences[0]!.nominal), undefined);
});

test('a zone of DTSTART that does not exist is named', () => {
  const rrule = 'DTSTART;TZID=W. Europe Standard Time:20270101T090000\nRRULE:FREQ=DAILY';
  assert.throws(
    () => setAlarm({ kind: 'rrule', rrule, timezone: 'Europe/Berlin' }),
    /DTSTART is in zone "W. Europe Standard Time", which is not an IANA zone; omit TZID, and set timezone/,
  );
});

test('dates of RDATE are found and counted', () => {
  const days = Array.from({ length: 200 }, (_, index) => NOW + (index + 1) * 86_400_000);
  const text = days.map((at) => new Date(at).toISOString().replace(/[-:]|\.\d+Z$/g, '')).join(',');
  const series = compileRule(`RDATE:${text}`, 'UTC', NOW);
  assert.deepEqual(
    [series.next(NOW), series.next(days[99]!), series.next(days[199]!)],
    [days[0], days[100], undefined],
  );
  assert.deepEqual(series.latest(days[9]!, days[49]!), { at: days[49], count: 40 });
  assert.equal(series.latest(days[9]!, days[9]! + 1), undefined);
});
