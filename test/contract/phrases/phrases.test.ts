import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compileRule } from '../../../src/chronos/alarm/schedule.ts';
import { offsetAt } from '../../../src/kit/clock/zone.ts';
import { readPhrase } from '../../../src/kit/phrase/phrase.ts';
import { PhraseError, type PhraseHours, type Reading } from '../../../src/kit/phrase/reading.ts';
import { readingText } from '../../../src/kit/phrase/reading-text.ts';
import { anyCharacter } from '../../support/random/characters.ts';
import { rounds } from '../../support/random/random.ts';
import { instantOf, rows, ZONES } from './table.ts';

/** `2026-11-23 09:00`, `+7200` seconds, a cron expression, rules, or `✗` with the choices. */
function meaningOf(phrase: string, wallNow: string, zone: string): string {
  let reading: Reading;
  try {
    reading = readPhrase(phrase, { now: instantOf(wallNow, zone), zone });
  } catch (thrown) {
    if (!(thrown instanceof PhraseError)) throw thrown;
    return ['✗', ...thrown.choices].join(' | ');
  }
  if (reading.kind === 'delay') return `+${reading.seconds}`;
  if (reading.kind === 'series') {
    const rhythm = reading.cron ?? reading.rrule.replaceAll('\n', ' ');
    return reading.zone === zone ? rhythm : `${rhythm} in ${reading.zone}`;
  }
  const wall = new Date(reading.at + offsetAt(zone, reading.at)).toISOString();
  return `${wall.slice(0, 10)} ${wall.slice(11, wall.slice(17, 19) === '00' ? 16 : 19)}`;
}

/** The echo of a reading, without the zone in which the phrase is read. */
function echoOf(phrase: string, wallNow: string, zone: string): string | undefined {
  const now = instantOf(wallNow, zone);
  try {
    return readingText(readPhrase(phrase, { now, zone }), now).replace(` in ${zone}`, '');
  } catch (thrown) {
    if (thrown instanceof PhraseError) return undefined;
    throw thrown;
  }
}

test('the table is long enough', () => {
  assert.ok(rows.length >= 800, `${rows.length} phrases`);
  assert.ok(rows.filter(({ echo }) => echo !== undefined).length >= 300);
});

describe('each phrase has one meaning, the same in five zones, or is refused with the choices', () => {
  for (const zone of ZONES) {
    test(`${rows.length} phrases in ${zone}`, () => {
      const misread = rows
        .map((row) => ({ ...row, read: meaningOf(row.phrase, row.now, zone) }))
        // A phrase may name the zone in which it is read.
        .filter(({ wanted, read }) => read !== wanted.replace(` in ${zone}`, ''));
      assert.deepEqual(misread, []);
    });
  }
});

describe('each echo says how a phrase was read, and what it left open', () => {
  for (const zone of ZONES) {
    test(`in ${zone}`, () => {
      const wrong = rows.flatMap(({ phrase, now, echo }) => {
        // The zone UTC may also be named in a phrase.
        if (echo === undefined || phrase.endsWith(zone)) return [];
        const said = echoOf(phrase, now, zone);
        return said === echo ? [] : [{ phrase, said, echo }];
      });
      assert.deepEqual(wrong, []);
    });
  }
});

test('rules are accepted by the schedule engine, and a rule that skips begins with the next occurrence', () => {
  for (const zone of ZONES)
    for (const { phrase, now: wallNow, wanted } of rows) {
      if (!wanted.includes('FREQ=') || wanted.includes(' in ') || phrase.includes('FREQ=') || / from 20/.test(phrase))
        continue;
      const now = instantOf(wallNow, zone);
      const [start] = /DTSTART:\S+/.exec(wanted) ?? [];
      const first = compileRule(wanted.replaceAll(' RRULE', '\nRRULE'), zone, now).next(now)!;
      assert.ok(first > now, phrase);
      const wall = new Date(first + offsetAt(zone, first)).toISOString().replace(/[-:]|\.\d+Z$/g, '');
      if (start !== undefined) assert.equal(`DTSTART:${wall}`, start, phrase);
    }
});

const HOURS: PhraseHours = {
  usual: 7 * 60 + 30,
  evening: 21 * 60,
  endOfDay: [1080, 1050, 1050, 1050, 1050, 960, 1080],
};

