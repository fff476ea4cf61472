import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { offsetAt } from '../clock/zone.ts';
import { readPhrase } from './phrase.ts';
import { PhraseError, type Reading } from './reading.ts';

/** Five zones: two that put their clocks in opposite seasons, one by half an hour, one never, one 5 h 45 min ahead. */
const ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/Sao_Paulo', 'Asia/Kathmandu'];

/** The instant at which a zone's clocks show a wall time that they show once. */
function instantOf(wall: string, zone: string): number {
  const utc = Date.parse(`${wall.replace(' ', 'T')}Z`);
  return [-1, 0, 1]
    .map((day) => utc - offsetAt(zone, utc + day * 86_400_000))
    .find((at) => at + offsetAt(zone, at) === utc)!;
}

/** `2026-11-23 09:00`, `+7200` seconds, a cron expression, or `✗` with the choices. */
function told(phrase: string, wallNow: string, zone: string): string {
  let reading: Reading;
  try {
    reading = readPhrase(phrase, { now: instantOf(wallNow, zone), zone });
  } catch (thrown) {
    if (!(thrown instanceof PhraseError)) throw thrown;
    return ['✗', ...thrown.choices].join(' | ');
  }
  if (reading.kind === 'delay') return `+${reading.seconds}`;
  if (reading.kind === 'series') return reading.zone === zone ? reading.cron : `${reading.cron} in ${reading.zone}`;
  const wall = new Date(reading.at + offsetAt(zone, reading.at)).toISOString();
  return `${wall.slice(0, 10)} ${wall.slice(11, wall.slice(17, 19) === '00' ? 16 : 19)}`;
}

