import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../test/support/random/characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type CronFields, parseCron } from './cron.ts';

function bits(mask: number, lowest: number): number[] {
  return Array.from({ length: 32 }, (_, bit) => bit)
    .filter((bit) => (mask & (1 << bit)) !== 0)
    .map((bit) => bit + lowest);
}

/** The values of one field, by its index. */
function valuesOf(fields: CronFields, index: number): readonly number[] {
  switch (index) {
    case 0:
      return fields.minutes;
    case 1:
      return fields.hours;
    case 2:
      return bits(fields.daysOfMonth, 1);
    case 3:
      return bits(fields.months, 1);
    default:
      return bits(fields.daysOfWeek, 0);
  }
}

function range(from: number, to: number, step = 1): number[] {
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}

const ACCEPTED: [expression: string, place: number, values: number[]][] = [
  ['* * * * *', 0, range(0, 59)],
  ['*/15 * * * *', 0, [0, 15, 30, 45]],
  ['5/15 * * * *', 0, [5, 20, 35, 50]],
  ['10-20/5 * * * *', 0, [10, 15, 20]],
  ['59,0,30,30 * * * *', 0, [0, 30, 59]],
  ['05 * * * *', 0, [5]],
  ['*/60 * * * *', 0, [0]],
  ['0 * * * *', 1, range(0, 23)],
  ['0 9-17 * * *', 1, range(9, 17)],
  ['0 22/1 * * *', 1, [22, 23]],
  ['0 0 */10 * *', 2, [1, 11, 21, 31]],
  ['0 0 29/1 * *', 2, [29, 30, 31]],
  ['0 0 1 JAN,mar-May,12 *', 3, [1, 3, 4, 5, 12]],
  ['0 0 1 Sep/2 *', 3, [9, 11]],
  ['0 0 1 */5 *', 3, [1, 6, 11]],
  ['0 0 * * MON-fri', 4, [1, 2, 3, 4, 5]],
  ['0 0 * * 7', 4, [0]],
  ['0 0 * * 5-7', 4, [0, 5, 6]],
  ['0 0 * * 0-7', 4, range(0, 6)],
  ['0 0 * * SUN-SAT', 4, range(0, 6)],
  ['0 0 * * 1/2', 4, [0, 1, 3, 5]],
  ['0 0 * * */2', 4, [0, 2, 4, 6]],
  ['0 0 * * sat-7', 4, [0, 6]],
  ['  0\t0  *\t* \t 3 ', 4, [3]],
  ['@weekly', 4, [0]],
  ['@Hourly', 0, [0]],
  [' @yearly ', 3, [1]],
];

for (const [expression, index, values] of ACCEPTED) {
  test(`${JSON.stringify(expression)} is parsed`, () => {
    assert.deepEqual(valuesOf(parseCron(expression), index), values);
  });
}

test('descriptors have their documented meaning', () => {
  const same = (descriptor: string, expression: string) =>
    assert.deepEqual(parseCron(descriptor), parseCron(expression), descriptor);
  same('@yearly', '0 0 1 1 *');
  same('@annually', '0 0 1 1 *');
  same('@monthly', '0 0 1 * *');
  same('@weekly', '0 0 * * 0');
  same('@daily', '0 0 * * *');
  same('@midnight', '0 0 * * *');
  same('@hourly', '0 * * * *');
});

test('only a field that starts with a star counts as not restricted', () => {
  assert.equal(parseCron('0 0 1 * 1').eitherDay, true);
  assert.equal(parseCron('0 0 */2 * 1').eitherDay, false);
  assert.equal(parseCron('0 0 1 * */2').eitherDay, false);
  assert.equal(parseCron('0 0 *,5 * 1').eitherDay, false);
  assert.equal(parseCron('0 0 5,* * 1').eitherDay, true);
  assert.equal(parseCron('0 0 1-31 * 0-6').eitherDay, true);
});

test('a series follows real time when its minute or hour field starts with a star', () => {
  const following = (expression: string) => parseCron(expression).followsRealTime;
  for (const expression of ['* * * * *', '30 * * * *', '* 2 * * *', '*/15 2-4 * * *', '0 */2 * * *', '@hourly']) {
    assert.equal(following(expression), true, expression);
  }
  for (const expression of ['30 2 * * *', '0-59 2 * * *', '0/15 0-23 * * *', '0 5,* * * *', '@daily']) {
    assert.equal(following(expression), false, expression);
  }
});

