import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { DAYS } from '../../wire/chronometric-vocabulary.ts';
import { zoneAt } from './day-rules.ts';
import { PROFILE_QUESTIONS, profileText } from './profile-draft.ts';
import { readProfile } from './read-profile.ts';

const chronometric = (...lines: string[]) => ['chronometric:', ...lines.map((line) => `  ${line}`)].join('\n');
const problemsOf = (text: string) =>
  readProfile(text, 'p.yaml').problems.map(
    ({ severity, line, column, sentence }) => `${line}:${column} ${severity} ${sentence}`,
  );
/** The one problem of a profile with one field. */
function problem(line: string): string {
  const [only, ...more] = problemsOf(chronometric(line));
  assert.ok(only !== undefined && more.length === 0, `${line}: ${[only, ...more].join('; ')}`);
  return only;
}

describe('a profile', () => {
  test('is read with every field, whether times have quotes or not', () => {
    const { profile, problems, declared, unreadable } = readProfile(
      `version: 3
privacy: {os_idle_consent: true, other: 1}
cognitive: {a: &x yes, b: *x, 1: 2, emoji: 👩‍💻}
chronometric:
  hyperfocus_break_minutes: 45
  hyperfocus_ladder_minutes: {hard: 100, gentle: 30, nudge: 60}
  end_of_day_local: 18:30
  logical_day_start: '05:00'
  session_overlap_policy: error
  calendar_phase: exam
  deadline_cluster_awareness: false
  motor_fatigue_aware: true
  timezone: Asia/Kathmandu
  protected_windows:
    - label: sleep
      from: 22:30
      to: 06:00
    - {label: "👩‍💻 stand-up", from: "09:00", to: "09:15", days: [Mon, friday]}
  weekday_overrides:
    fri: {end_of_day_local: 16:00}
    saturday:
      hyperfocus_break_minutes: 15
      hyperfocus_ladder_minutes: [20, 40, 60]
`,
      'p.yaml',
    );
    assert.deepEqual(
      problems.map(({ line, severity, sentence }) => [line, severity, sentence]),
      [
        [2, 'warning', 'unknown field "privacy.other"; this field does not exist'],
        // In a label it may be intended, but it is invisible.
        [18, 'warning', problems[1]!.sentence],
      ],
    );
    assert.match(problems[1]!.sentence, /^contains the invisible character U\+200D/);
    assert.equal(unreadable, undefined);
    const { rulesOf, ...rest } = profile;
    assert.deepEqual(rest, {
      path: 'p.yaml',
      osIdleConsent: true,
      logicalDayStart: 300,
      overlapPolicy: 'error',
      calendarPhase: 'exam',
      deadlineClusterAwareness: false,
      motorFatigueAware: true,
      protectedWindows: [
        { label: 'sleep', from: 1350, to: 360, line: 15 },
        { label: '👩‍💻 stand-up', from: 540, to: 555, days: ['monday', 'friday'], line: 18 },
      ],
      timezone: 'Asia/Kathmandu',
    });
    const { zones: _, ...monday } = rulesOf('monday');
    assert.deepEqual(monday, {
      breakMinutes: { value: 45, line: 5 },
      ladder: { value: [30, 60, 100], line: 6 },
      endOfDay: { value: 1110, line: 7 },
    });
    assert.deepEqual(rulesOf('friday').endOfDay, { value: 960, line: 20 });
    assert.deepEqual(rulesOf('friday').breakMinutes, { value: 45, line: 5 });
    assert.deepEqual(rulesOf('saturday').ladder, { value: [20, 40, 60], line: 23 });
    assert.deepEqual(rulesOf('saturday').breakMinutes, { value: 15, line: 22 });
    assert.equal(declared.get('chronometric.timezone'), 13);
    assert.equal(declared.get('chronometric.weekday_overrides.friday.end_of_day_local'), 20);
    assert.equal(declared.has('chronometric.zones'), false);
  });

  test('without fields is the default', () => {
    for (const text of ['', '\n# nothing\n', 'chronometric:\n', 'chronometric: {}\nprivacy:\n', '---\n', '\ufeff']) {
      const { profile, problems } = readProfile(text);
      assert.deepEqual(problems, [], JSON.stringify(text));
      assert.deepEqual([profile.osIdleConsent, profile.overlapPolicy], [false, 'auto_close']);
      assert.equal(zoneAt(profile, 'monday', 600), 'morning_peak');
    }
  });

  test('consents with the YAML boolean true and with nothing else', () => {
    const consent = (value: string) => {
      const { profile, problems } = readProfile(`privacy:\n  os_idle_consent: ${value}\n`);
      return [profile.osIdleConsent, problems.map(({ severity, line }) => `${severity} ${line}`).join()];
    };
    for (const value of ['true', 'True', 'TRUE']) assert.deepEqual(consent(value), [true, ''], value);
    assert.deepEqual(consent('false'), [false, '']);
    const others = [
      'yes',
      'on',
      'Y',
      '"true"',
      "'yes'",
      '1',
      '~',
      '',
      '[true]',
      '{}',
      '&a true',
      '!!bool "true"',
      'true true',
    ];
    for (const value of others) assert.deepEqual(consent(value), [false, 'warning 2'], value);
    assert.match(
      problemsOf('privacy:\n  os_idle_consent: yes')[0]!,
      /^2:20 warning privacy\.os_idle_consent is not the YAML boolean true and so no consent \(got "yes"\)/,
    );
    // A repeated field is ambiguous.
    const twice = readProfile('privacy: {os_idle_consent: true, os_idle_consent: false}');
    assert.equal(twice.profile.osIdleConsent, false);
    assert.match(twice.unreadable!, /^the profile:1:\d+: Map keys must be unique/);
    const alias = readProfile('a: &c true\nprivacy: {os_idle_consent: *c}');
    assert.deepEqual([alias.profile.osIdleConsent, alias.problems.length], [false, 1]);
  });

  test('loses only an invalid field, and reports its position', () => {
    const wrong: [string, RegExp][] = [
      [
        'hyperfocus_break_minutes: 14',
        /^2:29 error chronometric\.hyperfocus_break_minutes must be .* 15 to 240 \(got 14\)/,
      ],
      ['hyperfocus_break_minutes: 241', /got 241/],
      ['hyperfocus_break_minutes: 45.5', /got 45\.5/],
      ['hyperfocus_break_minutes: "45"', /without quotes \(got "45"\)/],
      ['hyperfocus_break_minutes: 0x2d', /the number 0x2d is not supported, because YAML reads it as 45/],
      ['hyperfocus_break_minutes:', /got nothing/],
      ['hyperfocus_ladder_minutes: [60, 90]', /must be three rising numbers/],
      ['hyperfocus_ladder_minutes: [60, 90, 120, 150]', /at most 3 entries/],
      ['hyperfocus_ladder_minutes: [60, 60, 120]', /must rise from gentle to nudge to hard \(got 60, 60, 120\)/],
      [
        'hyperfocus_ladder_minutes: [0, 60, 120]',
        /^2:31 error chronometric\.hyperfocus_ladder_minutes\.0 must be a whole/,
      ],
      ['hyperfocus_ladder_minutes: {gentle: 60, hard: 120}', /\(nudge is missing\)/],
      ['hyperfocus_ladder_minutes: 60', /must be three rising numbers.*gentle, nudge and hard/],
      ['end_of_day_local: 0500', /^2:21 error .*must be a time of day .* \(got 0500\); write "05:00"/],
      ['end_of_day_local: 1830', /\(got 1830\); write "18:30"/],
      ['end_of_day_local: 9:30', /write "09:30"/],
      ['end_of_day_local: "24:00"', /write "00:00"/],
      ['end_of_day_local: late', /write it as "18:30"/],
      ['end_of_day_local: [18]', /got \[18\]/],
      ['end_of_day_local: "04:00"', /must differ from logical_day_start, 04:00/],
      ['end_of_day_local: 06:30', /warning .*06:30 comes soon after the day begins at 04:00.*is 18:30 meant\?/],
      ['usual_time_local: 9', /error chronometric\.usual_time_local must be/],
      ['logical_day_start: noon', /error chronometric\.logical_day_start must be/],
      ['session_overlap_policy: autoclose', /auto_close is probably meant/],
      ['calendar_phase: holidays', /must be one of teaching, marking, exam, deadlines, break \(got "holidays"\)/],
      ['deadline_cluster_awareness: on', /on has different meanings in different YAML parsers/],
      ['motor_fatigue_aware: "true"', /must be true or false, without quotes/],
      ['timezone: Europe/Berln', /must be an IANA time zone.*\(got "Europe\/Berln"\)/],
      ['timezone: BST', /must be an IANA time zone/],
      ['timezone: 2', /must be an IANA time zone/],
      ['zones: {noon: "12:00-14:00"}', /^2:11 error unknown name "chronometric\.zones\.noon"; must be one of/],
      ['zones: {mid_day: "12:00-14:00"}', /did you mean midday\?/],
      ['zones: {unknown: "12:00-14:00"}', /unknown name/],
      ['zones: {midday: "12-14"}', /^2:19 error chronometric\.zones\.midday must be a window/],
      ['zones: {midday: ["12:00-14:00", 5]}', /^2:35 error chronometric\.zones\.midday\.1 must be a window/],
      ['zones: {midday: "12:00-12:00"}', /must not end when it begins/],
      ['zones: [midday]', /must be zones with their windows/],
      [
        'zones: {midday: "11:30-14:00", morning_peak: "05:00-12:00"}',
        /^2:48 error .*morning_peak overlaps .*midday \(line 2\) at 11:30-12:00/,
      ],
      [
        'zones: {midday: "13:00-14:00"}',
        /^2:3 warning chronometric\.zones leaves 12:00-13:00 without a zone, which counts as night_owl/,
      ],
      [
        'zones: {morning_peak: "06:00-12:00", night_owl_caution: "22:00-05:00"}',
        /leaves 05:00-06:00 .* counts as unknown/,
      ],
      ['weekday_overrides: {payday: {}}', /unknown name "chronometric\.weekday_overrides\.payday"/],
      ['weekday_overrides: {fryday: {}}', /did you mean friday\?/],
      ['weekday_overrides: {fri: {}, friday: {}}', /is a second entry for friday/],
      [
        'weekday_overrides: {fri: {timezone: UTC}}',
        /warning unknown field "chronometric\.weekday_overrides\.fri\.timezone"/,
      ],
      ['weekday_overrides: {fri: {end_of_day_local: 1600}}', /write "16:00"/],
      ['weekday_overrides: {fri: 16:00}', /must be fields such as end_of_day_local/],
      ['protected_windows: {label: a}', /must be a list of windows/],
      [
        'protected_windows: [{label: a, from: 18:00}]',
        /^2:23 error chronometric\.protected_windows\.0 has no to; it needs/,
      ],
      ['protected_windows: [{label: " ", from: 18:00, to: 19:00}]', /must be a text that names the window/],
      ['protected_windows: [{label: a, from: 18:00, to: 18:00}]', /must differ from its from/],
      ['protected_windows: [{label: a, from: 24:00, to: 18:00}]', /write "00:00"/],
      ['protected_windows: [{label: a, from: 18:00, to: 19:00, days: [mo]}]', /must be a day such as/],
      ['protected_windows: [{label: a, from: 18:00, to: 19:00, days: []}]', /must be a list of days/],
      [
        'protected_windows: [{label: a, from: 18:00, to: 19:00, day: [mon]}]',
        /warning unknown field .*did you mean days\?/,
      ],
      [
        'session_overlap_polcy: error',
        /^2:3 warning unknown field "chronometric\.session_overlap_polcy"; did you mean session_overlap_policy\?/,
      ],
      ['os_idle_consent: true', /warning unknown field .* it belongs under privacy/],
    ];
    for (const [line, expected] of wrong) assert.match(problem(line), expected);
  });

  test('keeps valid fields beside invalid ones', () => {
    const { profile } = readProfile(
      chronometric(
        'zones: {midday: ["12:00-13:00", nonsense], morning_peak: 5}',
        'end_of_day_local: 1830',
        'weekday_overrides: {fri: {hyperfocus_break_minutes: 5, end_of_day_local: "16:00"}}',
        'protected_windows: [{label: a}, {label: b, from: 1:00, to: 02:00}, {label: c, from: 01:00, to: 02:00}]',
        'hyperfocus_break_minutes: 60',
      ),
    );
    assert.deepEqual(
      profile.protectedWindows.map(({ label }) => label),
      ['c'],
    );
    assert.equal(profile.rulesOf('monday').endOfDay, undefined);
    assert.equal(profile.rulesOf('friday').endOfDay?.value, 960);
    assert.equal(profile.rulesOf('friday').breakMinutes?.value, 60);
    assert.equal(zoneAt(profile, 'monday', 750), 'midday');
    assert.equal(zoneAt(profile, 'monday', 600), 'morning_peak', 'its default');
  });

  test('has a warning for a field in the wrong section, and none for sections of other programs', () => {
    assert.deepEqual(problemsOf('os_idle_consent: true\nchronometrc: {}\nPrivacy: {}\nservers: {zones: 1}\n'), [
      '1:1 warning unknown field "os_idle_consent"; it belongs under privacy',
      '2:1 warning unknown field "chronometrc"; did you mean chronometric?',
      '3:1 warning unknown field "Privacy"; did you mean privacy?',
    ]);
    assert.deepEqual(problemsOf('chronometric: 5\nprivacy: [1]'), [
      '1:15 error chronometric must be fields below it (got 5)',
      '2:10 error privacy must be fields below it (got [1])',
    ]);
  });

  test('that is not a YAML mapping is unreadable, and none of its fields count', () => {
    const texts = [
      '{',
      'a: [',
      '- a\n- b',
      'hello',
      '5',
      'a: b\n\tc: d',
      'a: 1\na: 2',
      '%YAML 1.1\n---\na: 1',
      'a: 1\n---\nb: 1',
    ];
    for (const text of [...texts, '['.repeat(10_000)]) {
      const { profile, problems, unreadable } = readProfile(`${text}`, '/p.yaml');
      assert.match(unreadable!, /^\/p\.yaml:\d+:\d+: ./, text);
      assert.ok(problems.length > 0 && problems.every(({ severity }) => severity === 'error'));
      assert.equal(profile.osIdleConsent, false);
      assert.equal(zoneAt(profile, 'monday', 600), 'unknown');
    }
  });

  test('never causes an exception, and every problem has a position', () => {
    const piece = fc.constantFrom(
      ...['privacy:', 'chronometric:', 'os_idle_consent', 'zones', 'midday', 'protected_windows', 'weekday_overrides'],
      ...['friday', 'end_of_day_local', 'label', 'from', 'to', 'days', 'true', 'yes', '18:30', '"22:00-06:00"', '0500'],
      ...[
        ': ',
        '\n',
        '\n  ',
        '\n    ',
        '- ',
        '{',
        '}',
        '[',
        ']',
        ', ',
        '&a ',
        '*a',
        '"',
        "'",
        '|',
        '#',
        '<<',
        '__proto__',
      ],
      ...['~', '.inf', '1e999', '12345678901234567890', 'hyperfocus_ladder_minutes', '\u0000', '\u200b'],
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: anyCharacter }),
          fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('')),
        ),
        (text) => {
          const { profile, problems, unreadable } = readProfile(text);
          for (const { line, column, sentence } of problems) assert.ok(line >= 1 && column >= 1 && sentence !== '');
          if (unreadable !== undefined) assert.ok(problems.length > 0 && !profile.osIdleConsent);
          for (const day of DAYS) assert.equal(profile.rulesOf(day).ladder.value.length, 3);
        },
      ),
      { numRuns: 1500 },
    );
  });

  test('accepts any JSON value in any of its fields without an exception', () => {
    const names = ['hyperfocus_ladder_minutes', 'end_of_day_local', 'zones', 'weekday_overrides', 'protected_windows'];
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.jsonValue(), (name, value) => {
        readProfile(JSON.stringify({ chronometric: { [name]: value } }));
        readProfile(JSON.stringify({ chronometric: { zones: { midday: value } } }));
        readProfile(JSON.stringify({ chronometric: { weekday_overrides: { friday: { [name]: value } } } }));
        readProfile(JSON.stringify({ chronometric: { protected_windows: [value, { label: value, from: value }] } }));
      }),
      { numRuns: 300 },
    );
  });
});

