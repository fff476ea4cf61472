/**
 * 6. Every occurrence is one that the schedule names, every target that was owed has a run of its own, and what was let
 * pass is said: after downtime a series runs once, for the latest target, and the run says how many it stands for.
 *
 * The oracle says the targets, in the manner of Jepsen's analysis: each is a window (its instant, widened by jitter),
 * each run answers at most one, runs that answer none are extra, runs without an end are incomplete.
 */
import { showValue } from '../../../../src/wire/validate.ts';
import type { Evidence } from '../evidence.ts';
import { type Finding, named } from '../finding.ts';
import { analyse } from './series-analysis.ts';
import { disordered, misset, tooMany, wedged } from './series-course.ts';
import { lateness } from './series-lateness.ts';

export function seriesOnTarget(evidence: Evidence): Finding {
  const violations: string[] = [];
  const sums = { targets: 0, passed: 0, heldBack: 0, incomplete: 0 };
  const judged = evidence.cases.filter(({ row }) => row !== undefined);
  for (const one of judged) {
    try {
      const analysis = analyse(one, evidence);
      violations.push(...analysis.violations, ...misset(one, evidence));
      for (const name of ['targets', 'passed', 'heldBack', 'incomplete'] as const) sums[name] += analysis[name];
    } catch (error) {
      // A zone or an expression that chronosd has accepted and the oracle cannot make sense of.
      const [{ expression, timezone }] = one.definitions;
      const schedule = `${showValue(expression)} in ${showValue(timezone)}`;
      violations.push(`${named(one)} cannot be held against the oracle, which cannot read ${schedule} (${error})`);
    }
    violations.push(...wedged(one, evidence), ...disordered(one, evidence), ...tooMany(one, evidence));
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
      'targets that passed while their owner held the series back': sums.heldBack,
      'runs that have not ended': sums.incomplete,
    },
  };
}
