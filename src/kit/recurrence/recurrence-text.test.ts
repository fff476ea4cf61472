import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recurrenceText } from './recurrence-text.ts';

const AT_TEN = ';BYHOUR=10;BYMINUTE=0;BYSECOND=0';

for (const [rule, expected] of [
  [`FREQ=WEEKLY;INTERVAL=2;BYDAY=MO${AT_TEN}`, 'every 2 weeks on Monday at 10:00'],
  [
    'DTSTART:20260105T093000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR',
    'every 2 weeks on Monday and Friday at 09:30 from 2026-01-05',
  ],
  ['FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0', 'every month on the last Friday at 17:00'],
  [`FREQ=MONTHLY;BYDAY=2TU,-2TU${AT_TEN}`, 'every month on the 2nd Tuesday and the 2nd last Tuesday at 10:00'],
  [`FREQ=MONTHLY;BYMONTHDAY=1,15${AT_TEN}`, 'every month on day 1 and day 15 at 10:00'],
  [`FREQ=MONTHLY;BYMONTHDAY=-1${AT_TEN}`, 'every month on the last day at 10:00'],
  [`FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1${AT_TEN}`, 'every month on the last weekday at 10:00'],
  [`FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=1${AT_TEN}`, 'every 3 months on day 1 at 10:00'],
  [`FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24${AT_TEN}`, 'every year on December 24 at 10:00'],
  [`FREQ=YEARLY;BYMONTH=11;BYDAY=-1FR${AT_TEN}`, 'every year on the last Friday in November at 10:00'],
  [`FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR${AT_TEN}`, 'every weekday at 10:00'],
  [`FREQ=WEEKLY;BYDAY=SA,SU${AT_TEN}`, 'every Saturday and Sunday at 10:00'],
  ['FREQ=DAILY;BYHOUR=9,12;BYMINUTE=30;COUNT=5', 'every day at 09:30 and 12:30, 5 times'],
  ['FREQ=DAILY;INTERVAL=3;UNTIL=20261231', 'every 3 days until 2026-12-31'],
  [`RRULE:FREQ=DAILY${AT_TEN}\nEXDATE:20261224T100000`, 'every day at 10:00, except 1 date'],
  ['FREQ=HOURLY;INTERVAL=5', 'every 5 hours'],
  ['DTSTART:20280229T090000\nRRULE:FREQ=YEARLY', 'every year on February 29 at 09:00 in leap years from 2028-02-29'],
  [
    'DTSTART:20260131T090000\nRRULE:FREQ=MONTHLY',
    'every month on day 31 at 09:00 in months that have it from 2026-01-31',
  ],
  [`FREQ=MONTHLY;BYDAY=5FR${AT_TEN}`, 'every month on the 5th Friday at 10:00 in months that have it'],
  ['DTSTART:20260105T110000\nRRULE:FREQ=DAILY;BYHOUR=10', 'every day at 10:00 from 2026-01-05 11:00'],
  ['FREQ=DAILY;BYHOUR=9;BYMINUTE=0;UNTIL=20261231T080000Z', 'every day at 09:00 until 2026-12-31 08:00 UTC'],
  [`FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO${AT_TEN}`, 'every 2 weeks on Monday at 10:00, weeks beginning on Sunday'],
  ['FREQ=MINUTELY;INTERVAL=45;BYMONTH=6,7', 'every 45 minutes in June and July'],
] as const)
  test(`${rule.replaceAll('\n', ' ')} reads as "${expected}"`, () => {
    assert.equal(recurrenceText(rule), expected);
  });

test('rules without a simple phrase have no text', () => {
  for (const rule of [
    'FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO',
    'FREQ=YEARLY;BYDAY=20MO',
    'FREQ=MONTHLY;BYDAY=MO;BYSETPOS=2,3',
    'FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13',
    'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=30',
    'FREQ=HOURLY;BYMINUTE=5',
    'RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY',
    'RRULE:FREQ=DAILY\nRDATE:20261224T100000',
    'FREQ=DAILY;INTERVAL=2;BYDAY=MO',
    'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1;BYHOUR=9,10;BYMINUTE=0',
    'FREQ=MONTHLY;BYHOUR=9;BYMINUTE=0',
    'DTSTART:20260105T093007\nRRULE:FREQ=DAILY',
    'nonsense',
  ])
    assert.equal(recurrenceText(rule), undefined, rule);
});
