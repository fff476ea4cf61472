import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileRule } from '../../../src/chronos/alarm/schedule.ts';
import { run } from './comparison.ts';
import { instantOf, realTimeOccurrences } from './in-zone.ts';
import { rruleTemporal } from './libraries.ts';

const iso = (instants: readonly number[] | undefined) => instants?.map((at) => new Date(at).toISOString().slice(0, 16));

test('the oracle gives the known answers', () => {
  const berlin = (wall: string) => new Date(instantOf(Date.parse(`${wall}Z`), 'Europe/Berlin')).toISOString();
  assert.equal(berlin('2026-03-29T02:30:00'), '2026-03-29T01:00:00.000Z');
  assert.equal(berlin('2026-10-25T02:30:00'), '2026-10-25T00:30:00.000Z');
  assert.equal(berlin('2026-10-25T03:00:00'), '2026-10-25T02:00:00.000Z');
  const start = Date.parse('2026-10-24T22:00:00Z');
  const rule = { text: '', frequency: 'HOURLY', parts: { FREQ: 'HOURLY', INTERVAL: '2' } } as const;
  const hours = realTimeOccurrences(rule, start, 'Europe/Berlin', { after: start, take: 3 });
  assert.deepEqual(iso(hours), ['2026-10-25T00:00', '2026-10-25T02:00', '2026-10-25T04:00']);
});

/** Examples of RFC 5545, section 3.8.5.3, whose answers are printed there. All begin at 9:00 in New York. */
test('the examples of RFC 5545 have the answers that are printed there', () => {
  const zone = 'America/New_York';
  for (const [start, rule, expected] of [
    ['19970902', 'FREQ=WEEKLY;INTERVAL=2;WKST=SU;COUNT=8;BYDAY=TU,TH', '0902 0904 0916 0918 0930 1002 1014 1016'],
    ['19970905', 'FREQ=MONTHLY;COUNT=10;BYDAY=1FR', '0905 1003 1107 1205 0102 0206 0306 0403 0501 0605'],
    ['19970922', 'FREQ=MONTHLY;COUNT=6;BYDAY=-2MO', '0922 1020 1117 1222 0119 0216'],
    ['19970930', 'FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1', '0930 1001 1031 1101 1130 1201 1231 0101 0131 0201'],
    [
      '19970101',
      'FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200',
      '0101 0410 0719 0101 0409 0718 0101 0410 0719 0101',
    ],
    ['19970519', 'FREQ=YEARLY;BYDAY=20MO;COUNT=3', '0519 0518 0517'],
    ['19970512', 'FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO;COUNT=3', '0512 0511 0517'],
    ['19970902', 'FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=5', '0213 0313 1113 0813 1013'],
    ['19961105', 'FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8;COUNT=3', '1105 1107 1102'],
    ['19970904', 'FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3', '0904 1007 1106'],
    ['19970929', 'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2;COUNT=7', '0929 1030 1127 1230 0129 0226 0330'],
    ['19970805', 'FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO', '0805 0810 0819 0824'],
    ['19970805', 'FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU', '0805 0817 0819 0831'],
    ['20070115', 'FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5', '0115 0130 0215 0315 0330'],
  ] as const) {
    const { next } = compileRule(`DTSTART:${start}T090000\nRRULE:${rule}`, zone, 0);
    const found: string[] = [];
    for (let at = next(0); at !== undefined; at = next(at)) {
      const reading = new Date(at).toLocaleString('sv-SE', { timeZone: zone });
      assert.match(reading, / 09:00:00$/);
      found.push(reading.slice(5, 10).replace('-', ''));
    }
    assert.equal(found.join(' '), expected, rule);
  }
});

test('the engine agrees with the libraries on random rules', () => {
  const { tally, mismatches } = run(20_261_127, 120);
  assert.deepEqual(mismatches, []);
  assert.ok(tally.agreedByAll > 80 && tally.zoned > 40 && tally.realTime > 10, JSON.stringify(tally));
});

test('a difference is found', () => {
  const question = {
    rule: 'FREQ=WEEKLY;BYDAY=MO',
    start: Date.UTC(2026, 0, 1, 9),
    after: Date.UTC(2026, 0, 1),
    take: 2,
  };
  assert.deepEqual(iso(rruleTemporal(question)), ['2026-01-05T09:00', '2026-01-12T09:00']);
  assert.notDeepEqual(rruleTemporal({ ...question, rule: 'FREQ=WEEKLY;BYDAY=TU' }), rruleTemporal(question));
});
