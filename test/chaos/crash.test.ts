import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCrashTest, summarize } from './crash.ts';

test('kill -9 of chronosd, router and neo at random moments loses no alarm and gives one turn each', async (t) => {
  const report = await runCrashTest({
    rounds: 9,
    users: 2,
    alarmsPerRound: 6,
    seed: Math.floor(Math.random() * 2 ** 31),
  });
  t.diagnostic(summarize(report));
  assert.deepEqual(report.violations, []);
  assert.equal(report.acknowledged, 54);
});