test('the hours of the user are those of phrases without a time', () => {
  const meaning = (phrase: string) => {
    const now = Date.UTC(2026, 10, 25, 10, 30);
    const reading = readPhrase(phrase, { now, zone: 'UTC', hours: HOURS });
    return readingText(reading, now).replace(' in UTC', '');
  };
  assert.equal(meaning('tomorrow'), 'Thu 26 Nov 07:30 (at 07:30, because no time was given)');
  assert.equal(
    meaning('every quarter'),
    'every quarter on day 1 at 07:30 (on the 1st at 07:30, because no day or time was given)',
  );
  assert.equal(meaning('tonight'), 'Wed 25 Nov 21:00 (at 21:00, because no time was given)');
  assert.equal(meaning('end of day'), 'Wed 25 Nov 17:30 (at 17:30, the end of the day)');
  assert.equal(meaning('friday at end of day'), 'Fri 27 Nov 16:00 (at 16:00, the end of the day)');
  assert.equal(meaning('every friday at end of day'), 'every Friday at 16:00 (at 16:00, the end of the day)');
  assert.throws(() => meaning('every weekday at end of day'), /these days end at different times; write a time/);
});

test('without a zone, only a phrase that needs none is read', () => {
  const now = Date.UTC(2026, 10, 25, 10, 30);
  const read = (phrase: string) => readPhrase(phrase, { now, zone: undefined });
  assert.equal(read('in 20 minutes').kind, 'delay');
  assert.equal(read('every 2 hours').kind, 'series');
  assert.equal(read('2026-12-01T09:00:00+01:00').kind, 'instant');
  assert.equal(read('tomorrow 9am Asia/Tokyo').kind, 'instant');
  const local = ['tomorrow 9am', 'every day at 9', 'today at 8:00', 'tomorrow at 7', 'in 2 days', 'every other monday'];
  for (const phrase of local)
    assert.throws(
      () => read(phrase),
      (thrown) => thrown instanceof PhraseError && thrown.needsZone,
      phrase,
    );
  assert.throws(() => read('tomorow 9am'), /write "tomorrow 9am"/);
});

/** Around the hours that clocks skip or repeat: zone, current wall time, phrase, meaning. */
const CHANGES: readonly (readonly [zone: string, now: string, phrase: string, wanted: string])[] = [
  ['Europe/Berlin', '2027-03-27 12:00', 'tomorrow at 2:30', '✗ | 2027-03-28 01:30 | 2027-03-28 03:30'],
  ['Europe/Berlin', '2027-03-27 12:00', 'tomorrow at 3:00', '2027-03-28 03:00'],
  ['Europe/Berlin', '2027-03-27 12:00', 'in a day', '✗ | in 24 hours | 2027-03-28 12:00'],
  ['Europe/Berlin', '2027-03-27 12:00', 'in 24 hours', '+86400'],
  ['Europe/Berlin', '2027-03-27 12:00', 'in 1 day at 12:00', '2027-03-28 12:00'],
  [
    'Europe/Berlin',
    '2027-10-30 12:00',
    'tomorrow at 2:30',
    '✗ | 2027-10-31T02:30:00+02:00 | 2027-10-31T02:30:00+01:00',
  ],
  ['Europe/Berlin', '2027-10-30 12:00', '2027-10-31T02:30:00+01:00', '2027-10-31 02:30'],
  ['Europe/Berlin', '2027-10-30 12:00', 'in 2 days', '✗ | in 48 hours | 2027-11-01 12:00'],
  ['America/New_York', '2027-03-13 12:00', 'tomorrow 2:30am', '✗ | 2027-03-14 01:30 | 2027-03-14 03:30'],
  [
    'America/New_York',
    '2027-11-06 12:00',
    'tomorrow 1:30am',
    '✗ | 2027-11-07T01:30:00-04:00 | 2027-11-07T01:30:00-05:00',
  ],
  [
    'Australia/Lord_Howe',
    '2027-04-03 12:00',
    'tomorrow 1:45am',
    '✗ | 2027-04-04T01:45:00+11:00 | 2027-04-04T01:45:00+10:30',
  ],
  ['Australia/Lord_Howe', '2027-10-02 12:00', 'tomorrow 2:15am', '✗ | 2027-10-03 01:45 | 2027-10-03 02:45'],
  ['Australia/Lord_Howe', '2027-10-02 12:00', 'tomorrow 2:30am', '2027-10-03 02:30'],
  ['Africa/Cairo', '2027-04-29 12:00', 'friday at 0:30', '✗ | 2027-04-29 23:30 | 2027-04-30 01:30'],
  ['Asia/Kathmandu', '2027-03-27 12:00', 'in 400 days', '2028-04-30 12:00'],
  // A zone at the end of the phrase takes precedence over the zone of the input.
  ['Europe/Berlin', '2026-11-23 08:00', 'tomorrow 9am UTC', '2026-11-24 10:00'],
  ['Europe/Berlin', '2026-11-23 08:00', 'Tue 1 Dec 09:00 UTC', '2026-12-01 10:00'],
  ['Europe/Berlin', '2026-11-23 08:00', 'Tue, 01 Dec 2026 09:00:00 GMT', '2026-12-01 10:00'],
  // The short name that the user's zone has then.
  ['Europe/Berlin', '2026-11-23 08:00', 'once, at 2026-12-01 09:00:00 CET', '2026-12-01 09:00'],
  ['Europe/Berlin', '2027-10-30 12:00', '2027-10-31 02:30 CET', '2027-10-31 02:30'],
  ['Europe/Berlin', '2026-11-23 08:00', '2026-12-01 09:00:00 CEST', '✗'],
  ['Asia/Kathmandu', '2026-11-23 08:00', '2026-12-01 09:00:00 UTC+5:45', '2026-12-01 09:00'],
  ['Asia/Kathmandu', '2026-11-23 08:00', '9am Asia/Kolkata', '2026-11-23 09:15'],
  ['Australia/Lord_Howe', '2026-11-23 08:00', 'friday 18:00 America/New_York', '2026-11-28 10:00'],
  ['America/Sao_Paulo', '2026-11-23 08:00', '2026-12-01T09:00:00+01:00', '2026-12-01 05:00'],
  ['America/New_York', '2026-11-23 08:00', 'every monday at 9 Asia/Tokyo', '0 9 * * 1 in Asia/Tokyo'],
];

