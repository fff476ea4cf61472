import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ReveilleError } from '../../wire/errors.ts';
import { isEvery, parseEvery } from './every.ts';

const ACCEPTED: [expression: string, milliseconds: number][] = [
  ['@every 90s', 90_000],
  ['@every 1h30m', 5_400_000],
  ['@every 1h30m15.5s', 5_415_500],
  ['@every 1.5h', 5_400_000],
  ['@every .5m', 30_000],
  ['@every 1.m', 60_000],
  ['@every +10s', 10_000],
  ['@every 0h10s', 10_000],
  ['@every 30m1h', 5_400_000],
  ['@every 10s10s', 20_000],
  ['@every 250ms', 250],
  ['@every 3000000us', 3_000],
  ['@every 3000000µs', 3_000],
  ['@every 3000000μs', 3_000],
  ['@every 5000000000ns', 5_000],
  ['@every 0.1s', 100],
  ['@every 8784h', 31_622_400_000],
  ['  @EVERY \t 10s ', 10_000],
];

for (const [expression, milliseconds] of ACCEPTED) {
  test(`${JSON.stringify(expression)} is ${milliseconds} ms`, () => {
    assert.ok(isEvery(expression));
    assert.equal(parseEvery(expression), milliseconds);
  });
}

const REFUSED: [expression: string, message: RegExp][] = [
  ['@every', /@every takes one duration/],
  ['@every ', /@every takes one duration/],
  ['@every10s', /@every takes one duration/],
  ['@every 1h 30m', /@every takes one duration without spaces inside/],
  ['@every 10s\n', /@every takes one duration/],
  ['@every 0', /must be more than zero/],
  ['@every 0s', /must be more than zero/],
  ['@every -5m', /must be more than zero/],
  ['@every -0s', /must be more than zero/],
  ['@every 10', /"10" is not a duration; write numbers with h, m, s or ms/],
  ['@every s', /"s" is not a duration/],
  ['@every .s', /is not a duration/],
  ['@every 1d', /is not a duration/],
  ['@every 1M', /is not a duration/],
  ['@every 1e3s', /is not a duration/],
  ['@every 1.2.3s', /is not a duration/],
  ['@every PT5M', /is not a duration/],
  ['@every 5 minutes', /@every takes one duration/],
  ['@every ٥s', /is not a duration/],
  ['@every 1.5ms', /whole number of milliseconds/],
  ['@every 10s1ns', /whole number of milliseconds/],
  ['@every 10.00000000000000001s', /whole number of milliseconds/],
  ['@every 87841h', /at most 87840h, ten years/],
  [`@every ${'9'.repeat(150)}h`, /at most 87840h/],
];

for (const [expression, message] of REFUSED) {
  test(`${JSON.stringify(expression).slice(0, 40)} is rejected with the remedy`, () => {
    assert.ok(isEvery(expression));
    assert.throws(
      () => parseEvery(expression),
      (error) => {
        assert.ok(error instanceof ReveilleError);
        assert.equal(error.code, 'invalid_request');
        assert.match(error.message, /^cron_expr: /);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('other expressions are not read as @every', () => {
  for (const expression of ['0 0 * * *', '@daily', '@everyone 5s', 'every 5s', '', '@@every 5s']) {
    assert.equal(isEvery(expression), false, expression);
  }
});

test('a duration is the exact sum of its parts', () => {
  const part = fc.record({
    hours: fc.nat(99),
    minutes: fc.nat(999),
    seconds: fc.nat(9_999),
    milliseconds: fc.nat(99_999),
  });
  fc.assert(
    fc.property(part, ({ hours, minutes, seconds, milliseconds }) => {
      const sum = hours * 3_600_000 + minutes * 60_000 + seconds * 1_000 + milliseconds;
      fc.pre(sum > 0);
      assert.equal(parseEvery(`@every ${hours}h${minutes}m${seconds}s${milliseconds}ms`), sum);
      const decimal = `${Math.floor(sum / 1_000)}.${String(sum % 1_000).padStart(3, '0')}`;
      assert.equal(parseEvery(`@every ${decimal}s`), sum);
    }),
  );
});

test('a long text that is almost a duration is refused at once', () => {
  // An expression that can split `11` in two ways would try 2^60 combinations.
  assert.throws(() => parseEvery(`@every ${'11h'.repeat(60)}!`));
});
