import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortIds } from '../../kit/text/short-ids.ts';
import type { AlarmView, FireView } from '../../wire/alarm.ts';
import { RawJson } from '../../wire/json.ts';
import { textWidth } from './columns.ts';
import { preview, type Reader, renderAlarm, renderAlarms, renderCreated, renderEvent, renderFires } from './render.ts';

const look: Reader = {
  now: Date.parse('2026-06-15T12:00:00Z'),
  zone: 'Europe/Berlin',
  width: 80,
  paint: (_style, text) => text,
};

const once: AlarmView = {
  id: '019ed2b4-7c11-7000-8000-000000000001',
  label: 'build',
  kind: 'once',
  fire_at: '2026-06-15T12:10:00.000Z',
  next_fire_at: '2026-06-15T12:10:00.000Z',
  wake_message: 'Look at the build',
  status: 'active',
  max_failures: 100,
  failure_count: 0,
  created_at: '2026-06-15T11:55:00.000Z',
  fire_count: 0,
  in_flight: false,
};
const { fire_at: _at, ...timeless } = once;
const series: AlarmView = {
  ...timeless,
  id: '019ed2b4-7c12-7000-8000-000000000002',
  label: '',
  kind: 'cron',
  cron_expr: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  next_fire_at: '2026-06-16T07:00:00.000Z',
  wake_message: 'Stand-up: what was done yesterday, what comes today, what is in the way?',
  failure_count: 2,
  last_error: 'the router answered 503',
};
const { next_fire_at: _next, ...resting } = once;
const over: AlarmView = {
  ...resting,
  id: '019ed2b4-7c13-7000-8000-000000000003',
  status: 'fired',
  last_fired_at: '2026-06-15T09:00:00.000Z',
  fire_count: 1,
};

/** A list without omissions. */
const everything = { left: 0, history: 'shown' } as const;

test('setting an alarm prints its due time, from now and on the local clock', () => {
  const created = { id: once.id, status: 'active', next_fire_at: once.next_fire_at!, deduped: false } as const;
  assert.deepEqual(renderCreated(created, { ...look, now: look.now + 2000 }), [
    'Set 019ed2b4-7c11-7000-8000-000000000001',
    '  fires in 9 min 58 s, 14:10:00 CEST',
  ]);
});

test('a series with an interval has no zone', () => {
  const scheduleOf = (alarm: AlarmView) => renderAlarm(alarm, look).find((line) => line.includes('schedule'));
  assert.match(
    scheduleOf({ ...series, cron_expr: '@every 90s', timezone: 'UTC' })!,
    /schedule +every 1 min 30 s \(@every 90s\)$/,
  );
  assert.match(
    scheduleOf({ ...series, cron_expr: '@daily', timezone: 'UTC' })!,
    /schedule +every day at 00:00 in UTC \(@daily\)$/,
  );
});

test('an alarm that was set before by the same key says so', () => {
  const [first, second] = renderCreated({ id: once.id, status: 'fired', deduped: true }, look);
  assert.match(first!, /^Already set/);
  assert.equal(second, '  it is fired');
});

test('a list is aligned, shows an error below its alarm, and names the time zone', () => {
  assert.deepEqual(renderAlarms([over, series, once], everything, look), [
    'ID             STATUS  SCHEDULE        FIRES      AT            MESSAGE',
    '019ed2b4-7c13  fired   once            3 h ago    11:00:00      build: Look at…',
    '019ed2b4-7c12  active  weekdays 09:00  in 19 h    16 Jun 09:00  Stand-up: what…',
    '               2 failed attempts of 100, the last one: the router answered 503',
    '019ed2b4-7c11  active  once            in 10 min  14:10:00      build: Look at…',
    '',
    '3 alarms. Times in Europe/Berlin (CEST).',
  ]);
});

test('a rule has words where it is simple, and a missing calendar is named', () => {
  const rrule = 'DTSTART:20260615T100000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYSECOND=0';
  const rule: AlarmView = { ...series, kind: 'rrule', cron_expr: undefined, rrule, timezone: 'UTC' };
  const lines = renderAlarm({ ...rule, holidays: 'office', holidays_missing: true }, look).join('\n');
  assert.match(lines, /schedule +every 2 weeks on Monday at 10:00 from 2026-06-15 in UTC/);
  assert.match(lines, /calendar +office is missing: it fires on all days/);
  const ended = renderAlarm({ ...rule, holidays: 'office', holidays_ended: '2026-12-26' }, look).join('\n');
  assert.match(ended, /calendar +office has ended, its last day was 2026-12-26: it fires on all days/);
  const list = renderAlarms([rule], everything, look).join('\n');
  assert.match(list, /every 2 weeks on Monday at 10:00 from 2026-06-15 in UTC$/m);
  assert.doesNotMatch(list, /FREQ/, 'the words are enough');
});

