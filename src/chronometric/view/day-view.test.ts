import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { dayViewSchema, weekViewSchema } from '../../wire/chronometric-view.ts';
import { DEFAULT_PROFILE, type Profile, UNREADABLE_PROFILE } from '../profile/profile.ts';
import { openState } from '../state/open-state.ts';
import { BEAT_MS } from '../state/state.ts';
import { callContextOf } from '../tools/call-context.ts';
import { instantOf, viewDay, viewWeek } from './day-view.ts';

const BERLIN = 'Europe/Berlin';
const at = (text: string) => Date.parse(text);

/** A state in a file, with a clock that the test sets. */
function record(t: TestContext, profile: Profile = DEFAULT_PROFILE, unreadable?: string) {
  const dataDir = mkdtempSync(join(tmpdir(), 'reveille-view-'));
  const clock = new ManualClock(at('2026-06-15T06:00:00Z'));
  const dayEnd = (instant: number) => nextDayAfter(BERLIN, instant, profile.logicalDayStart);
  const state = openState({ dataDir, clock, dayEnd });
  t.after(() => {
    state.close();
    rmSync(dataDir, { recursive: true });
  });
  const to = (text: string) => {
    clock.jump(at(text) - clock.now());
    return clock.now();
  };
  return {
    state,
    start: (text: string, intent: string) => state.start(intent, to(text), 'auto_close').session,
    end: (text: string, summary?: string) => state.end(summary, to(text)),
    active(from: string, until: string) {
      for (let now = to(from); now <= at(until); now += BEAT_MS) state.beat(now);
      state.beat(to(until));
    },
    contextAt: (text: string) => callContextOf(to(text), BERLIN, { profile, unreadable }),
  };
}

test('a day shows intents with their outcomes, and active and away time that adds up', (t) => {
  const { state, start, end, active, contextAt } = record(t);
  start('2026-06-15T09:00:00+02:00', '  plan \n it ');
  active('2026-06-15T09:00:00+02:00', '2026-06-15T09:30:00+02:00');
  active('2026-06-15T09:45:00+02:00', '2026-06-15T10:00:00+02:00');
  end('2026-06-15T10:00:00+02:00', 'planned');
  active('2026-06-15T10:00:00+02:00', '2026-06-15T10:20:00+02:00');
  const day = viewDay(state, contextAt('2026-06-15T12:00:00+02:00'));
  assert.deepEqual(dayViewSchema.parse(day), day);
  assert.deepEqual(
    [day.date, day.day_of_week, day.from, day.to],
    [...['2026-06-15', 'Monday', '2026-06-15T04:00:00+02:00', '2026-06-16T04:00:00+02:00']],
  );
  const [session] = day.sessions;
  assert.deepEqual([session?.intent, session?.summary, session?.ending], ['  plan \n it ', 'planned', 'ended']);
  assert.deepEqual(
    [session?.duration, session?.active_duration, session?.in_day.active_duration],
    [...['PT1H', 'PT45M', 'PT45M']],
  );
  assert.deepEqual(
    day.stretches.map(({ kind, duration, session_id: id }) => [kind, duration, id === session?.session_id]),
    [
      ['active', 'PT30M', true],
      ['away', 'PT15M', true],
      ['active', 'PT15M', true],
      ['active', 'PT20M', false],
    ],
  );
  assert.deepEqual(day.totals, {
    ...{ sessions: 1, active_duration: 'PT1H5M', active_in_sessions_duration: 'PT45M', away_duration: 'PT15M' },
  });
  assert.equal(day.break, undefined, 'no session is open');
});

test('half past midnight belongs to the evening before; at 04:00 a new day begins, and the session continues in it', (t) => {
  const { state, start, active, contextAt } = record(t);
  start('2026-06-15T23:00:00+02:00', 'one more thing');
  active('2026-06-15T23:00:00+02:00', '2026-06-16T05:00:00+02:00');
  state.prompted(at('2026-06-16T05:00:00+02:00'));
  const night = viewDay(state, contextAt('2026-06-16T05:00:00+02:00'), at('2026-06-16T00:30:00+02:00'));
  assert.deepEqual(
    [night.date, night.day_of_week, night.sessions[0]?.in_day.duration],
    ['2026-06-15', 'Monday', 'PT5H'],
  );
  assert.equal(night.break, undefined, 'that day has ended');
  const morning = viewDay(state, contextAt('2026-06-16T05:00:00+02:00'));
  assert.deepEqual(
    [morning.date, morning.sessions[0]?.in_day],
    [
      '2026-06-16',
      {
        from: '2026-06-16T04:00:00+02:00',
        to: '2026-06-16T05:00:00+02:00',
        duration: 'PT1H',
        active_duration: 'PT1H',
      },
    ],
  );
  assert.equal(morning.sessions[0]?.duration, 'PT6H');
  assert.deepEqual(morning.break, { elapsed: 'PT6H', threshold_minutes: 60, due: true, level: 'hard' });
  const week = viewWeek(state, contextAt('2026-06-16T05:00:00+02:00'));
  assert.deepEqual(weekViewSchema.parse(week), week);
  assert.deepEqual(
    week.days.map(({ date }) => date),
    ['10', '11', '12', '13', '14', '15', '16'].map((day) => `2026-06-${day}`),
  );
  assert.deepEqual([week.totals.sessions, week.totals.active_duration], [1, 'PT6H']);
});

