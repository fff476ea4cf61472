/**
 * 7. A process that has lost a claim changes nothing: one holder at a time, each attempt recorded once, by its holder.
 */
import type { Attempt } from '../../../../src/chronos/alarm/alarm.ts';
import { alarmIdOf, type Evidence } from '../evidence.ts';
import { at, type Finding } from '../finding.ts';

/** Numbers 1 to k, each once. Where the alarm was edited, an occurrence may be deleted and return, with a new count. */
function misnumbered(fireId: string, attempts: readonly Attempt[]): string[] {
  const numbers = attempts.map(({ attempt }) => attempt);
  const twice = numbers.filter((number, index) => numbers.indexOf(number) !== index);
  const gaps = Array.from({ length: numbers.at(-1) ?? 0 }, (_, index) => index + 1).filter((n) => !numbers.includes(n));
  return [
    ...[...new Set(twice)].map((number) => `attempt ${number} at ${fireId} is in the ledger more than once`),
    ...gaps.map(
      (number) => `attempt ${number} at ${fireId} is missing from the ledger, which goes up to ${numbers.at(-1)}`,
    ),
  ];
}

/** One final outcome, and it is the last. */
function afterTheEnd(fireId: string, attempts: readonly Attempt[]): string[] {
  const last = attempts.at(-1);
  return attempts
    .filter((attempt) => attempt !== last && attempt.outcome === 'delivered')
    .map(
      ({ attempt, finishedAt }) =>
        `attempt ${attempt} at ${fireId} was delivered at ${at(finishedAt)}, and attempt ${last!.attempt} (${last!.outcome}, started at ${at(last!.startedAt)}) came after it`,
    );
}

/**
 * Two attempts at once mean two holders, unless the end of the earlier one is unknown. A retry is due after the
 * end of the attempt before, for any reading of the database's clock. Repetitions that the owner requested are due at
 * once, also when that clock was set back.
 */
function overlapping(fireId: string, attempts: readonly Attempt[], evidence: Evidence): string[] {
  const isAskedForAnew = evidence.acts(alarmIdOf(fireId), 'redrive', 'resume').length > 0;
  const tolerance = isAskedForAnew ? evidence.history.client.clockToleranceMs : 0;
  return attempts.flatMap((attempt, index) => {
    const before = attempts[index - 1];
    if (!before || before.outcome === 'unknown' || before.attempt === attempt.attempt) return [];
    if (before.finishedAt <= attempt.startedAt + tolerance) return [];
    return [
      `attempt ${attempt.attempt} at ${fireId} started at ${at(attempt.startedAt)}, while attempt ${before.attempt} ran until ${at(before.finishedAt)}`,
    ];
  });
}

/** A pending occurrence continues the count of the ledger. */
function inconsistentPending(fireId: string, attempts: readonly Attempt[], evidence: Evidence): string[] {
  const owed = evidence.occurrenceOf(fireId);
  if (!owed) return [];
  const recorded = attempts.at(-1)?.attempt ?? 0;
  const begun = recorded + (owed.claimedAt === null ? 0 : 1);
  const violations: string[] = [];
  if (owed.attempt !== begun)
    violations.push(`${fireId} has attempt ${owed.attempt}, and its ledger and claim have ${begun}`);
  if (owed.fence < owed.attempt)
    violations.push(
      `${fireId} has fence ${owed.fence} after ${owed.attempt} attempts: a claim's fence was overwritten`,
    );
  return violations;
}

/** Wakes without an attempt, and attempts that were sent twice. */
function unaccountedWakes(fireId: string, attempts: readonly Attempt[], evidence: Evidence): string[] {
  const wakes = evidence.wakesFor(fireId);
  const owed = evidence.occurrenceOf(fireId);
  const alarmId = alarmIdOf(fireId);
  // The first invariant covers alarms that are missing altogether.
  if (wakes.length === 0 || !evidence.recordOf(alarmId).row) return [];
  const begun = Math.max(owed?.attempt ?? 0, attempts.at(-1)?.attempt ?? 0);
  if (begun === 0)
    return [
      `a wake of ${fireId} arrived at ${at(wakes[0]!.receivedAt)}, and neither the ledger nor the queue has an attempt for it`,
    ];
  const numbers = wakes.flatMap(({ attempt }) => (attempt === null ? [] : [attempt]));
  const twice = new Set(numbers.filter((number, index) => numbers.indexOf(number) !== index));
  return [
    ...[...twice].map((number) => `attempt ${number} at ${fireId} arrived more than once: two holders had it`),
    ...[...new Set(numbers.filter((number) => number > begun))].map(
      (number) => `attempt ${number} at ${fireId} arrived, and the database has begun only ${begun}`,
    ),
  ];
}

export function staleHolderChangesNothing(evidence: Evidence): Finding {
  const violations: string[] = [];
  for (const fireId of evidence.fireIds) {
    const attempts = evidence.attemptsAt(fireId);
    const mayStartAnew = evidence.acts(alarmIdOf(fireId), 'update').length > 0;
    if (!mayStartAnew) {
      violations.push(...misnumbered(fireId, attempts), ...afterTheEnd(fireId, attempts));
      violations.push(...overlapping(fireId, attempts, evidence), ...inconsistentPending(fireId, attempts, evidence));
    }
    violations.push(...unaccountedWakes(fireId, attempts, evidence));
  }
  const { attempts } = evidence.history.database;
  return {
    number: 7,
    title: 'a process without the claim changes nothing',
    judged: evidence.fireIds.size,
    unit: 'occurrences',
    violations: [...violations, ...(evidence.claims?.unentitled ?? [])],
    counts: {
      'attempts with an unknown outcome': attempts.filter(({ outcome }) => outcome === 'unknown').length,
      ...(evidence.claims ? { 'changes in the audit': evidence.claims.judged } : {}),
    },
  };
}