/** Phrases by when they are typed, with what they mean; the same in every zone. */
const PHRASES: Readonly<Record<string, string>> = {
  // On a Sunday at half past ten in the evening.
  '2026-11-22 22:30:07': `
    tomorrow 9am                          = 2026-11-23 09:00
    Tomorrow, 9 AM                        = 2026-11-23 09:00
    tomorrow at 9 a.m.                    = 2026-11-23 09:00
    9am tomorrow                          = 2026-11-23 09:00
    tomorrow at 9                         = 2026-11-23 09:00
    tomorrow at 9 o'clock                 = 2026-11-23 09:00
    tomorrow at nine                      = 2026-11-23 09:00
    tomorrow at 09:00                     = 2026-11-23 09:00
    tomorrow at 9:05:30                   = 2026-11-23 09:05:30
    tomorrow at 21                        = 2026-11-23 21:00
    tomorrow at 5                         = ✗ | tomorrow at 5:00 | tomorrow at 17:00
    tomorrow at 7                         = ✗ | tomorrow at 7:00 | tomorrow at 19:00
    tomorrow at 12                        = ✗ | tomorrow at noon | tomorrow at midnight
    tomorrow at 12am                      = ✗ | tomorrow at noon | tomorrow at midnight
    tomorrow 12:30 pm                     = ✗ | tomorrow 12:30 | tomorrow 0:30
    tomorrow at noon                      = 2026-11-23 12:00
    noon tomorrow                         = 2026-11-23 12:00
    tomorrow at midnight                  = ✗ | 2026-11-23 00:00 | 2026-11-24 00:00
    tomorrow morning at 7                 = 2026-11-23 07:00
    tomorrow at 7 in the morning          = 2026-11-23 07:00
    tomorrow at 7 in the evening          = 2026-11-23 19:00
    tomorrow evening at 7:30              = 2026-11-23 19:30
    tomorrow afternoon at 3               = 2026-11-23 15:00
    tomorrow night at 11                  = 2026-11-23 23:00
    tomorrow night at 1                   = ✗
    tomorrow morning at 14:00             = ✗
    tomorrow morning                      = ✗ | tomorrow morning at 9
    tomorrow                              = ✗ | tomorrow at 9:00
    tomorrow at 9 and 17                  = ✗
    tomorrow friday at 9:00               = ✗
    tomorow 9am                           = ✗
    tomorrow at 25:00                     = ✗
    tomorrow at 24:00                     = ✗
    tomorrow at 9:60                      = ✗
    tomorrow at 13pm                      = ✗
    tomorrow at 0pm                       = ✗
    the day after tomorrow at 14:00       = 2026-11-24 14:00
    day after tomorrow 2pm                = 2026-11-24 14:00
    9:30pm                                = 2026-11-23 21:30
    at 9:30 pm                            = 2026-11-23 21:30
    11pm                                  = 2026-11-22 23:00
    23:00                                 = 2026-11-22 23:00
    22:30                                 = 2026-11-23 22:30
    9am                                   = 2026-11-23 09:00
    9                                     = 2026-11-23 09:00
    5                                     = ✗ | 5:00 | 17:00
    17                                    = 2026-11-23 17:00
    noon                                  = 2026-11-23 12:00
    midnight                              = 2026-11-23 00:00
    tonight at midnight                   = 2026-11-23 00:00
    tonight at 11                         = 2026-11-22 23:00
    tonight at 11:15pm                    = 2026-11-22 23:15
    tonight at 8                          = ✗ | 2026-11-23 20:00
    tonight                               = ✗ | tonight at 9
    this evening at 11                    = 2026-11-22 23:00
    today at 23:00                        = 2026-11-22 23:00
    today at 9am                          = ✗ | 2026-11-23 09:00
    7 in the evening                      = 2026-11-23 19:00
    friday 9am                            = 2026-11-27 09:00
    on friday at 18:00                    = 2026-11-27 18:00
    fri 6pm                               = 2026-11-27 18:00
    6pm on Friday                         = 2026-11-27 18:00
    coming friday at 18:00                = 2026-11-27 18:00
    friday                                = ✗ | friday at 9:00
    monday at 9                           = 2026-11-23 09:00
    sunday 9am                            = 2026-11-29 09:00
    sunday 23:00                          = ✗ | 2026-11-22 23:00 | 2026-11-29 23:00
    next friday at 9:00                   = ✗ | 2026-11-27 09:00 | 2026-12-04 09:00
    next sunday at 9:00                   = ✗ | 2026-11-29 09:00 | 2026-12-06 09:00
    this friday at 9:00                   = ✗ | 2026-11-27 09:00
    friday next week at 9:00              = ✗ | 2026-11-27 09:00 | 2026-12-04 09:00
    frday 9am                             = ✗
    monday to friday at 9:00              = ✗ | every monday to friday at 9:00
    2026-12-01 09:00                      = 2026-12-01 09:00
    2026-12-01T09:00                      = 2026-12-01 09:00
    2026-12-01t09:00:30                   = 2026-12-01 09:00:30
    2026/12/01 9am                        = 2026-12-01 09:00
    2026-12-01 at noon                    = 2026-12-01 12:00
    2026-12-01                            = ✗ | 2026-12-01 at 9:00
    2026-11-01 09:00                      = ✗
    2026-02-30 09:00                      = ✗
    2026-13-01 09:00                      = ✗
    24 december at 18:00                  = 2026-12-24 18:00
    24 dec 6pm                            = 2026-12-24 18:00
    dec 24 6pm                            = 2026-12-24 18:00
    dec 24th, 6pm                         = 2026-12-24 18:00
    December 24, 2027 at 6:30 pm          = 2027-12-24 18:30
    24th of december 2027 at 18:30        = 2027-12-24 18:30
    1st of january at noon                = 2027-01-01 12:00
    the 1st of january at noon            = 2027-01-01 12:00
    november 22 at 23:00                  = 2026-11-22 23:00
    november 22 at 9:00                   = 2027-11-22 09:00
    november 1 at 9:00                    = 2027-11-01 09:00
    29 february at 9:00                   = 2028-02-29 09:00
    31 november at 9:00                   = ✗
    december at 9:00                      = ✗
    24 december                           = ✗ | 24 december at 9:00
    24 december 1999 at 9:00              = ✗
    the 1st at 9:00                       = ✗
    05/06 at 9am                          = ✗ | may 6 at 9am | june 5 at 9am
    5/6/2027 9:00                         = ✗ | may 6 2027 9:00 | june 5 2027 9:00
    05.06.2027 9:00                       = ✗ | may 6 2027 9:00 | june 5 2027 9:00
    25/12 at 9am                          = 2026-12-25 09:00
    12/25 at 9am                          = 2026-12-25 09:00
    12/25/2026 9am                        = 2026-12-25 09:00
    24.12.2026 18:00                      = 2026-12-24 18:00
    24.12. 18:00                          = 2026-12-24 18:00
    5/5 at 9:00                           = 2027-05-05 09:00
    9.30                                  = ✗ | 9:30
    9.12                                  = ✗ | 9:12 | december 9
    01-02-2027 9:00                       = ✗
    31/31 at 9:00                         = ✗
    in 2 hours                            = +7200
    in two hours                          = +7200
    in 2h                                 = +7200
    in 90 min                             = +5400
    in an hour                            = +3600
    in half an hour                       = +1800
    in an hour and a half                 = +5400
    in 1 hour and 30 minutes              = +5400
    in 1 hour 30 minutes                  = +5400
    in 1.5 hours                          = +5400
    in 45 seconds                         = +45
    2 hours from now                      = +7200
    2 hours                               = ✗ | in 2 hours
    17h                                   = ✗ | in 17 h | 17:00
    in 0 minutes                          = ✗ | in 1 second
    in 2 hours at 9am                     = ✗
    in 2 hours tomorrow                   = ✗
    in 1.5 days                           = ✗
    in 2 days                             = 2026-11-24 22:30:07
    in 3 days at 9am                      = 2026-11-25 09:00
    in a week                             = 2026-11-29 22:30:07
    in 2 weeks at 9:00                    = 2026-12-06 09:00
    a week from now                       = 2026-11-29 22:30:07
    in 1 month                            = 2026-12-22 22:30:07
    in a year at noon                     = 2027-11-22 12:00
    every weekday at 9                    = 0 9 * * 1-5
    every weekday at 9am                  = 0 9 * * 1-5
    weekdays at 9:15                      = 15 9 * * 1-5
    at 9:15 on weekdays                   = 15 9 * * 1-5
    every working day at 9:15             = 15 9 * * 1-5
    every workday at five                 = ✗ | every workday at 5:00 | every workday at 17:00
    every day at 9                        = 0 9 * * *
    every day at 7                        = ✗ | every day at 7:00 | every day at 19:00
    every day at 7 Asia/Tokyo             = ✗ | every day at 7:00 Asia/Tokyo | every day at 19:00 Asia/Tokyo
    tomorrow at 5pm and 5                 = ✗
    8 o'clock tomorrow                    = ✗ | 8:00 tomorrow | 20:00 tomorrow
    daily at 9am                          = 0 9 * * *
    9am daily                             = 0 9 * * *
    daily at noon                         = 0 12 * * *
    every day at midnight                 = 0 0 * * *
    every morning at 7                    = 0 7 * * *
    every evening at 8                    = 0 20 * * *
    every afternoon at 3:30               = 30 15 * * *
    every night at 11                     = 0 23 * * *
    every day at 9 and 17                 = 0 9,17 * * *
    every day at 9:30, 13:30 and 17:30    = 30 9,13,17 * * *
    every day at 9:00 and 17:30           = ✗
    every day at 9:00:30                  = ✗
    every day                             = ✗ | every day at 9:00
    every monday at 9                     = 0 9 * * 1
    mondays at 9                          = 0 9 * * 1
    every monday and thursday at 18:00    = 0 18 * * 1,4
    mondays and thursdays at 18:00        = 0 18 * * 1,4
    every mon, wed, fri at 9am            = 0 9 * * 1,3,5
    every mon, wed and fri at 9am         = 0 9 * * 1,3,5
    every monday to friday at 9:00        = 0 9 * * 1-5
    every fri to mon at 9:00              = 0 9 * * 0,1,5,6
    every weekend at 10am                 = 0 10 * * 0,6
    weekends at 10am                      = 0 10 * * 0,6
    weekly on monday at 9:00              = 0 9 * * 1
    every week on monday and friday at 9  = 0 9 * * 1,5
    every week at 9:00                    = ✗ | every monday at 9:00
    every monday                          = ✗ | every monday at 9:00
    every monday at midnight              = ✗ | every monday at 0:00
    every other monday at 9:00            = ✗
    every first monday at 9:00            = ✗
    first monday of the month at 9:00     = ✗
    every friday the 13th at 9:00         = ✗
    every 2 days at 9:00                  = ✗ | every 48 hours
    every other day at 9:00               = ✗ | every 48 hours
    every 2 weeks                         = ✗ | every 336 hours
    every 3 months on the 1st at 9:00     = ✗
    every hour                            = @every 1h
    hourly                                = @hourly
    every hour at :15                     = 15 * * * *
    every 15 minutes                      = @every 15m
    every 7 minutes                       = @every 7m
    every two hours                       = @every 2h
    every 30 seconds                      = @every 30s
    every 1.5 hours                       = ✗
    every hour at 9am                     = ✗
    every hour from 9 to 17               = 0 9-17 * * *
    every hour from 9 to 17 on weekdays   = 0 9-17 * * 1-5
    weekdays every hour between 9am and 5pm = ✗
    every hour between 9am and 5pm        = 0 9-17 * * *
    every hour between 17 and 9           = ✗
    every 15 minutes from 9 to 17         = ✗
    every month on the 1st at 9           = 0 9 1 * *
    on the 1st of every month at 9am      = 0 9 1 * *
    every 1st of the month at 9am         = 0 9 1 * *
    monthly on the 15th at 9:00           = 0 9 15 * *
    monthly on the 1st and 15th at 9:00   = 0 9 1,15 * *
    monthly at 9:00                       = ✗ | every month on the 1st at 9:00
    monthly on the 31st at 9:00           = ✗ | 0 9 31 * * | every month on the 28th at 9:00
    every month on monday at 9:00         = ✗
    every year on december 24 at 18:00    = 0 18 24 12 *
    yearly on 24 dec at 18:00             = 0 18 24 12 *
    every 24 december at 18:00            = 0 18 24 12 *
    every december 24 at 18:00            = 0 18 24 12 *
    every year at 18:00                   = ✗ | every year on december 24 at 18:00
    every 29 february at 9:00             = ✗ | 0 9 29 2 *
    every 31 june at 9:00                 = ✗
    every 24 december 2027 at 18:00       = ✗
    every                                 = ✗ | every day at 9:00 | every hour
    0 9 * * 1-5                           = 0 9 * * 1-5
    */15 9-17 * * mon-fri                 = */15 9-17 * * mon-fri
    @daily                                = @daily
    @every 90s                            = @every 90s
    0 9 * * 1-5 Pacific/Apia              = 0 9 * * 1-5 in Pacific/Apia
    every day at 9 in Asia/Tokyo          = 0 9 * * * in Asia/Tokyo
    every day at 9 UTC                    = 0 9 * * * in UTC
    tomorrow 9am EST                      = ✗
    tomorrow 9am PT                       = ✗
    tomorrow 9am Europe/Berlni            = ✗
    yesterday                             = ✗
    2 hours ago                           = ✗
    last friday                           = ✗
    now                                   = ✗ | in 1 second
    by friday                             = ✗
    next week                             = ✗
    twice a day                           = ✗
    soon                                  = ✗
    quarter past nine                     = ✗
    half nine                             = ✗
    9am; rm -rf                           = ✗
    every day at 9 until december         = ✗
    in the morning                        = ✗ | in the morning at 9
    %                                     = ✗
    2026-12-01 09:00 2026-12-02 09:00     = ✗
    every monday at 9 and tuesday at 10   = ✗
    weekdays at 9 and weekends at 10      = ✗
    every monday at 9:00 and friday       = ✗
    every month on the 1st at 9:00 and the 15th at 17:00 = ✗
    every month on the 1st and 15 at 9:00 = ✗
    9 and 10 december                     = ✗
    every december 9 and 10               = ✗
    every december 9 and 10th at 9:00     = ✗
    every 24 december on mondays at 9:00  = ✗
    dec 24 and 9am                        = 2026-12-24 09:00
    every day at 7 and 9 in the evening   = ✗
    every day at 9:00 and at 10 in the evening = ✗
    every evening at 7 and 9              = 0 19,21 * * *
    friday every hour                     = 0 * * * 5
    every hour on friday and saturday     = 0 * * * 5,6
    monday every hour from 9 to 17        = 0 9-17 * * 1
    hourly on monday                      = 0 * * * 1
    every minute on monday                = ✗
    every hour next friday                = ✗
    weekly next friday at 9:00            = ✗
    every hour in the morning             = ✗
    every 15 minutes in the evening       = ✗
    every hour from 1 to 5                = ✗ | every hour from 1:00 to 5:00 | every hour from 13:00 to 17:00
    every hour between 1 and 5pm          = ✗ | every hour from 1:00 to 17:00 | every hour from 13:00 to 17:00
    every hour from 1 to 5am              = 0 1-5 * * *
    every hour from 8 to 12               = 0 8-12 * * *
    every hour from 9 to 5pm              = 0 9-17 * * *
    every hour at :15 and :45             = ✗
    tomorrow 21h                          = ✗ | tomorrow 21:00
    tomorrow 9h30                         = ✗
    in 2 months on the 1st at 9:00        = ✗
    in 2 hours from 9 to 17               = ✗
    in 300000 years                       = ✗
    in 999999 weeks                       = ✗`,
  // On a Friday afternoon.
  '2026-11-20 15:00': `
    friday 9am                            = 2026-11-27 09:00
    friday 18:00                          = ✗ | 2026-11-20 18:00 | 2026-11-27 18:00
    this friday at 18:00                  = 2026-11-20 18:00
    this friday at 9:00                   = ✗ | 2026-11-27 09:00
    this sunday at 9:00                   = 2026-11-22 09:00
    this monday at 9:00                   = ✗ | 2026-11-23 09:00
    next friday at 9:00                   = ✗ | 2026-11-27 09:00 | 2026-12-04 09:00
    next monday at 9:00                   = ✗ | 2026-11-23 09:00 | 2026-11-30 09:00
    monday next week at 9:00              = 2026-11-23 09:00
    friday next week at 9:00              = 2026-11-27 09:00
    sunday next week at 9:00              = ✗ | 2026-11-22 09:00 | 2026-11-29 09:00
    tonight at 8                          = 2026-11-20 20:00
    9pm                                   = 2026-11-20 21:00
    3pm                                   = 2026-11-21 15:00
    15:01                                 = 2026-11-20 15:01
    midnight                              = 2026-11-21 00:00`,
  // At the end of a long month.
  '2027-01-31 10:00': `
    in 1 month                            = ✗ | 2027-02-28 10:00 | 2027-03-01 10:00
    in 2 months at 12:00                  = 2027-03-31 12:00
    tomorrow 9am                          = 2027-02-01 09:00`,
};

