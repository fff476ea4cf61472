/** 2. Nothing starts before it is due. */
import { type AlarmCase, alarmIdOf, dueOf, type Evidence } from '../evidence.ts';
import { at, type Finding, named } from '../finding.ts';

/**
 * Attempts, by the database's own clock: to the millisecond. After one punctual attempt an occurrence stays due, also
 * where that clock was set back between the two.
 */
function earlyAttempts(evidence: Evidence): string[] {
  return evidence.history.database.attempts
    .filter(({ fireId, attempt, startedAt, scheduledFor }) => {
      if (startedAt >= scheduledFor) return false;
      return !evidence
        .attemptsAt(fireId)
        .some((before) => before.attempt < attempt && before.startedAt >= before.scheduledFor);
    })
    .map(
      ({ fireId, attempt, startedAt, scheduledFor }) =>
        `attempt ${attempt} at ${fireId} started at ${at(startedAt)}, ${scheduledFor - startedAt} ms before it was due`,
    );
}

/** Claims, as the audit recorded them: they must not precede the retry's due time, nor the first one. */
function earlyClaims({ claims }: Evidence): string[] {
  return (claims?.claims ?? []).flatMap(({ fireId, attempt, dueAt, claimedAt }) => {
    if (dueAt === null) return [`attempt ${attempt} at ${fireId} was claimed at ${at(claimedAt)} while it was parked`];
    if (claimedAt >= dueAt) return [];
    return [
      `attempt ${attempt} at ${fireId} was claimed at ${at(claimedAt)}, ${dueAt - claimedAt} ms before it was due`,
    ];
  });
}

/** Earliest time of a single alarm, by its owner's request and its time; `undefined` where it cannot be determined. */
function earliestOf({ definitions, creates }: AlarmCase): number | undefined {
  const [{ kind, fireAt, delaySeconds }] = definitions;
  if (kind !== 'once' || definitions.length > 1) return undefined;
  if (fireAt !== null) return fireAt;
  return Math.min(...creates.map(({ invokedAt }) => invokedAt)) + (delaySeconds ?? 0) * 1000;
}

/**
 * Wakes, by the receiver's clock and within its tolerance: compared with their fire id, and with the client's request.
 */
function earlyWakes(evidence: Evidence): string[] {
  const { receiver, client } = evidence.history;
  const tolerance = receiver.clockToleranceMs + client.clockToleranceMs;
  return receiver.wakes.flatMap(({ fireId, receivedAt }) => {
    const due = dueOf(fireId);
    if (receivedAt + receiver.clockToleranceMs < due)
      return [`the wake of ${fireId} arrived at ${at(receivedAt)}, ${due - receivedAt} ms before it was due`];
    const one = evidence.caseOf(alarmIdOf(fireId));
    const earliest = one && earliestOf(one);
    if (earliest === undefined || receivedAt + tolerance >= earliest) return [];
    if (evidence.isTriggered(fireId) || evidence.mayBeTriggered(fireId)) return [];
    return [`${named(one!)} was asked for ${at(earliest)}, and the wake of ${fireId} arrived at ${at(receivedAt)}`];
  });
}

export function neverEarly(evidence: Evidence): Finding {
  const { database, receiver } = evidence.history;
  return {
    number: 2,
    title: 'nothing starts before it is due',
    judged: database.attempts.length + receiver.wakes.length,
    unit: 'attempts and wakes',
    violations: [...earlyAttempts(evidence), ...earlyClaims(evidence), ...earlyWakes(evidence)],
    counts: { attempts: database.attempts.length, 'wakes received': receiver.wakes.length },
  };
}
