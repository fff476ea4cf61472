import assert from 'node:assert/strict';
import { test } from 'node:test';
import { theDay, verdictOn } from './broken-day.ts';
import { judge } from './judge.ts';

test('a day without broken promises has no violations, and each invariant has judged cases', async () => {
  const { findings, violations } = judge((await theDay()).history);
  assert.deepEqual(violations, []);
  assert.deepEqual(
    findings.map(({ number }) => number),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  for (const { title, judged } of findings) assert.ok(judged > 0, `nothing judged: ${title}`);
});

test('events that break no promise are counted', async () => {
  const counts = Object.assign({}, ...judge((await theDay()).history).findings.map((finding) => finding.counts));
  assert.equal(counts['creates whose answer was lost'], 3);
  assert.equal(counts['creates repeated under their key'], 3);
  assert.equal(counts['attempts in flight at a cancel'], 1);
  assert.equal(counts['duplicate wakes'], 2);
  assert.equal(counts['attempts with an unknown outcome'], 3);
  assert.equal(counts['occurrences claimed'], 1);
  assert.ok(counts['targets that a later run stands for'] > 5);
});

test('the same history is judged without an audit, and without turns', async () => {
  assert.deepEqual((await verdictOn(({ database }) => (database.audit = null))).broken, []);
  assert.deepEqual((await verdictOn(({ receiver }) => (receiver.turns = null))).broken, []);
});
