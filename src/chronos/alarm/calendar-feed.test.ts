import assert from 'node:assert/strict';
import { test } from 'node:test';
import ICAL from 'ical.js';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { AlarmState } from './alarm.ts';
import { type CalendarFeedOptions, calendarFeed } from './calendar-feed.ts';
import { seriesOf } from './series.ts';
import { NOW, setAlarm } from './testing/alarm-state.ts';

const IN_AN_HOUR = formatInstant(NOW + 3_600_000);
let made = 0;
/** An alarm with an id of its own. */
function alarm(body: Parameters<typeof setAlarm>[0]): AlarmState {
  const { alarm: given, occurrences } = setAlarm(body);
  const id = `01977777-0000-7000-8000-${String(++made).padStart(12, '0')}`;
  return { alarm: { ...given, id }, occurrences: occurrences.map((one) => ({ ...one, alarmId: id })) };
}
function feed(states: readonly AlarmState[], messages = false): Promise<string> {
  const options: CalendarFeedOptions = { now: NOW, calendars: undefined, messages, owner: 'ada' };
  return calendarFeed(states, options, () => Promise.resolve());
}

/** The events by the independent reader. */
function read(text: string) {
  const calendar = new ICAL.Component(ICAL.parse(text));
  // Each zone counts only as it is described in the file.
  ICAL.TimezoneService.reset();
  for (const zone of calendar.getAllSubcomponents('vtimezone')) ICAL.TimezoneService.register(zone);
  const events = calendar.getAllSubcomponents('vevent').map((event) => new ICAL.Event(event));
  return { calendar, events };
}
/** The first occurrences of an event, epoch ms. */
function occurrences(event: ICAL.Event, most: number): number[] {
  if (!event.isRecurring()) return [event.startDate.toJSDate().getTime()];
  const expansion = event.iterator();
  const found: number[] = [];
  for (let next = expansion.next(); next && found.length < most; next = expansion.next())
    found.push(next.toJSDate().getTime());
  return found;
}
function following(state: AlarmState, most: number): number[] {
  const series = seriesOf(state.alarm);
  const found: number[] = [];
  for (let at = series.next(NOW); at !== undefined && found.length < most; at = series.next(at)) found.push(at);
  return found;
}

const cron = (cron_expr: string, timezone?: string, more: object = {}) => ({
  ...{ kind: 'cron' as const, cron_expr, timezone, wake_message: 'm', label: cron_expr, ...more },
});
const rule = (rrule: string, timezone?: string, more: object = {}) => ({
  ...{ kind: 'rrule' as const, rrule, timezone, wake_message: 'm', label: rrule, ...more },
});