const REFUSED: [expression: string, message: RegExp][] = [
  ['', /there are 0 fields; write five: minute hour day-of-month month day-of-week/],
  ['   ', /there are 0 fields/],
  ['*', /there is 1 field; write five/],
  ['0 0 * *', /there are 4 fields; write five/],
  ['0 0 0 * * *', /there are 6 fields; write five/],
  ['0 0 0 * * * 2026', /there are 7 fields; write five/],
  ['61 * * * *', /minute "61" is outside 0-59/],
  ['60 * * * *', /minute "60" is outside 0-59/],
  ['0 24 * * *', /hour "24" is outside 0-23/],
  ['0 0 0 * *', /day-of-month "0" is outside 1-31/],
  ['0 0 32 * *', /day-of-month "32" is outside 1-31/],
  ['0 0 1 13 *', /month "13" is outside 1-12/],
  ['0 0 * * 8', /day-of-week "8" is outside 0-7/],
  ['99999999999999999999 * * * *', /minute "9+" is outside 0-59/],
  ['30-10 * * * *', /minute "30-10" runs backwards; write the lower value first/],
  ['0 0 * * FRI-MON', /day-of-week "FRI-MON" runs backwards/],
  ['0 0 * * SAT-SUN', /day-of-week "SAT-SUN" runs backwards; Sunday is also 7/],
  ['0 0 1 DEC-JAN *', /month "DEC-JAN" runs backwards/],
  ['*/0 * * * *', /minute step "0" must be a whole number from 1 to 60/],
  ['*/-5 * * * *', /minute step "-5" must be a whole number/],
  ['*/ * * * *', /minute step "" must be a whole number/],
  ['*/1.5 * * * *', /minute step "1.5" must be a whole number/],
  ['*/90 * * * *', /minute step "90" must be a whole number from 1 to 60/],
  ['0 */25 * * *', /hour step "25" must be a whole number from 1 to 24/],
  ['1/2/3 * * * *', /minute "1\/2\/3" is not \*, a value 0-59/],
  ['1-2-3 * * * *', /minute "1-2-3" is not/],
  ['*-5 * * * *', /minute "\*-5" is not/],
  ['5-* * * * *', /minute "5-\*" is not/],
  ['*5 * * * *', /minute "\*5" is not/],
  ['** * * * *', /minute "\*\*" is not/],
  ['-5 * * * *', /minute "-5" is not/],
  ['5- * * * *', /minute "5-" is not/],
  ['/5 * * * *', /minute "\/5" is not/],
  ['+5 * * * *', /minute "\+5" is not/],
  ['1.5 * * * *', /minute "1.5" is not/],
  ['0x10 * * * *', /minute "0x10" is not/],
  ['1e1 * * * *', /minute "1e1" is not/],
  ['1,,2 * * * *', /minute "1,,2" has an empty list entry; remove a comma/],
  [', * * * *', /minute "," has an empty list entry/],
  ['1, * * * *', /empty list entry/],
  ['MON * * * *', /minute "MON" is not \*, a value 0-59, a range/],
  ['0 0 1 FOO *', /month "FOO" is not \*, a value 1-12 or JAN-DEC/],
  ['0 0 1 January *', /month "January" is not/],
  ['0 0 * * MONDAY', /day-of-week "MONDAY" is not \*, a value 0-7 or SUN-SAT/],
  ['0 0 ? * *', /day-of-month "\?" is not/],
  ['0 0 L * *', /day-of-month "L" is not/],
  ['0 0 15W * *', /day-of-month "15W" is not/],
  ['0 0 * * 5#2', /day-of-week "5#2" is not/],
  ['H * * * *', /minute "H" is not/],
  ['constructor * * * *', /minute "constructor" is not/],
  ['٣ * * * *', /the character U\+0663/],
  ['\uff15 * * * *', /the character U\+FF15/],
  ['0 0\u00a0* * *', /the character U\+00A0/],
  ['0 0 * * *\n', /the character U\+000A/],
  ['0 0 * * *\r\n0 1 * * *', /the character U\+000D/],
  ['0 0 * * *\0', /the character U\+0000/],
  ['0 0 * * 😀', /the character U\+1F600/],
  ['@reboot', /"@reboot" is not a descriptor; write one of @yearly, .*@hourly, or @every/],
  ['@daily 5', /"@daily 5" is not a descriptor/],
  ['@', /"@" is not a descriptor/],
  ['TZ=Europe/Berlin 0 0 * * *', /a zone is not allowed in cron_expr; use timezone/],
  ['CRON_TZ=UTC 0 0 * * *', /use timezone/],
  ['0 0 30 2 *', /no date ever matches, month 2 has no day 30/],
  ['0 0 31 2 *', /no date ever matches/],
  ['0 0 31 FEB,4,6,9-11/2 *', /no date ever matches/],
  ['0 0 30-31 2 */2', /no date ever matches/],
];

for (const [expression, message] of REFUSED) {
  test(`${JSON.stringify(expression)} is rejected with the field, the value and the remedy`, () => {
    assert.throws(
      () => parseCron(expression),
      (error) => {
        assert.ok(error instanceof ReveilleError);
        assert.equal(error.code, 'invalid_request');
        assert.match(error.message, /^cron_expr: /);
        assert.match(error.message, message);
        assert.match(error.message, /\(got "/);
        return true;
      },
    );
  });
}

test('a date that only leap years have is accepted, and an impossible date combined with a weekday too', () => {
  parseCron('0 0 29 2 *');
  parseCron('0 0 29 2 */7');
  parseCron('0 0 31 2 1');
  parseCron('0 0 31 */2 *');
});

test('for any input, the parser returns a result or throws one error type', () => {
  const scraps = fc.array(
    fc.constantFrom(...'0123456789*/,-? \t@#LWH'.split(''), 'MON', 'feb', '@every', '60', '\n', 'é'),
    {
      maxLength: 24,
    },
  );
  const texts = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 40 }),
    scraps.map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        const fields = parseCron(text);
        assert.ok(fields.minutes.length > 0 && fields.hours.length > 0);
      } catch (error) {
        assert.ok(error instanceof ReveilleError, String(error));
        assert.match(error.message, /^cron_expr: /);
      }
    }),
    { numRuns: 2_000 },
  );
});
