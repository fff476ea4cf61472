import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare, emptyTally, run, shrink } from './comparison.ts';
import { oracleOf, weekdayOf } from './oracle.ts';
import { wallDaysOf } from './wall-days.ts';

function next(expression: string, timezone: string, after: string): string | undefined {
  const found = oracleOf(expression, wallDaysOf(timezone)).next(Date.parse(after));
  return found === undefined ? undefined : new Date(found).toISOString();
}

test('the oracle gives the known answers', () => {
  const berlin = 'Europe/Berlin';
  assert.equal(next('30 2 * * *', berlin, '2026-03-28T12:00:00Z'), '2026-03-29T01:00:00.000Z');
  assert.equal(next('30 2 * * *', berlin, '2026-10-24T12:00:00Z'), '2026-10-25T00:30:00.000Z');
  assert.equal(next('30 2 * * *', berlin, '2026-10-25T00:30:00Z'), '2026-10-26T01:30:00.000Z');
  assert.equal(next('30 * * * *', berlin, '2026-10-25T00:30:00Z'), '2026-10-25T01:30:00.000Z');
  assert.equal(next('* 2 * * *', berlin, '2026-03-28T12:00:00Z'), '2026-03-30T00:00:00.000Z');
  assert.equal(next('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T12:00:00Z'), '2026-10-03T15:30:00.000Z');
  assert.equal(next('0 9 30 12 *', 'Pacific/Apia', '2011-12-29T12:00:00Z'), '2011-12-30T10:00:00.000Z');
  assert.equal(next('0 0 29 2 *', 'Asia/Kathmandu', '2026-01-01T00:00:00Z'), '2028-02-28T18:15:00.000Z');
  assert.equal(next('0 0 13 * FRI', 'UTC', '2026-03-01T00:00:00Z'), '2026-03-06T00:00:00.000Z');
  assert.equal(next('0 0 31 2 *', 'UTC', '2026-03-01T00:00:00Z'), undefined);
});

test('the oracle computes weekdays', () => {
  for (let day = 0; day < 60_000; day += 37) {
    const date = new Date(day * 86_400_000);
    assert.equal(weekdayOf(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()), date.getUTCDay());
  }
});

test('the engine agrees with the oracle on a few thousand random cases', () => {
  const { tally, mismatch } = run(20_261_112, 3_000);
  assert.equal(mismatch, undefined);
  assert.equal(tally.cases, 3_000);
  assert.ok(tally.occurrences > 3_000 && tally.sparse > 20 && tally.impossible > 10, JSON.stringify(tally));
});

test('a difference is found and shrunk', () => {
  // The wall clock of another zone simulates a broken engine.
  const wall = wallDaysOf('Europe/London');
  const after = Date.parse('2026-06-01T00:00:01Z');
  const mismatch = compare(
    { expression: '5,17,40-50/2 3-6,9 * 1-12 *', timezone: 'Europe/Berlin', after, until: after + 3_600_000 },
    wall,
    emptyTally(),
  );
  assert.ok(mismatch);
  const small = shrink(mismatch, wall);
  assert.match(small.expression, /^\S+ \S+ \* \* \*$/);
  assert.ok(small.expression.length < 14, small.expression);
  assert.notEqual(small.expected, small.actual);
});