/** Series that one rule says, with their rules. None has a time that the clock skips or shows twice. */
const SAID = [
  [cron('0 9 * * *'), 'FREQ=DAILY'],
  [cron('30 7 * * 1-5', 'Europe/Berlin'), 'FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR'],
  [cron('15 14 1,15 * *', 'America/New_York'), 'FREQ=MONTHLY;BYMONTHDAY=1,15'],
  [cron('0 12 24 12 *', 'Europe/London'), 'FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24'],
  [cron('0 8 * 1,7 0', 'Australia/Sydney'), 'FREQ=WEEKLY;BYMONTH=1,7;BYDAY=SU'],
  [cron('45 23 * 2 *', 'Asia/Kathmandu'), 'FREQ=DAILY;BYMONTH=2'],
  [cron('0 20 * * *', 'America/Santiago'), 'FREQ=DAILY'],
  [cron('0 6 31 * *', 'Africa/Casablanca'), 'FREQ=MONTHLY;BYMONTHDAY=31'],
  [rule('RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;BYHOUR=10;BYMINUTE=0;BYSECOND=0', 'Europe/Berlin'), undefined],
  [
    rule('DTSTART:20260131T090000\nRRULE:FREQ=MONTHLY;INTERVAL=2', 'Europe/Paris'),
    'FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=31',
  ],
  [rule('RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=30;BYSECOND=0', 'America/Los_Angeles'), undefined],
  [rule('DTSTART:20240229T120000\nRRULE:FREQ=YEARLY', 'Asia/Tokyo'), 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29'],
  [rule('DTSTART:20260601T110000\nRRULE:FREQ=DAILY;INTERVAL=3', 'Pacific/Auckland'), 'FREQ=DAILY;INTERVAL=3'],
] as const;

for (const [body, expected] of SAID)
  test(`${body.label.replace('\n', ' ')} in ${body.timezone ?? 'UTC'} is one event with a rule`, async () => {
    const state = alarm(body);
    const { events } = read(await feed([state]));
    assert.equal(events.length, 1);
    const [event] = events;
    if (expected !== undefined) assert.equal(event!.component.getFirstPropertyValue('rrule')?.toString(), expected);
    // Over more than two changes of the clock.
    const most = /YEARLY|31 \* \*|24 12/.test(body.label) ? 12 : 120;
    const [theirs, ours] = [occurrences(event!, most), following(state, most)].map((list) => list.slice(0, 60));
    assert.deepEqual(theirs!.map(formatInstant), ours!.map(formatInstant));
    const far = [occurrences(event!, most).at(-1), following(state, most)[occurrences(event!, most).length - 1]];
    assert.equal(far[0], far[1]);
  });

test('the end of a series is in its rule', async () => {
  const ends = async (body: ReturnType<typeof cron> | ReturnType<typeof rule>) => {
    const state = alarm(body);
    const { events } = read(await feed([state]));
    return events.flatMap((event) => occurrences(event, 100)).map(formatInstant);
  };
  const berlin = 'Europe/Berlin';
  const until = await ends(cron('0 9 * * *', berlin, { ends_at: '2026-06-18T07:00:00Z' }));
  assert.deepEqual(until, ['2026-06-16T07:00:00.000Z', '2026-06-17T07:00:00.000Z', '2026-06-18T07:00:00.000Z']);
  assert.equal((await ends(cron('0 9 * * *', berlin, { max_fires: 4 }))).length, 4);
  assert.equal((await ends(cron('0 9 * * *', berlin, { max_fires: 4, ends_at: '2026-06-17T12:00:00Z' }))).length, 2);
  assert.equal((await ends(rule('RRULE:FREQ=DAILY;COUNT=5;BYHOUR=9;BYMINUTE=0;BYSECOND=0', berlin))).length, 5);
  const counted = alarm(rule('RRULE:FREQ=DAILY;COUNT=1000;BYHOUR=9;BYMINUTE=0;BYSECOND=0', berlin));
  assert.equal(read(await feed([counted])).events.length, 50, 'an end that takes work to find is not searched for');
  const atNoon = await ends(rule('RRULE:FREQ=DAILY;UNTIL=20260617T070000Z;BYHOUR=9;BYMINUTE=0;BYSECOND=0', berlin));
  assert.equal(atNoon.length, 2);
  const dated = await ends(rule('RRULE:FREQ=DAILY;UNTIL=20260617;BYHOUR=9;BYMINUTE=0;BYSECOND=0', berlin));
  assert.deepEqual(dated, ['2026-06-16T07:00:00.000Z', '2026-06-17T07:00:00.000Z']);
});

test('any other series has its next fires as single events, bounded', async () => {
  const states = [
    cron('*/5 * * * *'),
    cron('@every 90s'),
    cron('0 9,17 * * *', 'Europe/Berlin'),
    cron('0 9 1 * 1', 'Europe/Berlin'),
    rule('RRULE:FREQ=HOURLY;INTERVAL=5', 'Europe/Berlin'),
    rule('RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0\nEXDATE:20260618T090000', 'Europe/Berlin'),
  ].map(alarm);
  for (const state of states) {
    const { events } = read(await feed([state]));
    assert.ok(events.length > 1 && events.length <= 50, `${state.alarm.label}: ${events.length}`);
    const starts = events.flatMap((event) => occurrences(event, 1));
    assert.deepEqual(starts, following(state, starts.length), state.alarm.label);
    assert.equal(new Set(events.map(({ uid }) => uid)).size, events.length);
  }
  const many = Array.from({ length: 100 }, () => alarm(cron('*/5 * * * *')));
  assert.equal(read(await feed(many)).events.length, 2000);
});

test('an event has a stable name, its changes, and only the label of the alarm', async () => {
  const state = alarm({
    ...{
      kind: 'once',
      fire_at: IN_AN_HOUR,
      wake_message: 'the password is hunter2\nsecond',
      label: 'Call; Bob, \\o/',
    },
    payload: '{"key":"s3cret"}',
  });
  const text = await feed([state]);
  assert.doesNotMatch(text, /hunter2|s3cret/);
  const [event] = read(text).events;
  assert.equal(event!.summary, 'Call; Bob, \\o/');
  assert.equal(event!.uid, `${state.alarm.id}@reveille`);
  assert.equal(event!.sequence, 0);
  assert.equal(event!.startDate.toJSDate().getTime(), NOW + 3_600_000);
  const later = { ...state, alarm: { ...state.alarm, updatedAt: NOW + 60_000 } };
  const [changed] = read(await feed([later])).events;
  assert.deepEqual([changed!.uid, changed!.sequence], [event!.uid, 60]);
  assert.equal(String(changed!.component.getFirstPropertyValue('last-modified')), '2026-06-15T08:11:00Z');

  const whole = await feed([state], true);
  assert.equal(read(whole).events[0]!.description, 'the password is hunter2\nsecond');
  assert.doesNotMatch(whole, /s3cret/);
  const unnamed = alarm({ kind: 'once', fire_at: IN_AN_HOUR, wake_message: 'secret plan' });
  assert.equal(read(await feed([unnamed])).events[0]!.summary, 'Alarm');
  assert.equal(read(await feed([unnamed], true)).events[0]!.summary, 'secret plan');
});

test('lines are folded, texts are escaped, and nothing in a label begins a line of its own', async () => {
  const labels = [
    'x'.repeat(200),
    '€'.repeat(200),
    '🦘'.repeat(100),
    'a\r\nEND:VEVENT\rBEGIN:X',
    '\u0000\u0007\u001b[31m',
    ':;"\\,',
  ];
  const states = labels.map((label) =>
    alarm({ kind: 'once', fire_at: IN_AN_HOUR, wake_message: 'm', label: label.replaceAll('\0', '') }),
  );
  const text = await feed(states);
  for (const line of text.split('\r\n')) assert.ok(Buffer.byteLength(line) <= 75, line);
  assert.equal(text.replaceAll('\r\n', '').match(/[\r\n]/g), null);
  const { events } = read(text);
  assert.equal(events.length, labels.length);
  assert.deepEqual(
    events.map(({ summary }) => summary),
    [...labels.slice(0, 3), 'a\nEND:VEVENT\nBEGIN:X', '[31m', labels[5]],
  );
});

test('no line break of any reader in a label or a message begins a line of its own', async () => {
  const breaks = ['\r\n', '\n', '\r', '\v', '\f', '\u001c', '\u001d', '\u001e', '\u0085', '\u2028', '\u2029'];
  const given = breaks.map((one) => `a${one}BEGIN:VALARM${one}ATTACH:file:///etc/passwd${one}END:VALARM`);
  const states = given.map((label) => alarm({ kind: 'once', fire_at: IN_AN_HOUR, wake_message: label, label }));
  const text = await feed(states, true);
  const lines = text.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/);
  assert.deepEqual(
    lines.filter((line) => /^(?:BEGIN:VALARM|ATTACH)/.test(line)),
    [],
  );
  assert.equal(read(text).events.length, given.length);
});

test('a calendar without alarms is one, and every calendar has what RFC 5545 asks for', async () => {
  for (const text of [await feed([]), await feed([alarm(cron('0 9 * * *', 'Europe/Berlin'))])]) {
    const { calendar } = read(text);
    assert.equal(calendar.getFirstPropertyValue('version'), '2.0');
    assert.equal(calendar.getFirstPropertyValue('prodid'), '-//Reveille//Upcoming//EN');
    assert.ok(calendar.getAllSubcomponents().length > 0);
    assert.ok(text.endsWith('END:VCALENDAR\r\n'));
  }
});

test('an alarm that waits for events has no event', async () => {
  const waiting = alarm({ event: { source: 'webhook' }, wake_message: 'm', label: 'x' });
  assert.equal(read(await feed([waiting])).events.length, 0);
});