test('a new profile has no problems and contains the answers', () => {
  const { profile, problems } = readProfile(profileText({}));
  assert.deepEqual(problems, []);
  assert.deepEqual([profile.osIdleConsent, profile.rulesOf('monday').breakMinutes], [false, undefined]);
  // As a user does it: remove the comment mark of every field.
  const all = profileText({}).replace(/^ {2}# ( *(?:[a-z_]+: ?\S|[a-z_]+:$|- \{))/gm, '  $1');
  assert.deepEqual(readProfile(all).problems, [], all);
  assert.equal(readProfile(all).declared.size, 14, all);

  const given = ['6 pm', '50', 'yes'];
  const answers = PROFILE_QUESTIONS.reduce((sofar, { read }, at) => {
    assert.equal(typeof read('nonsense', sofar), 'string');
    const next = read(given[at]!, sofar);
    assert.ok(typeof next !== 'string');
    return next;
  }, {});
  const answered = readProfile(profileText(answers));
  assert.deepEqual(answered.problems, []);
  assert.equal(answered.profile.osIdleConsent, true);
  assert.deepEqual(answered.profile.rulesOf('monday').endOfDay?.value, 1080);
  assert.deepEqual(answered.profile.rulesOf('monday').breakMinutes?.value, 50);
});

test('the examples of docs/reference/profile.md are valid, and together they show every field', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'profile.md'), 'utf8');
  const examples = page
    .split('```yaml\n')
    .slice(1)
    .map((part) => part.split('```')[0]!);
  assert.ok(examples.length >= 8);
  const shown = new Set<string>();
  for (const example of examples) {
    const { problems, declared } = readProfile(example);
    assert.deepEqual(
      problems.filter(({ severity }) => severity === 'error'),
      [],
      example,
    );
    for (const { sentence } of problems) {
      // The page names the hours without a zone.
      const hours = [...sentence.matchAll(/\d\d:\d\d-\d\d:\d\d/g)].map(([window]) => window.replace('-', '–'));
      assert.ok(hours.length > 0 && hours.every((window) => page.includes(window)), sentence);
    }
    for (const name of declared.keys()) shown.add(name.split('.').slice(0, 2).join('.'));
  }
  assert.equal(shown.size, 13, [...shown].join(', '));
});
