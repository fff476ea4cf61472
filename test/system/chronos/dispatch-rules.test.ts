/** Series by recurrence rules, and calendars of exclusion, through the dispatcher. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pauseAlarm, resumeAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { edit } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { createBench } from './dispatch-bench.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Bench = Awaited<ReturnType<typeof createBench>>;

const firesOf = async (bench: Bench, id: string) =>
  (await bench.ledger(id)).map(({ scheduledFor, missedCount }) => [
    new Date(scheduledFor).toISOString().slice(5, 16),
    missedCount,
  ]);

test('a rule fires at its instants and ends by COUNT', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set({ kind: 'rrule', rrule: 'FREQ=MINUTELY;INTERVAL=20;COUNT=3' });
  await bench.clock.advance(3 * HOUR);
  assert.deepEqual(await firesOf(bench, id), [
    ['06-15T08:30', 0],
    ['06-15T08:50', 0],
    ['06-15T09:10', 0],
  ]);
  const { alarm, occurrences } = await bench.state(id);
  assert.deepEqual([alarm.status, alarm.fireCount, occurrences], ['fired', 3, []]);
});

test('a rule ends by UNTIL, in the zone of the alarm', async (t) => {
  const bench = await createBench(t);
  const rrule = 'FREQ=HOURLY;BYHOUR=11,12,13;BYMINUTE=0;BYSECOND=0;UNTIL=20260615T120000';
  const { id } = await bench.set({ kind: 'rrule', rrule, timezone: 'Europe/Berlin' });
  await bench.clock.advance(DAY);
  assert.deepEqual(await firesOf(bench, id), [
    ['06-15T09:00', 0],
    ['06-15T10:00', 0],
  ]);
  assert.equal((await bench.state(id)).alarm.status, 'fired');
});

test('after downtime a rule fires once, for its latest occurrence, with the number of the others', async (t) => {
  const bench = await createBench(t, { idle: true });
  const rrule = 'FREQ=DAILY;INTERVAL=2;BYHOUR=9,10;BYMINUTE=0;BYSECOND=0\nEXDATE:20260617T100000';
  const { id } = await bench.set({ kind: 'rrule', rrule });
  await bench.clock.advance(5 * DAY);
  bench.dispatch();
  await bench.clock.advance(MINUTE);
  // 15, 17 and 19 June at 9:00 and 10:00, without the excluded one.
  assert.deepEqual(await firesOf(bench, id), [['06-19T10:00', 4]]);
});

test('a rule is paused, resumed and edited', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set({ kind: 'rrule', rrule: 'FREQ=HOURLY;INTERVAL=2' });
  await bench.clock.advance(2 * HOUR + MINUTE);
  await bench.change(id, (state) => pauseAlarm(state, bench.clock.now()));
  await bench.clock.advance(5 * HOUR);
  await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
  await bench.clock.advance(2 * HOUR);
  assert.deepEqual(await firesOf(bench, id), [
    ['06-15T10:10', 0],
    ['06-15T16:10', 0],
  ]);
  // A new rule begins at the edit.
  await bench.change(id, (state) => edit(state, { rrule: 'FREQ=MINUTELY;INTERVAL=30;COUNT=1' }, bench.clock.now()));
  await bench.clock.advance(2 * HOUR);
  assert.deepEqual((await firesOf(bench, id)).at(-1), ['06-15T17:41', 0]);
  assert.equal((await bench.state(id)).alarm.status, 'fired');
});

test('a day that is added to the calendar is left out, also for an occurrence that is already pending', async (t) => {
  let days: readonly number[] = [];
  const bench = await createBench(t, { calendars: { daysOf: () => days, names: () => ['office'] } });
  const { id } = await bench.set({ kind: 'cron', cron_expr: '0 9 * * *', holidays: 'office' });
  await bench.clock.advance(DAY);
  days = ['2026-06-16', '2026-06-17'].map((date) => Date.parse(date) / DAY);
  await bench.clock.advance(4 * DAY);
  const expected = ['06-15T09:00', '06-18T09:00', '06-19T09:00'].map((at) => [at, 0]);
  assert.deepEqual(await firesOf(bench, id), expected);
});

test('a series leaves out the days of its calendar, and fires on them again when it is gone', async (t) => {
  const days = ['2026-06-16', '2026-06-17', '2026-06-19'].map((date) => Date.parse(date) / DAY);
  const installed = new Map([['office', days]]);
  const bench = await createBench(t, {
    calendars: { daysOf: (name) => installed.get(name), names: () => [...installed.keys()] },
  });
  const { id } = await bench.set({ kind: 'cron', cron_expr: '0 9 * * *', holidays: 'office' });
  await bench.clock.advance(3.5 * DAY);
  assert.deepEqual(await firesOf(bench, id), [
    ['06-15T09:00', 0],
    ['06-18T09:00', 0],
  ]);
  installed.clear();
  // The next occurrence, on 20 June, was computed with the calendar.
  await bench.clock.advance(3 * DAY);
  assert.deepEqual((await firesOf(bench, id)).slice(2), [
    ['06-20T09:00', 0],
    ['06-21T09:00', 0],
  ]);
});
