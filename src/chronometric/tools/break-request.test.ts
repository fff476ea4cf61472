import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { breakAnswerSchema } from '../../wire/chronometric.ts';
import { unreadable } from '../profile/read-profile.ts';
import { callContextAt, MINUTE, sessionOf } from '../testing/call-context.ts';
import { breakRequest } from './break-request.ts';
import { callContextOf } from './call-context.ts';

const NOON = '2026-06-15T12:00:00+02:00';
const LATE = '2026-06-16T00:30:00+02:00';

const YAML = (...lines: string[]) => ['chronometric:', ...lines.map((line) => `  ${line}`), ''].join('\n');

type Asked = { at?: string; profile?: string; active?: number; threshold?: number };

function ask({ at = NOON, profile = '', active = 0, threshold = 45 }: Asked) {
  const result = breakRequest(callContextAt(at, { profile }), sessionOf(active), threshold);
  breakAnswerSchema.parse({ result });
  assert.ok(!result?.reason.sentence.includes('report'), 'the sentence never contains the intent');
  return result;
}

describe('a break', () => {
  test('is never due without a session', () => {
    const profile = YAML('protected_windows:', '  - { label: lunch, from: "11:00", to: "13:00" }');
    assert.equal(breakRequest(callContextAt(NOON, { profile }), undefined, 1), null);
  });

  test('is due from the threshold on, to the millisecond', () => {
    const after = (ms: number) =>
      breakRequest(callContextAt(NOON), sessionOf(0, { activeSinceBreakMs: ms, activeMs: 999 * MINUTE }), 45);
    assert.equal(after(45 * MINUTE - 1), null);
    assert.equal(after(45 * MINUTE)?.active_elapsed, 'PT45M');
  });

  test("has the session's length and the active time that decides", () => {
    const { elapsed, active_elapsed } = ask({ active: 50 })!;
    assert.deepEqual([elapsed, active_elapsed], ['PT4H', 'PT50M'], 'it began at 08:00, and it is 12:00');
  });

  test('quotes the intent unchanged', () => {
    assert.equal(ask({ active: 50 })?.prior_intent, ' write the report ');
  });

  test('follows the ladder of the sources: none under 60 minutes, gentle, nudge, hard', () => {
    const steps = [50, 60, 89, 90, 119, 120, 600].map((active) => {
      const { level, reason } = ask({ active })!;
      return [active, level, reason.rung, reason.rule];
    });
    assert.deepEqual(steps, [
      [50, 'none', 0, 'elapsed'],
      [60, 'gentle', 1, 'elapsed'],
      [89, 'gentle', 1, 'elapsed'],
      [90, 'nudge', 2, 'elapsed'],
      [119, 'nudge', 2, 'elapsed'],
      [120, 'hard', 3, 'elapsed'],
      [600, 'hard', 3, 'elapsed'],
    ]);
  });

  test('follows the ladder of the profile, and names its line', () => {
    const profile = YAML('hyperfocus_ladder_minutes: [20, 30, 40]');
    const { level, reason } = ask({ profile, active: 30, threshold: 10 })!;
    assert.deepEqual([level, reason.rung, reason.profile_line], ['nudge', 2, 2]);
    assert.equal(ask({ active: 60 })!.reason.profile_line, undefined);
  });

  test("the profile's threshold replaces the caller's, and the reason names its line", () => {
    const profile = YAML('motor_fatigue_aware: false', 'hyperfocus_break_minutes: 30');
    assert.equal(ask({ profile, active: 29, threshold: 1 }), null);
    const { threshold_minutes, threshold_from, reason } = ask({ profile, active: 30, threshold: 1000 })!;
    assert.deepEqual([threshold_minutes, threshold_from, reason.profile_line], [30, 'profile', 3]);
    assert.match(reason.sentence, /the threshold of the profile is at 30, the caller asked for 1000\.$/);
    const own = ask({ active: 45 })!;
    assert.deepEqual([own.threshold_minutes, own.threshold_from], [45, 'caller']);
    assert.match(own.reason.sentence, /the threshold of the caller is at 45\.$/);
  });

  test('is one step harder past the end of the day until the logical day ends, and at most hard', () => {
    const profile = YAML('end_of_day_local: "18:00"');
    const levels = (at: string) =>
      [50, 60, 90, 120].map((active) => {
        const { level, reason } = ask({ profile, at, active })!;
        return `${level} by ${reason.rule}${reason.profile_line === undefined ? '' : ` of line ${reason.profile_line}`}`;
      });
    const late = ['nudge', 'hard'].map((level) => `${level} by past_end_of_day of line 2`);
    const harder = ['none by elapsed', ...late, 'hard by elapsed'];
    const usual = ['none', 'gentle', 'nudge', 'hard'].map((level) => `${level} by elapsed`);
    assert.deepEqual(levels('2026-06-15T18:00:00+02:00'), harder);
    assert.deepEqual(levels(LATE), harder);
    assert.deepEqual(levels('2026-06-15T17:59:59+02:00'), usual);
    assert.deepEqual(levels('2026-06-16T04:00:00+02:00'), usual);
  });

  test('is hard in a protected window, independent of the elapsed time', () => {
    const profile = YAML('protected_windows:', '  - { label: dinner, from: "23:00", to: "01:00" }');
    const request = ask({ profile, at: LATE, active: 1, threshold: 240 })!;
    assert.deepEqual([request.level, request.suggested_action], ['hard', 'end_session']);
    assert.equal(request.protected_window_label, 'dinner');
    assert.deepEqual(
      [request.reason.rule, request.reason.profile_line, request.threshold_minutes],
      ['protected_window', 3, 240],
    );
    assert.equal(ask({ profile, at: '2026-06-16T01:00:00+02:00', active: 1, threshold: 240 }), null);
  });

  test('has the same suggestion for the same time, and another one half an hour later', () => {
    const action = (active: number, profile = '') => ask({ profile, active, threshold: 1 })!.suggested_action;
    assert.deepEqual(
      [action(5), action(29), action(30), action(59), action(60)],
      ['stand_and_stretch', 'stand_and_stretch', 'hydrate', 'hydrate', 'stand_and_stretch'],
    );
    assert.deepEqual([action(90), action(100), action(120)], ['switch_context', 'switch_context', 'end_session']);
    const long = YAML('hyperfocus_ladder_minutes: [30, 60, 240]');
    assert.deepEqual([action(60, long), action(90, long)], ['walk_outside', 'switch_context']);
  });

  test('suggests no movement to a user with motor fatigue', () => {
    const profile = YAML('motor_fatigue_aware: true', 'hyperfocus_ladder_minutes: [30, 60, 240]');
    const suggested = Array.from({ length: 300 }, (_, active) => ask({ profile, active, threshold: 1 }))
      .filter((request) => request !== null)
      .map(({ suggested_action }) => suggested_action);
    assert.deepEqual([...new Set(suggested)], ['hydrate', 'switch_context', 'end_session']);
  });

  test('has no negative values when the clock has stepped back', () => {
    const profile = YAML('protected_windows:', '  - { label: lunch, from: "11:00", to: "13:00" }');
    const session = sessionOf(0, { activeSinceBreakMs: -5 * MINUTE, startedAt: Date.parse(NOON) + MINUTE });
    const { elapsed, active_elapsed } = breakRequest(callContextAt(NOON, { profile }), session, 1)!;
    assert.deepEqual([elapsed, active_elapsed], ['PT0S', 'PT0S']);
  });

  test('is unknown with an unreadable profile, with and without a session', () => {
    const context = callContextOf(Date.parse(NOON), 'UTC', unreadable('p.yaml:3:1: not YAML', 'p.yaml'));
    for (const session of [undefined, sessionOf(500)])
      assert.throws(() => breakRequest(context, session, 1), { code: 'PROFILE_UNREADABLE', message: /p\.yaml:3:1/ });
  });
});