test('times that the clocks skip or repeat are refused with both meanings, and a named zone takes precedence', () => {
  const misread = CHANGES.map(([zone, now, phrase, wanted]) => ({
    zone,
    phrase,
    wanted,
    read: meaningOf(phrase, now, zone),
  }));
  assert.deepEqual(
    misread.filter(({ wanted, read }) => read !== wanted),
    [],
  );
});

test('an instant with an offset has the same meaning in every zone', () => {
  const now = Date.UTC(2026, 10, 22);
  for (const text of [
    '2026-12-01T09:00:00Z',
    '2026-12-01T09:00Z',
    '2026-12-01 10:00 +01:00',
    '2026-12-01t04:00:00-05:00',
  ])
    assert.deepEqual(readPhrase(text, { now, zone: 'Asia/Kathmandu' }), {
      kind: 'instant',
      at: Date.UTC(2026, 11, 1, 9),
      zone: 'Asia/Kathmandu',
    });
});

const WORDS =
  'every each day week month monday mon weekdays weekend tomorrow today tonight next this the of on at in and other second last first quarter end eod twice sunset , 9 9am 9:30 21:00 17:40 12pm 1st 15th 31st 24 december dec 2027 5 hours minutes 2 hour from to between noon midnight morning evening half a an 05/06 24.12. UTC :15 daily hourly eow eom'.split(
    ' ',
  );

test('no combination of vocabulary is read as a past instant, and every offered choice can be typed', () => {
  const now = Date.UTC(2026, 10, 22, 21, 30, 7);
  const phrases = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 7 }).map((chosen) => chosen.join(' '));
  const zones = fc.constantFrom(...ZONES);
  fc.assert(
    fc.property(phrases, zones, (phrase, zone) => {
      try {
        const reading = readPhrase(phrase, { now, zone });
        if (reading.kind === 'instant') assert.ok(reading.at > now, phrase);
      } catch (thrown) {
        assert.ok(thrown instanceof PhraseError, String(thrown));
        for (const choice of thrown.choices) {
          try {
            readPhrase(choice, { now, zone });
          } catch (again) {
            // A day without its time, or with another ambiguity, may have further choices; nonsense may not be offered.
            assert.ok(again instanceof PhraseError, String(again));
            assert.ok(!again.isUnknown, `${phrase} → ${choice}`);
          }
        }
      }
    }),
    { numRuns: rounds(1000, 4000) },
  );
});

test('any text is either read or refused', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 60 }), (text) => {
      try {
        readPhrase(text, { now: Date.UTC(2026, 10, 22), zone: 'UTC' });
      } catch (thrown) {
        assert.ok(thrown instanceof PhraseError, String(thrown));
      }
    }),
  );
  assert.throws(() => readPhrase('9am '.repeat(200), { now: 0, zone: 'UTC' }), /at most 200 characters/);
  assert.throws(
    () => readPhrase('tomorrow 9\u202eam', { now: 0, zone: 'UTC' }),
    /invisible characters \(it has U\+202E\)/,
  );
});
