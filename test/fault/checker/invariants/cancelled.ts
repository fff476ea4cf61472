/**
 * 3. After an acknowledged cancel no attempt starts; attempts that were running run to their end and are counted
 *   separately.
 */
import type { Attempt } from '../../../../src/chronos/alarm/alarm.ts';
import type { Evidence } from '../evidence.ts';
import { at, type Finding } from '../finding.ts';

type Acknowledged = {
  alarmId: string;
  /** When the client had the answer, in the database's time, tolerance included. */
  until: number;
  /** The answer reported a running delivery. */
  inFlight: boolean;
  /** When the owner may have wanted it again (a redrive of an alarm that failed before); infinite otherwise. */
  again: number;
};

function acknowledgedCancels(evidence: Evidence): Acknowledged[] {
  const { client } = evidence.history;
  return evidence.cancels.flatMap(({ operation: { alarmId }, answer, invokedAt, answeredAt }) => {
    if (answer.answer !== 'acknowledged' || answeredAt === null) return [];
    // An alarm that failed before can be redriven; a cancelled one stays cancelled.
    const status = answer.status ?? evidence.recordOf(alarmId).row?.status;
    const later = (status === 'cancelled' ? [] : evidence.acts(alarmId, 'redrive'))
      .filter((call) => (call.answeredAt ?? Number.POSITIVE_INFINITY) > invokedAt)
      .map((call) => call.invokedAt - client.clockToleranceMs);
    return [
      {
        alarmId,
        until: answeredAt + client.clockToleranceMs,
        inFlight: answer.inFlight === true,
        again: Math.min(...later),
      },
    ];
  });
}

/** The attempts of one alarm after a cancel: the running ones, and the forbidden ones. */
function attemptsAfter({ until, inFlight, again }: Acknowledged, attempts: readonly Attempt[]) {
  const underWay: Attempt[] = [];
  const late: Attempt[] = [];
  for (const ofFire of Map.groupBy(attempts, ({ fireId }) => fireId).values()) {
    const ended = ofFire.filter(({ finishedAt, startedAt }) => finishedAt > until && startedAt < again);
    ended.sort((one, other) => one.attempt - other.attempt);
    ended.forEach((attempt, index) => {
      // A process that had claimed it before may have been slow to begin: the cancel's answer reported it.
      const isUnderWay = attempt.startedAt <= until || (inFlight && index === 0);
      (isUnderWay ? underWay : late).push(attempt);
    });
  }
  return { underWay, late };
}

/** Wakes that arrived after a cancel without a running attempt. */
function lateWakes(cancel: Acknowledged, underWay: readonly Attempt[], evidence: Evidence): string[] {
  const { clockToleranceMs } = evidence.history.receiver;
  const { alarmId, until, again } = cancel;
  const { attempts, occurrences, wakes } = evidence.recordOf(alarmId);
  const claimed = occurrences.filter(({ claimedAt }) => claimedAt !== null && claimedAt <= until);
  const begun = attempts.filter(({ startedAt }) => startedAt <= until);
  /** For each occurrence the last attempt that had begun by then; wakes that the network delayed may still arrive. */
  const last = new Map<string, number>();
  for (const { fireId, attempt } of [...underWay, ...claimed, ...begun])
    last.set(fireId, Math.max(attempt, last.get(fireId) ?? 0));
  return wakes
    .filter(({ fireId, receivedAt, attempt }) => {
      if (receivedAt <= until + clockToleranceMs || receivedAt >= again - clockToleranceMs) return false;
      const known = last.get(fireId);
      return known === undefined || (attempt ?? known) > known;
    })
    .map(
      ({ fireId, receivedAt }) =>
        `alarm ${alarmId} was cancelled by ${at(until)}, and the wake of ${fireId} arrived at ${at(receivedAt)} without a running attempt`,
    );
}

/** Occurrences that are claimed as the logs end, and that nothing entitled to a claim. */
function openClaims({ alarmId, until, again }: Acknowledged, evidence: Evidence): string[] {
  return evidence.recordOf(alarmId).occurrences.flatMap(({ fireId, attempt, claimedAt }) => {
    if (claimedAt === null || claimedAt <= until || claimedAt >= again) return [];
    return [
      `alarm ${alarmId} was cancelled by ${at(until)}, and attempt ${attempt} at ${fireId} was claimed at ${at(claimedAt)}`,
    ];
  });
}

/** Claims that the audit shows after the cancel: exact, independent of the clocks. */
function lateClaims({ claims: history }: Evidence): string[] {
  if (!history) return [];
  return history.claims.flatMap(({ alarmId, fireId, attempt, claimedAt, seq }) => {
    const cancelledAt = history.cancelledAt.get(alarmId);
    if (cancelledAt === undefined || seq < cancelledAt) return [];
    return [`attempt ${attempt} at ${fireId} was claimed at ${at(claimedAt)}, when the alarm was cancelled already`];
  });
}

export function nothingAfterCancel(evidence: Evidence): Finding {
  const violations: string[] = [];
  const inFlight = new Set<Attempt>();
  const cancels = acknowledgedCancels(evidence);
  for (const cancel of cancels) {
    const { alarmId, until } = cancel;
    const { row, attempts } = evidence.recordOf(alarmId);
    const isActiveAgain = row?.status === 'active' || row?.status === 'paused';
    if (isActiveAgain && cancel.again === Number.POSITIVE_INFINITY)
      violations.push(`alarm ${alarmId} was cancelled by ${at(until)}, and is ${row.status} in the database`);
    const { underWay, late } = attemptsAfter(cancel, attempts);
    for (const attempt of underWay) inFlight.add(attempt);
    for (const { attempt, fireId, startedAt } of late)
      violations.push(
        `alarm ${alarmId} was cancelled by ${at(until)}, and attempt ${attempt} at ${fireId} started at ${at(startedAt)}`,
      );
    violations.push(...openClaims(cancel, evidence), ...lateWakes(cancel, underWay, evidence));
  }
  return {
    number: 3,
    title: 'nothing starts after an acknowledged cancel',
    judged: cancels.length,
    unit: 'acknowledged cancels',
    violations: [...new Set([...violations, ...lateClaims(evidence)])],
    counts: { 'attempts in flight at a cancel': inFlight.size },
  };
}
