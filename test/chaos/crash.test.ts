import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCrashTest, summarize } from './crash.ts';

const seed = Math.floor(Math.random() * 2 ** 31);

test('kill -9 of chronosd, router and neo at random moments loses no alarm and gives one turn each', async (t) => {
  const report = await runCrashTest({ store: 'sqlite', replicas: 1, rounds: 9, users: 2, alarmsPerRound: 6, seed });
  t.diagnostic(`seed ${seed} · ${summarize(report)}`);
  assert.deepEqual(report.violations, []);
  assert.equal(report.acknowledged, 54);
});

test('with two replicas on PostgreSQL, which is interrupted as well, the same holds', async (t) => {
  const report = await runCrashTest({ store: 'postgres', replicas: 2, rounds: 9, users: 2, alarmsPerRound: 6, seed });
  t.diagnostic(`seed ${seed} · ${summarize(report)}`);
  assert.deepEqual(report.violations, []);
  assert.equal(report.acknowledged, 54);
});
