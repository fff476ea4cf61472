/**
 * 6. The schedule names every occurrence, every due target has its own run, and skipped targets are reported. After
 *   downtime a series runs once, for the latest target, and the run reports the number of skipped ones.
 *
 * The oracle names the targets, as in Jepsen's analysis: each is a window (its time, widened by jitter). Each run
 * matches at most one. Runs without a target are extra, runs without an end are incomplete.
 */
import { showValue } from '../../../../src/wire/validate.ts';
import type { Evidence } from '../evidence.ts';
import { type Finding, named } from '../finding.ts';
import { analyse } from './series-analysis.ts';
import { lateness } from './series-lateness.ts';
import { disordered, tooMany, withoutPending, wrongStart } from './series-order.ts';

export function seriesOnTarget(evidence: Evidence): Finding {
  const violations: string[] = [];
  const sums = { targets: 0, passed: 0, paused: 0, incomplete: 0 };
  const judged = evidence.cases.filter(({ row }) => row !== undefined);
  for (const one of judged) {
    try {
      const analysis = analyse(one, evidence);
      violations.push(...analysis.violations, ...wrongStart(one, evidence));
      for (const name of ['targets', 'passed', 'paused', 'incomplete'] as const) sums[name] += analysis[name];
    } catch (error) {
      // A zone or an expression that chronosd accepted and the oracle cannot read.
      const [{ expression, timezone }] = one.definitions;
      const schedule = `${showValue(expression)} in ${showValue(timezone)}`;
      violations.push(`${named(one)} cannot be compared with the oracle, which cannot read ${schedule} (${error})`);
    }
    violations.push(...withoutPending(one, evidence), ...disordered(one, evidence), ...tooMany(one, evidence));
  }
  return {
    number: 6,
    title: 'occurrences are the ones that the schedule names',
    judged: sums.targets,
    unit: 'targets',
    violations: [...violations, ...lateness(evidence)],
    counts: {
      series: judged.filter(({ row }) => row?.kind === 'cron').length,
      'targets that a later run stands for': sums.passed,
      'targets that passed while their owner paused the series': sums.paused,
      'runs that have not ended': sums.incomplete,
    },
  };
}
