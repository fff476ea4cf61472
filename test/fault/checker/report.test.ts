import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finding } from './finding.ts';
import { reportLines } from './report.ts';

const finding = (number: number, change: Partial<Finding> = {}): Finding => ({
  number,
  title: `promise ${number}`,
  judged: 1600,
  unit: 'alarms',
  violations: [],
  counts: {},
  ...change,
});

const linesOf = (...findings: Finding[]) =>
  reportLines({ findings, violations: findings.flatMap(({ violations }) => violations) }, ['a line is incomplete']);

test('a kept promise is "0 in N" with its N, and counts are separate', () => {
  assert.deepEqual(
    linesOf(finding(9, { counts: { 'duplicate wakes': 1200 } }), finding(10, { counts: { turns: 7 } })),
    [
      ' 9  promise 9   0 in 1,600 alarms',
      '10  promise 10  0 in 1,600 alarms',
      '',
      'counted, and no violation:',
      '  1,200  duplicate wakes',
      '      7  turns',
      '',
      'note: a line is incomplete',
      'every promise was kept',
    ],
  );
});

test('an invariant without cases reports it', () => {
  assert.ok(linesOf(finding(8, { judged: 0, unit: 'trials' })).includes('8  promise 8  nothing to judge: no trials'));
});

test('violations are listed under the number of their promise, the first twenty of each', () => {
  const violations = Array.from({ length: 23 }, (_, index) => `alarm ${index} is lost`);
  const lines = linesOf(finding(1, { violations }), finding(4, { violations: ['two turns'] }));
  assert.ok(lines.includes('1  promise 1  23 in 1,600 alarms'));
  assert.deepEqual(lines.slice(lines.indexOf('broken:') + 20), [
    '  1. alarm 19 is lost',
    '  1. and 3 more; --json names them all',
    '  4. two turns',
    '',
    '24 violations',
  ]);
});
