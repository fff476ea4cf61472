import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { timeContextSchema } from '../../wire/chronometric.ts';
import { DEFAULT_PROFILE } from '../profile/profile.ts';
import { unreadable } from '../profile/read-profile.ts';
import { callContextAt, MINUTE, sessionOf } from '../testing/call-context.ts';
import { callContextOf, timeContext, usableTime } from './call-context.ts';

const EVENING = 'chronometric:\n  end_of_day_local: "18:30"\n';

function contextAt(...[at, place]: Parameters<typeof callContextAt>) {
  const context = timeContext(callContextAt(at, place), {});
  timeContextSchema.parse(context);
  return context;
}

describe('the time context', () => {
  test('without a profile has the five members of the sources and active time, and no more', () => {
    assert.deepEqual(contextAt('2026-06-15T08:10:00Z'), {
      now: '2026-06-15T10:10:00+02:00',
      day_of_week: 'Monday',
      time_since_last_prompt: null,
      current_session_length: null,
      active_length: null,
      energy_zone: 'morning_peak',
    });
  });

  test('has the other members when the profile declares them', () => {
    const profile = `${EVENING}  calendar_phase: exam\n  deadline_cluster_awareness: true\n  motor_fatigue_aware: false\n`;
    const { effective_end_of_day_local, past_end_of_day, ...rest } = contextAt('2026-06-15T16:29:59Z', { profile });
    assert.deepEqual([effective_end_of_day_local, past_end_of_day], ['18:30', false]);
    assert.deepEqual([rest.calendar_phase, rest.deadline_cluster_awareness], ['exam', true]);
    assert.equal(rest.motor_fatigue_aware, false);
  });

  test('counts from the last prompt and from the start of the session, and is never negative', () => {
    const lastPromptAt = Date.parse('2026-06-15T08:00:00Z');
    const session = sessionOf(95);
    const context = (at: string) => timeContext(callContextAt(at), { lastPromptAt, session });
    assert.equal(context('2026-06-15T08:00:42Z').time_since_last_prompt, 'PT42S');
    assert.equal(context('2026-06-15T08:00:42Z').current_session_length, 'PT2H42S');
    assert.equal(context('2026-06-15T08:00:42Z').active_length, 'PT1H35M');
    assert.equal(context('2026-06-15T07:00:00Z').time_since_last_prompt, 'PT0S');
    assert.equal(context('2026-06-15T05:00:00Z').current_session_length, 'PT0S');
  });

  test('reports why prompts and sessions are unknown', () => {
    const context = timeContext(callContextAt('2026-06-15T08:00:00Z'), { unavailable: 'the file is locked' });
    timeContextSchema.parse(context);
    const { state_unavailable, time_since_last_prompt, current_session_length, active_length } = context;
    assert.equal(state_unavailable, 'the file is locked');
    assert.deepEqual([time_since_last_prompt, current_session_length, active_length], [null, null, null]);
  });

  test('changes the energy zone exactly at the minute', () => {
    const zones: [string, string][] = [
      ['04:59', 'night_owl_caution'],
      ['05:00', 'morning_peak'],
      ['11:59', 'morning_peak'],
      ['12:00', 'midday'],
      ['14:00', 'afternoon_dip'],
      ['16:29', 'afternoon_dip'],
      ['16:30', 'evening_quiet'],
      ['19:30', 'night_owl_caution'],
      ['00:00', 'night_owl_caution'],
    ];
    for (const [time, zone] of zones) assert.equal(contextAt(`2026-06-15T${time}:00+02:00`).energy_zone, zone, time);
  });

  test('half past midnight belongs to the evening before, and four in the morning does not', () => {
    const at = (time: string) => contextAt(time, { profile: EVENING });
    const night = at('2026-06-16T00:30:00+02:00');
    assert.equal(night.day_of_week, 'Tuesday');
    assert.equal(night.past_end_of_day, true);
    assert.equal(at('2026-06-16T03:59:59+02:00').past_end_of_day, true);
    assert.equal(at('2026-06-16T04:00:00+02:00').past_end_of_day, false);
  });

  test("the evening's weekday rules hold until the logical day ends", () => {
    const profile = `${EVENING}  weekday_overrides:\n    friday:\n      end_of_day_local: "16:00"\n`;
    assert.equal(contextAt('2026-06-20T01:00:00+02:00', { profile }).effective_end_of_day_local, '16:00');
    assert.equal(contextAt('2026-06-20T05:00:00+02:00', { profile }).effective_end_of_day_local, '18:30');
  });

  test('distinguishes the two hours after 02:00 when the clock is put back', () => {
    assert.equal(contextAt('2026-10-25T00:30:00Z').now, '2026-10-25T02:30:00+02:00');
    assert.equal(contextAt('2026-10-25T01:30:00Z').now, '2026-10-25T02:30:00+01:00');
  });

  test('goes from 02:00 to 03:00 when the clock is put forward', () => {
    assert.equal(contextAt('2026-03-29T00:59:59Z').now, '2026-03-29T01:59:59+01:00');
    assert.equal(contextAt('2026-03-29T01:00:00Z').now, '2026-03-29T03:00:00+02:00');
  });

  test('supports zones with unusual offsets, on both sides of the date line', () => {
    const at = '2026-06-15T10:20:00Z';
    const textIn = (zone: string) => {
      const { now, day_of_week, energy_zone } = contextAt(at, { zone });
      return `${now} ${day_of_week} ${energy_zone}`;
    };
    assert.equal(textIn('Asia/Kathmandu'), '2026-06-15T16:05:00+05:45 Monday afternoon_dip');
    assert.equal(textIn('Pacific/Chatham'), '2026-06-15T23:05:00+12:45 Monday night_owl_caution');
    assert.equal(textIn('Pacific/Kiritimati'), '2026-06-16T00:20:00+14:00 Tuesday night_owl_caution');
    assert.equal(textIn('Pacific/Pago_Pago'), '2026-06-14T23:20:00-11:00 Sunday night_owl_caution');
    assert.equal(textIn('America/St_Johns'), '2026-06-15T07:50:00-02:30 Monday morning_peak');
    assert.equal(textIn('UTC'), '2026-06-15T10:20:00+00:00 Monday morning_peak');
  });

  test("the profile's zone has precedence over the machine's", () => {
    const profile = 'chronometric:\n  timezone: Asia/Tokyo\n';
    assert.equal(contextAt('2026-06-15T10:00:00Z', { profile }).now, '2026-06-15T19:00:00+09:00');
  });

  test('has an unknown energy zone with an unreadable profile', () => {
    const callContext = callContextOf(Date.parse('2026-06-15T08:10:00Z'), 'UTC', unreadable('broken', 'p.yaml'));
    assert.deepEqual(timeContext(callContext, {}), {
      now: '2026-06-15T08:10:00+00:00',
      day_of_week: 'Monday',
      time_since_last_prompt: null,
      current_session_length: null,
      active_length: null,
      energy_zone: 'unknown',
    });
  });
});

describe('a clock that cannot be read', () => {
  const unavailable = { code: 'INTERNAL_CLOCK_UNAVAILABLE' };
  const profile = { profile: DEFAULT_PROFILE };

  test('is an error, and no time is assumed', () => {
    for (const now of [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 8.64e15])
      assert.throws(() => usableTime(now), unavailable, String(now));
    assert.equal(usableTime(MINUTE * 1e6), MINUTE * 1e6);
  });

  test('has no time zone, or an unknown one', () => {
    const now = Date.parse('2026-06-15T08:10:00Z');
    assert.throws(() => callContextOf(now, undefined, profile), { ...unavailable, message: /chronometric\.timezone/ });
    assert.throws(() => callContextOf(now, 'Mars/Olympus', profile), { ...unavailable, message: /Mars\/Olympus/ });
  });
});