test('a session forgotten on another day is not part of this day, and is reported separately', (t) => {
  const { state, start, active, contextAt } = record(t);
  const { id } = start('2026-06-15T16:00:00+02:00', 'forgotten');
  active('2026-06-15T16:00:00+02:00', '2026-06-15T17:00:00+02:00');
  const day = viewDay(state, contextAt('2026-06-16T09:00:00+02:00'));
  assert.deepEqual([day.sessions, day.stretches, day.break], [[], [], undefined]);
  assert.deepEqual(day.forgotten_session, {
    session_id: id,
    intent: 'forgotten',
    started_at: '2026-06-15T16:00:00+02:00',
    last_seen_at: '2026-06-15T17:00:00+02:00',
  });
  const before = viewDay(state, contextAt('2026-06-16T09:00:00+02:00'), at('2026-06-15T12:00:00+02:00'));
  assert.deepEqual([before.sessions[0]?.ending, before.sessions[0]?.in_day.duration], ['open', 'PT1H']);
});

test('days with a clock change have 23 or 25 hours, and every hour counts', (t) => {
  const { state, active, contextAt } = record(t);
  active('2026-10-25T01:30:00+02:00', '2026-10-25T03:30:00+01:00');
  const long = viewDay(state, contextAt('2026-10-25T03:30:00+01:00'));
  assert.deepEqual(
    [long.date, long.from, long.to, long.totals.active_duration],
    [...['2026-10-24', '2026-10-24T04:00:00+02:00', '2026-10-25T04:00:00+01:00', 'PT3H']],
  );
  const short = viewDay(state, contextAt('2027-03-28T03:30:00+02:00'));
  assert.deepEqual([short.date, Date.parse(short.to) - Date.parse(short.from)], ['2027-03-27', 23 * 3_600_000]);
});

test('a new session is listed before it has active time, and a break is due in an hour', (t) => {
  const { state, start, contextAt } = record(t);
  start('2026-06-15T09:00:00+02:00', 'begin');
  const day = viewDay(state, contextAt('2026-06-15T09:00:00+02:00'));
  assert.deepEqual([day.sessions[0]?.duration, day.stretches], ['PT0S', []]);
  assert.deepEqual(day.break, { elapsed: 'PT0S', threshold_minutes: 60, due: false, due_in: 'PT1H' });
});

test('after a clock that stepped back, no value is negative and no time counts twice', (t) => {
  const { state, start, end, active, contextAt } = record(t);
  start('2026-06-15T10:00:00+02:00', 'before');
  active('2026-06-15T10:00:00+02:00', '2026-06-15T11:00:00+02:00');
  end('2026-06-15T11:00:00+02:00');
  start('2026-06-15T10:30:00+02:00', 'after');
  active('2026-06-15T10:30:00+02:00', '2026-06-15T10:45:00+02:00');
  const day = viewDay(state, contextAt('2026-06-15T10:45:00+02:00'));
  assert.deepEqual(dayViewSchema.parse(day), day);
  assert.equal(day.totals.active_duration, 'PT1H');
  assert.deepEqual(
    day.sessions.map(({ in_day: inDay }) => inDay.active_duration),
    ['PT45M', 'PT15M'],
  );
});

test('with an unreadable profile the break is omitted and the rest is shown', (t) => {
  const { state, start, active, contextAt } = record(t, UNREADABLE_PROFILE, 'profile.yaml:3: it is broken');
  start('2026-06-15T09:00:00+02:00', 'go on');
  active('2026-06-15T09:00:00+02:00', '2026-06-15T11:00:00+02:00');
  const day = viewDay(state, contextAt('2026-06-15T11:00:00+02:00'));
  assert.deepEqual(
    [day.profile_unreadable, day.break, day.totals.active_duration],
    [...['profile.yaml:3: it is broken', undefined, 'PT2H']],
  );
});

test('a date is found in every zone unless the zone skips it', () => {
  const date = (timezone: string, text: string, begins = 240) => {
    const instant = instantOf({ timezone, begins }, text);
    return instant === undefined
      ? undefined
      : viewDay(
          { sessionsBetween: () => [], spansBetween: () => [] },
          {
            ...callContextOf(instant, timezone, { profile: { ...DEFAULT_PROFILE, logicalDayStart: begins } }),
          },
        ).date;
  };
  for (const zone of [BERLIN, 'Asia/Kathmandu', 'Pacific/Chatham', 'America/St_Johns', 'Pacific/Kiritimati'])
    for (const text of ['2026-03-29', '2026-10-25', '2028-02-29', '1999-12-31'])
      for (const begins of [0, 240, 1439]) assert.equal(date(zone, text, begins), text, `${zone} ${begins}`);
  assert.equal(date(BERLIN, '2026-02-30'), undefined);
  assert.equal(date(BERLIN, '2026-13-01'), undefined);
  assert.equal(date('Pacific/Apia', '2011-12-30', 0), undefined, 'that zone skipped the date');
});
