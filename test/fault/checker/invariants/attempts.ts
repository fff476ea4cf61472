/**
 * 10. No more attempts than the policy allows, none after a final refusal, none too early; and no alarm is given up too
 *   early.
 */
import type { Attempt } from '../../../../src/chronos/alarm/alarm.ts';
import { type AlarmCase, alarmIdOf, type Evidence } from '../evidence.ts';
import { at, type Finding, named } from '../finding.ts';

/** A receiver with this status is gone for good (docs/reference/api.md, "chronosd: alarms"). */
const GONE = 410;
/** Minimum wait after a refused attempt, for any request of the receiver. */
const SHORTEST_WAIT_MS = 1_000;

/** Failures that an occurrence may have before it is given up. */
function allowanceOf(one: AlarmCase | undefined, alarmId: string, evidence: Evidence): number {
  const { maxFailures } = evidence.history.policy;
  if (!one) return evidence.recordOf(alarmId).row?.maxFailures ?? maxFailures;
  return Math.max(...one.definitions.map((definition) => definition.maxFailures ?? maxFailures));
}

const isFailure = ({ outcome }: Attempt) => outcome === 'failed' || outcome === 'unknown';

/** Each of these actions gives an occurrence a fresh ladder, or a new position on it. */
function renewals(alarmId: string, evidence: Evidence): number {
  return evidence.acts(alarmId, 'redrive', 'update').length;
}

function excessOf(fireId: string, attempts: readonly Attempt[], evidence: Evidence): string[] {
  const alarmId = alarmIdOf(fireId);
  const allowed = allowanceOf(evidence.caseOf(alarmId), alarmId, evidence) * (1 + renewals(alarmId, evidence));
  const violations: string[] = [];
  const made = attempts.filter(({ outcome }) => outcome !== 'missed').length;
  if (made > allowed) violations.push(`${fireId} was attempted ${made} times, and ${allowed} are allowed`);
  if (evidence.acts(alarmId, 'redrive', 'update', 'resume').length > 0) return violations;
  attempts.forEach((attempt, index) => {
    const before = attempts[index - 1];
    if (!before) return;
    const start = `attempt ${attempt.attempt} at ${fireId} started at ${at(attempt.startedAt)}`;
    if (before.httpStatus === GONE) violations.push(`${start}, after a final refusal (${GONE})`);
    else if (before.outcome === 'failed' && attempt.startedAt - before.finishedAt < SHORTEST_WAIT_MS)
      violations.push(
        `${start}, ${attempt.startedAt - before.finishedAt} ms after attempt ${before.attempt} had been refused`,
      );
  });
  return violations;
}

/** A failed single alarm must have used its attempts, been refused for good, or been dropped as too late. */
function givenUpEarly(one: AlarmCase, evidence: Evidence): string[] {
  const { row, attempts } = one;
  if (row?.status !== 'failed' || row.kind !== 'once') return [];
  const own = attempts.filter(({ fireId }) => !evidence.isTriggered(fireId));
  // A failed alarm keeps its failed occurrence.
  const parked = one.occurrences.find(({ source }) => source === 'schedule');
  const last = parked
    ? evidence.attemptsAt(parked.fireId).at(-1)
    : own.toSorted((before, after) => before.startedAt - after.startedAt).at(-1);
  if (last?.outcome === 'missed' || last?.httpStatus === GONE) return [];
  const failures = own.filter(isFailure).length;
  const needed = Math.min(
    ...one.definitions.map(({ maxFailures }) => maxFailures ?? evidence.history.policy.maxFailures),
  );
  if (failures >= needed) return [];
  return [`${named(one)} was given up after ${failures} failures, and it had ${needed}`];
}

export function attemptsWithinPolicy(evidence: Evidence): Finding {
  const { attempts } = evidence.history.database;
  const violations: string[] = [];
  for (const fireId of evidence.fireIds) violations.push(...excessOf(fireId, evidence.attemptsAt(fireId), evidence));
  for (const one of evidence.cases) violations.push(...givenUpEarly(one, evidence));
  return {
    number: 10,
    title: 'no more attempts than the policy allows',
    judged: attempts.length,
    unit: 'attempts',
    violations,
    counts: { 'attempts that failed': attempts.filter(isFailure).length },
  };
}
