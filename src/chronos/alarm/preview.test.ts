import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alarmPreviewRequestSchema } from '../../wire/alarm.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Calendars } from './holidays.ts';
import { previewAlarm } from './preview.ts';
import { LIMITS, NOW } from './testing/alarm-state.ts';

const BERLIN = 'Europe/Berlin';
const DAY_MS = 86_400_000;

const preview = (body: Record<string, unknown>, now = NOW, calendars?: Calendars) =>
  previewAlarm(parseOrThrow(alarmPreviewRequestSchema, body), { now, limits: LIMITS, calendars });

const shown = (body: Record<string, unknown>, now = NOW) =>
  preview(body, now).occurrences.map(({ local, note }) => (note === undefined ? local : `${local} ${note}`));

test('a preview has the next occurrences, in UTC and in the zone', () => {
  const answer = preview({ when: 'every other monday at 10', timezone: BERLIN, count: 2 });
  assert.deepEqual(answer, {
    kind: 'rrule',
    text: 'every 2 weeks on Monday at 10:00 from 2026-06-22 in Europe/Berlin',
    timezone: BERLIN,
    reading: {
      text: 'every 2 weeks on Monday at 10:00 from 2026-06-22 in Europe/Berlin',
      timezone: BERLIN,
      next: ['2026-06-22T10:00:00+02:00', '2026-07-06T10:00:00+02:00', '2026-07-20T10:00:00+02:00'],
    },
    occurrences: [
      { at: '2026-06-22T08:00:00.000Z', local: '2026-06-22T10:00:00+02:00' },
      { at: '2026-07-06T08:00:00.000Z', local: '2026-07-06T10:00:00+02:00' },
    ],
    notes: [],
  });
  assert.equal(preview({ kind: 'cron', cron_expr: '@daily' }).occurrences.length, 10);
});

test('a zone that changed its clock in 2026 has the new one, whatever the database of Node', () => {
  const at = (when: string, timezone: string) => preview({ when, timezone }).occurrences[0]!.at;
  assert.equal(at('2026-12-01 09:00', 'America/Winnipeg'), '2026-12-01T14:00:00.000Z');
  assert.equal(at('2026-12-01 09:00', 'America/Inuvik'), '2026-12-01T15:00:00.000Z');
  assert.equal(at('2026-12-01 09:00', 'America/Havana'), '2026-12-01T13:00:00.000Z');
});

test('one time is its only occurrence', () => {
  const { kind, text, occurrences, notes } = preview({ when: 'tomorrow 9am', timezone: BERLIN });
  assert.deepEqual([kind, text, notes], ['once', 'Tue 16 Jun 09:00 in Europe/Berlin', []]);
  assert.deepEqual(
    occurrences.map(({ local }) => local),
    ['2026-06-16T09:00:00+02:00'],
  );
});

test('a time that the clock skips or repeats has a note', () => {
  const spring = Date.UTC(2027, 2, 27);
  const daily = { kind: 'cron', cron_expr: '30 2 * * *', timezone: BERLIN, count: 3 };
  assert.deepEqual(shown(daily, spring), [
    '2027-03-27T02:30:00+01:00',
    '2027-03-28T03:00:00+02:00 the clock skips 02:30 on this day: the first instant after',
    '2027-03-29T02:30:00+02:00',
  ]);
  const rule = 'DTSTART:20270301T023000\nRRULE:FREQ=DAILY;INTERVAL=3';
  assert.deepEqual(shown({ kind: 'rrule', rrule: rule, timezone: BERLIN, count: 2 }, spring), [
    '2027-03-28T03:00:00+02:00 the clock skips 02:30 on this day: the first instant after',
    '2027-03-31T02:30:00+02:00',
  ]);
  const named = rule.replace('DTSTART', `DTSTART;TZID=${BERLIN}`);
  assert.match(shown({ kind: 'rrule', rrule: named, timezone: BERLIN, count: 1 }, spring)[0]!, /the clock skips 02:30/);
  assert.deepEqual(shown({ ...daily, count: 2 }, Date.UTC(2027, 9, 30, 12)), [
    '2027-10-31T02:30:00+02:00 the clock shows 02:30 twice on this day: the first',
    '2027-11-01T02:30:00+01:00',
  ]);
  // A schedule of every hour follows real time: 03:00 is its own time.
  assert.deepEqual(shown({ kind: 'cron', cron_expr: '0 * * * *', timezone: BERLIN, count: 2 }, Date.UTC(2027, 2, 28)), [
    '2027-03-28T03:00:00+02:00',
    '2027-03-28T04:00:00+02:00',
  ]);
});