test('the fires of a backfill that still wait are shown', () => {
  const left = { first: '2026-06-01T07:00:00.000Z', last: '2026-06-05T07:00:00.000Z' };
  const rowOf = (backfill_left: AlarmView['backfill_left']) =>
    renderAlarm({ ...series, ...(backfill_left && { backfill_left }) }, { ...look, width: 200 }).find((line) =>
      line.includes('backfill'),
    );
  assert.match(rowOf(left)!, /fires for Mon 1 Jun 09:00 to Fri 5 Jun 09:00, one after another$/);
  assert.match(rowOf({ ...left, last: left.first })!, /fires now for Mon 1 Jun 09:00$/);
  assert.equal(rowOf(undefined), undefined);
});

test('a schedule without a description is shown as its expression, and completely below when it is long', () => {
  const odd = { ...series, failure_count: 0, last_error: undefined, cron_expr: '*/7 9-17 1,15 * 1-5' } as AlarmView;
  const [, line, below] = renderAlarms([odd], everything, look);
  assert.match(line!, / {2}\*\/7 9-17 1,15 \* 1… {2}/);
  assert.equal(below, '               */7 9-17 1,15 * 1-5 in Europe/Berlin');
  const far = { ...series, failure_count: 0, last_error: undefined, timezone: 'America/New_York' } as AlarmView;
  const lines = renderAlarms([far, series], everything, look);
  assert.match(lines[2]!, /every weekday at 09:00 in America\/New_York \(0 9 \* \* 1-5\)/);
  for (const each of lines) assert.ok(textWidth(each) <= 80, each);
});

test('a series is confirmed with its next three instants, in a zone or without', () => {
  const created = {
    id: series.id,
    status: 'active',
    next_fire_at: '2026-06-15T14:00:00.000Z',
    deduped: false,
  } as const;
  const rings = [14, 16, 18].map((hour) => Date.UTC(2026, 5, 15, hour));
  assert.deepEqual(renderCreated(created, look, { every: 'every 2 h', rings }).slice(1), [
    '  a series: every 2 h',
    '  fires in 2 h: Mon 15 Jun 16:00, then Mon 15 Jun 18:00, then Mon 15 Jun 20:00',
  ]);
});

test('an incomplete list says how to see the rest, and an empty one says that it is empty', () => {
  assert.equal(
    renderAlarms([once], { left: 3, history: 'hidden' }, look).at(-1),
    '1 alarm, 3 more with --limit 4; --all includes finished ones. Times in Europe/Berlin (CEST).',
  );
  assert.deepEqual(renderAlarms([], everything, look), ['No alarms.']);
  assert.deepEqual(renderAlarms([], { left: 0, history: 'hidden' }, look), [
    'No active alarms; --all includes finished ones.',
  ]);
});

test('a deferred alarm shows the reason, in the list and on its own', () => {
  const reason = 'held back: quiet hours of this user until 07:00 Europe/Berlin';
  const held = { ...once, urgent: true, held_back: { reason, until: '2026-06-16T05:00:00.000Z' } };
  assert.equal(renderAlarms([held], everything, look)[2]?.trim(), reason);
  const shown = renderAlarm(held, look).join('\n');
  assert.match(shown, /waits +held back: quiet hours of this user until 07:00/);
  assert.match(shown, /urgent +yes: quiet hours do not defer it/);
});

test('an alarm in delivery and an overdue one are marked', () => {
  const lines = renderAlarms(
    [
      { ...once, in_flight: true },
      { ...once, id: series.id, next_fire_at: '2026-06-15T11:59:00.000Z' },
    ],
    everything,
    look,
  );
  assert.match(lines[1]!, /fires now/);
  assert.match(lines[2]!, /is due +13:59:00/);
});

