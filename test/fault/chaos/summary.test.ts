import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CampaignReport, latenessOf } from './report.ts';
import { complaints, table } from './summary.ts';

const REPORT: CampaignReport = {
  fault: 'kill',
  title: 'kill -9',
  store: 'sqlite',
  seed: 7,
  replicas: 1,
  seconds: 40,
  strikes: [{ what: 'chronosd', recoveryMs: 15_200, standstill: { creates: 0, fires: 0 } }],
  alarms: 1200,
  lostAnswers: 3,
  repeatedCreates: 3,
  deliveries: 1210,
  duplicates: 10,
  attempts: 1215,
  unknownAttempts: 12,
  lost: 0,
  early: 0,
  unfencedWrites: 0,
  waiting: 0,
  recoveryMs: 15_200,
  settledMs: 16_000,
  lateness: latenessOf([1, 2, 3, 400]),
  judged: [],
  violations: [],
};

test('the table has aligned columns, a line per campaign, and the reason for each skipped one', () => {
  const skipped = { fault: 'disk', title: 'disk full', store: 'postgres', skipped: 'it needs root' } as const;
  assert.deepEqual(table([REPORT, skipped]).split('\n'), [
    'fault      store     strikes  alarms  deliveries  duplicates  lost  early  unfenced writes  recovery  all delivered  p99 late',
    'kill -9    sqlite          1    1200        1210          10     0      0                0    15.2 s         16.0 s    400 ms',
    'disk full  postgres  skipped: it needs root',
  ]);
});

test('a violation is reported with the seed and the folder', () => {
  const violations = ['invariant 1: alarm 01 was acknowledged and is not in the database'];
  assert.deepEqual(complaints([REPORT]), []);
  assert.deepEqual(complaints([{ ...REPORT, violations, folder: '/tmp/x' }]), [
    'kill -9 on sqlite (seed 7, logs in /tmp/x):',
    `  ${violations[0]}`,
  ]);
});

test('percentiles are samples that occurred', () => {
  assert.deepEqual(latenessOf([5, 1, 3]), { count: 3, p50: 3, p99: 5, max: 5 });
  assert.deepEqual(latenessOf([]), { count: 0, p50: 0, p99: 0, max: 0 });
});