test('the first instant can be later, and the occurrences before it count', () => {
  const daily = { kind: 'cron', cron_expr: '0 9 * * *', count: 2 };
  assert.deepEqual(shown({ ...daily, from: '2026-07-01T09:00:00Z' }), [
    '2026-07-01T09:00:00+00:00',
    '2026-07-02T09:00:00+00:00',
  ]);
  const limited = preview({ ...daily, from: '2026-06-17T00:00:00Z', max_fires: 3 });
  assert.deepEqual(
    limited.occurrences.map(({ local }) => local),
    ['2026-06-17T09:00:00+00:00'],
  );
  assert.deepEqual(limited.notes, ['the series ends after these']);
});

test('occurrences that a calendar excludes are named', () => {
  const day = Date.UTC(2026, 5, 17) / DAY_MS;
  const calendars = { daysOf: () => [day], names: () => ['club'] };
  const body = { kind: 'cron', cron_expr: '0 9 * * *', holidays: 'club', count: 2 };
  const { occurrences, left_out } = preview(body, NOW, calendars);
  assert.deepEqual(
    occurrences.map(({ local }) => local),
    ['2026-06-15T09:00:00+00:00', '2026-06-16T09:00:00+00:00'],
  );
  assert.deepEqual(left_out, [
    {
      at: '2026-06-17T09:00:00.000Z',
      local: '2026-06-17T09:00:00+00:00',
      note: 'excluded by the calendar club',
    },
  ]);
});

test('other fields are described', () => {
  const { notes } = preview({
    ...{ kind: 'cron', cron_expr: '@hourly', jitter_seconds: 300, catch_up: 'all', catch_up_window_seconds: 7200 },
    ...{ overlap: 'skip', pause_on_failure: true, max_lateness_seconds: 900 },
  });
  assert.deepEqual(notes, [
    'each fires up to 5 min later, by its jitter',
    'after downtime, all overdue occurrences fire',
    'an occurrence that is overdue by more than 2 h is missed',
    'an occurrence is skipped while an earlier turn runs',
    'the series pauses when a fire or its turn fails',
    'an occurrence that is later than 15 min is missed',
  ]);
});

test('an alarm that could not be set has no preview', () => {
  assert.throws(() => preview({ when: 'tomorrow 9am' }), /needs timezone/);
  assert.throws(() => preview({ kind: 'cron', cron_expr: '0 0 30 2 *' }), /no date ever matches/);
  assert.throws(() => preview({ kind: 'cron', cron_expr: '@every 1s' }), /at least 10 seconds/);
  assert.throws(() => preview({ kind: 'cron', cron_expr: '@daily', count: 101 }), /count must be at most 100/);
});

test('occurrences before from count for max_fires, up to a bound', () => {
  const often = { kind: 'rrule', rrule: 'FREQ=SECONDLY;INTERVAL=10;BYDAY=MO,TU,WE', from: '2900-01-01T00:00:00Z' };
  const begun = performance.now();
  assert.equal(preview({ ...often, count: 1 }).occurrences.length, 1);
  assert.deepEqual(preview({ ...often, max_fires: 5 }).occurrences, []);
  assert.throws(() => preview({ ...often, max_fires: 1_000_000 }), /too many to count for max_fires; omit one of them/);
  assert.ok(performance.now() - begun < 10_000);
});

test('an alarm with events says what it waits for, and when its deadline is', () => {
  const { kind, text, occurrences, notes } = preview({
    event: { source: 'webhook', quiet_for: 'PT30S', deadline: 'PT1H' },
    timezone: undefined,
  });
  assert.deepEqual([kind, text], ['event', 'waits for a webhook, or nothing for 1 h']);
  const at = { at: '2026-06-15T09:10:00.000Z', local: '2026-06-15T09:10:00+00:00', note: 'unless something comes' };
  assert.deepEqual(occurrences, [at]);
  assert.deepEqual(notes, [
    'it ends with its first wake',
    'a wake waits until nothing has come for 30 s',
    'one wake carries up to 100 events',
  ]);
  // A look at a file is no fire.
  assert.deepEqual(preview({ event: { source: 'file', path: '/tmp/report.csv' } }).occurrences, []);
  const chain = preview({ after: { alarm: '01977777-0000-7000-8000-000000000002', delay_seconds: 90 } });
  assert.deepEqual(
    [chain.occurrences, chain.notes],
    [[], ['it ends when the alarm that it follows has ended', 'it fires 1 min 30 s after that']],
  );
});

test('a preview says when the calendar of a series ends before its occurrences do', () => {
  const day = Math.floor(NOW / DAY_MS) + 2;
  const calendars: Calendars = { daysOf: () => [day], names: () => ['office'] };
  const notes = (count: number) =>
    preview({ kind: 'cron', cron_expr: '0 12 * * *', holidays: 'office', count }, NOW, calendars).notes;
  const last = new Date(day * DAY_MS).toISOString().slice(0, 10);
  assert.deepEqual(notes(4), [`the calendar office ends on ${last}: it excludes nothing after that day`]);
  const later: Calendars = { ...calendars, daysOf: () => [day, day + 400] };
  assert.deepEqual(preview({ kind: 'cron', cron_expr: '0 12 * * *', holidays: 'office' }, NOW, later).notes, []);
});