const rows = Object.entries(PHRASES).flatMap(([now, lines]) =>
  lines
    .trim()
    .split('\n')
    .map((line) => {
      const [, phrase, wanted] = /^\s*(.*?)\s+= (.*)$/.exec(line) as unknown as [string, string, string];
      return { now, phrase, wanted };
    }),
);

describe('each phrase means one thing, the same in five zones, or is refused with the choices', () => {
  for (const zone of ZONES) {
    test(`${rows.length} phrases in ${zone}`, () => {
      const misread = rows
        .map((row) => ({ ...row, read: told(row.phrase, row.now, zone) }))
        .filter(({ wanted, read }) => read !== wanted);
      assert.deepEqual(misread, []);
    });
  }
});

/** Around the hours that clocks skip or repeat: zone, wall time now, phrase, meaning. */
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
];

test('times that the clocks skip or repeat are refused with both that can be meant', () => {
  const misread = CHANGES.map(([zone, now, phrase, wanted]) => ({
    zone,
    phrase,
    wanted,
    read: told(phrase, now, zone),
  }));
  assert.deepEqual(
    misread.filter(({ wanted, read }) => read !== wanted),
    [],
  );
});

test('an instant with its offset is that instant, whatever the zone', () => {
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
  'every each day week month monday mon weekdays weekend tomorrow today tonight next this the of on at in and , 9 9am 9:30 21:00 12pm 1st 15th 31st 24 december dec 2027 5 hours minutes 2 hour from to between noon midnight morning evening half a an 05/06 24.12. UTC :15 daily hourly'.split(
    ' ',
  );

test('whatever words are put together, nothing in the past is read, and a choice that is offered can be typed', () => {
  const now = Date.UTC(2026, 10, 22, 21, 30, 7);
  const phrases = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 7 }).map((words) => words.join(' '));
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
            // A day without its time, or with another doubt, may be asked about further; nonsense may not be offered.
            assert.ok(again instanceof PhraseError, String(again));
            assert.ok(!again.isUnknown, `${phrase} → ${choice}`);
          }
        }
      }
    }),
    { numRuns: 4000 },
  );
});

test('text of any kind is read or refused, and nothing else', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      try {
        readPhrase(text, { now: Date.UTC(2026, 10, 22), zone: 'UTC' });
      } catch (thrown) {
        assert.ok(thrown instanceof PhraseError, String(thrown));
      }
    }),
  );
  assert.throws(() => readPhrase('9am '.repeat(200), { now: 0, zone: 'UTC' }), /at most 200 characters/);
});