test('no line of a list is wider than the terminal, and none contains control characters', () => {
  const nasty: AlarmView = {
    ...series,
    label: '\u001b[2J日本語\n',
    wake_message: `\u0007\u202e${'日本語'.repeat(10_000)}`,
    last_error: `\u001b]0;title\u0007${'x'.repeat(1000)}`,
  };
  for (const width of [72, 80, 120]) {
    for (const line of renderAlarms([nasty, once], everything, { ...look, width })) {
      assert.ok(textWidth(line) <= width, line);
      assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f\u202e]/);
    }
  }
});

test('ids are shortened to a unique prefix, never below the millisecond that they contain', () => {
  const same = ['019ed2b4-7c11-7000-8000-000000000001', '019ed2b4-7c11-7000-9000-000000000001'];
  assert.deepEqual(
    [...shortIds([...same, over.id]).values()],
    ['019ed2b4-7c11-7000-8', '019ed2b4-7c11-7000-9', '019ed2b4-7c13'],
  );
  assert.deepEqual([...shortIds([]).values()], []);
});

test('a preview puts label and message on one line', () => {
  assert.equal(preview({ label: '', wake_message: 'a\nb' }), 'a\\nb');
  assert.equal(preview({ label: 'x', wake_message: 'a' }), 'x: a');
  assert.ok(preview({ label: '', wake_message: 'a'.repeat(100_000) }).length < 1000);
});

test('an alarm is shown with its schedule, its limits, its message and its unchanged payload', () => {
  const lines = renderAlarm(
    {
      ...series,
      payload: new RawJson('{"n": 12345678901234567890}'),
      wake_message: 'first\n  second\u0007',
      conversation_id: 'chat-1',
      idempotency_key: 'standup',
      max_lateness_seconds: 300,
      jitter_seconds: 30,
      max_fires: 5,
      fire_count: 2,
      last_fired_at: '2026-06-15T07:00:00.000Z',
    },
    look,
  );
  assert.deepEqual(lines, [
    'Alarm 019ed2b4-7c12-7000-8000-000000000002',
    '  status        active',
    '  fires         in 19 h, 2026-06-16 09:00:00 CEST',
    '  schedule      every weekday at 09:00 in Europe/Berlin (0 9 * * 1-5)',
    '  at most       5 times',
    '  jitter        up to 30 s',
    '  lateness      at most 5 min',
    '  conversation  chat-1',
    '  key           standup',
    '  set           5 min ago, 13:55:00 CEST',
    '  has fired     2 times of 5, the last 5 h ago, 09:00:00 CEST',
    '  trouble       2 failed attempts of 100, the last one: the router answered 503',
    '',
    'Message',
    '  first',
    '    second\\u0007',
    '',
    'Payload',
    '  {"n": 12345678901234567890}',
  ]);
});

const fire: FireView = {
  fire_id: `${once.id}@1781524200000`,
  scheduled_for: '2026-06-15T12:10:00.000Z',
  attempt: 1,
  started_at: '2026-06-15T12:10:00.012Z',
  finished_at: '2026-06-15T12:10:00.050Z',
  lateness_ms: 12,
  outcome: 'delivered',
  http_status: 202,
};

test('the ledger has a line for each attempt with its error below', () => {
  const failed: FireView = {
    ...fire,
    attempt: 2,
    outcome: 'failed',
    http_status: 503,
    error: 'no\nluck',
    missed_count: 3,
  };
  assert.deepEqual(renderFires([failed, fire], false, look), [
    '',
    'Fires, latest first',
    '  DUE       ATTEMPT  OUTCOME         STARTED     TOOK',
    '  14:10:00  2        failed (503)    12 ms late  38 ms',
    '      3 earlier occurrences were missed',
    '      no\\nluck',
    '  14:10:00  1        accepted (202)  12 ms late  38 ms',
  ]);
  assert.deepEqual(renderFires([], false, look), ['', 'It has not fired yet.']);
  assert.equal(renderFires([fire], true, look)[1], 'Fires, the 1 latest attempts');
});

test('an event is one line: when, event, alarm, lateness', () => {
  assert.deepEqual(renderEvent(once, fire, look), [
    '14:10:00  fired    019ed2b4-7c11  12 ms late  build: Look at the build',
  ]);
  const failed = renderEvent(once, { ...fire, attempt: 3, outcome: 'failed', error: 'the router answered 503' }, look);
  assert.deepEqual(failed, [
    '14:10:00  failed   019ed2b4-7c11  12 ms late, attempt 3  build: Look at the bui…',
    '          the router answered 503',
  ]);
});
