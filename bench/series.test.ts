import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dueBefore, dueOf, type Series } from './series.ts';

test('the part of a series before a time has exactly the jobs that are due before it', () => {
  const series: Series = { number: 1, count: 24_000, firstDue: 1_000_000, spanMs: 30_000 };
  for (const instant of [999_000, 1_000_000, 1_000_001, 1_000_777, 1_011_321, 1_030_000, 1_031_000]) {
    const part = dueBefore(series, instant);
    const jobs = Array.from({ length: series.count }, (_, index) => dueOf(series, index));
    assert.equal(part.count, jobs.filter((due) => due < instant).length, String(instant));
  }
});
