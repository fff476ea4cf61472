/** Part of 6: compares the runs of one alarm with the targets of the oracle. */
import { showValue } from '../../../../src/wire/validate.ts';
import { type AlarmCase, dueOf, type Evidence } from '../evidence.ts';
import { at, named } from '../finding.ts';
import { matchWindows, type Window } from '../matching.ts';
import { names, type Target, targetsOf } from '../targets.ts';
import { deliveriesOf, isMoved, type Run, runsOf, windowsOf } from './series-runs.ts';

/** The result for one alarm's schedule. */
export type Analysis = {
  /** Targets due by the time of the read. */
  targets: number;
  /** Targets without their own run: a later run covers them, or their owner paused the series. */
  passed: number;
  paused: number;
  /** Runs that have begun or should have, without a recorded end. */
  incomplete: number;
  violations: string[];
};

/** Spans in which the owner paused or restarted the schedule: their targets do not count as missed. */
function pausedSpans({ id }: AlarmCase, evidence: Evidence): Window[] {
  // Without an audit it is unknown which run a trigger with a lost answer made.
  const isUncertain = evidence.claims === undefined;
  const triggers = evidence.acts(id, 'trigger').filter(({ answer }) => isUncertain && answer.answer === 'lost');
  return [...evidence.acts(id, 'pause', 'resume', 'redrive'), ...triggers].map((call) => {
    const span = evidence.spanOf(call);
    if (call.operation.op !== 'pause') return span;
    // A pause lasts until the next resume that may have been carried out, or forever.
    const resumes = evidence.acts(id, 'resume').filter(({ invokedAt }) => invokedAt >= call.invokedAt);
    const resumed = Math.min(...resumes.map((resume) => evidence.spanOf(resume).until));
    return { from: span.from, until: Math.max(span.until, resumed) };
  });
}

/** Runs of an alarm with an edited schedule: some definition that it had must name each of them. */
function analyseMoved(one: AlarmCase, runs: readonly Run[], evidence: Evidence): Analysis {
  const { createdAt, anchor } = one.row!;
  const anchors = [
    { from: createdAt, until: createdAt },
    { from: anchor, until: anchor },
    ...evidence.acts(one.id, 'update').map((call) => evidence.spanOf(call)),
  ];
  const isNamed = (run: Run) =>
    one.definitions.some((definition) => anchors.some((from) => names(definition, from, run.at)));
  const unnamed = runs.filter((run) => !evidence.mayBeTriggered(run.fireId) && !isNamed(run));
  return {
    targets: runs.length,
    passed: 0,
    paused: 0,
    incomplete: runs.filter((run) => !run.hasEnded).length,
    violations: unnamed.map((run) => `${named(one)} ran as ${run.fireId}, which none of its definitions names`),
  };
}

/** End of the schedule's targets: its row says that it has ended, or its owner cancelled it. */
function targetsUntil(one: AlarmCase, evidence: Evidence): number {
  const { readAt } = evidence.history.database;
  const { clockToleranceMs } = evidence.history.client;
  const cancels = evidence.acts(one.id, 'cancel').map(({ invokedAt }) => invokedAt - clockToleranceMs);
  return one.row!.status === 'cancelled' ? Math.min(readAt, ...cancels) : readAt;
}

/** The targets between two runs, or before the first, or after the last. */
function gapSentence(one: AlarmCase, passed: readonly Target[], run: Run | undefined): string | undefined {
  const first = passed[0] && at(passed[0].at);
  const which =
    passed.length === 1 ? `the target ${first} has no run` : `${passed.length} targets from ${first} on have no run`;
  if (!run) return passed.length === 0 ? undefined : `${named(one)} has ended, and ${which}`;
  if (run.missedCount === undefined || run.missedCount === passed.length) return undefined;
  if (passed.length === 0)
    return `${named(one)}: ${run.fireId} reports ${run.missedCount} skipped occurrences, and none was missed`;
  return `${named(one)}: ${which}, and ${run.fireId}, the next one, reports ${run.missedCount} skipped occurrences`;
}

/**
 * Compares an alarm's runs with its targets.
 *
 * @throws the oracle's errors for an expression or a zone that it cannot read
 */
export function analyse(one: AlarmCase, evidence: Evidence): Analysis {
  const row = one.row!;
  const runs = runsOf(one, evidence);
  if (isMoved(one, evidence)) return analyseMoved(one, runs, evidence);
  const [definition] = one.definitions;
  const { readAt } = evidence.history.database;
  const targets = targetsOf(definition, row.createdAt, Math.max(readAt, runs.at(-1)?.at ?? 0));
  const matching = matchWindows(
    windowsOf(targets),
    runs.map((run) => run.at),
  );
  const violations: string[] = [];

  for (const index of matching.left) {
    const { fireId } = runs[index]!;
    if (evidence.mayBeTriggered(fireId)) continue;
    const schedule =
      definition.kind === 'cron'
        ? `${showValue(definition.expression)} (${definition.timezone ?? 'UTC'})`
        : 'the request';
    violations.push(`${named(one)} ran as ${fireId}, and ${schedule} has no target at ${at(dueOf(fireId))}`);
  }

  const pausedIn = pausedSpans(one, evidence);
  const until = targetsUntil(one, evidence);
  const hasHadEnough = definition.maxFires !== null && deliveriesOf(one, evidence) >= definition.maxFires;
  const isOver = row.status === 'fired' && !hasHadEnough;
  let passed: Target[] = [];
  const tally = { passed: 0, paused: 0 };
  let gapFrom = row.createdAt;
  const isPaused = (to: number) => pausedIn.some((span) => span.from <= to && span.until >= gapFrom);
  targets.forEach((target, index) => {
    const run = matching.pointOf[index] === undefined ? undefined : runs[matching.pointOf[index]];
    if (!run) {
      passed.push(target);
      return;
    }
    const pauses = isPaused(run.at);
    const sentence = pauses ? undefined : gapSentence(one, passed, run);
    if (sentence) violations.push(sentence);
    tally[pauses ? 'paused' : 'passed'] += passed.length;
    passed = [];
    gapFrom = target.at;
  });
  // The first and the ninth invariant cover a single alarm without a run, and a series with a pending occurrence.
  const owed = passed.filter((target) => target.at + target.spreadMs <= until);
  if (definition.kind === 'cron' && isOver && !isPaused(until)) {
    const sentence = gapSentence(one, owed, undefined);
    if (sentence) violations.push(sentence);
  }
  return {
    targets: targets.filter((target) => target.at <= until).length,
    ...tally,
    incomplete: runs.filter((run) => !run.hasEnded && run.at <= readAt).length,
    violations,
  };
}
