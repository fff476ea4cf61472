/** 1. An acknowledged alarm that was not cancelled is delivered, or has failed with a visible error, or is pending. */
import type { Alarm } from '../../../../src/chronos/alarm/alarm.ts';
import type { AlarmCase, Evidence } from '../evidence.ts';
import { at, type Finding, named } from '../finding.ts';
import { neglectOf } from '../overdue.ts';

type PromiseState = 'delivered' | 'recorded' | 'cancelled' | 'paused' | 'pending';

/** The state of a promise, or its violation. */
function stateOf(one: AlarmCase, evidence: Evidence): PromiseState | { broken: string } {
  const { row } = one;
  if (!row) return { broken: `${named(one)} was acknowledged and is not in the database` };
  if (row.status === 'cancelled') {
    if (evidence.acts(one.id, 'cancel').length > 0) return 'cancelled';
    return { broken: `${named(one)} is cancelled, and its owner never asked for that` };
  }
  const isDelivered = [...fireIdsOf(one)].some(
    (fireId) => !evidence.isTriggered(fireId) && evidence.isAccepted(fireId),
  );
  if (row.status === 'paused' && evidence.acts(one.id, 'pause').length === 0)
    return { broken: `${named(one)} is paused, and its owner never asked for that` };
  if (isDelivered) return 'delivered';
  return undelivered(one, row, evidence);
}

function undelivered(one: AlarmCase, row: Alarm, evidence: Evidence): PromiseState | { broken: string } {
  const givenUp = one.attempts.some(({ outcome, error }) => outcome !== 'delivered' && error !== null);
  switch (row.status) {
    case 'failed':
      if (row.lastError !== null && row.lastError !== '') return 'recorded';
      return { broken: `${named(one)} has failed, and has no error` };
    case 'fired':
      // A series can end while its owner keeps it paused or after an edit; then nothing was due.
      if (row.kind === 'cron' && givenUp) return 'recorded';
      if (row.kind === 'cron' && evidence.acts(one.id, 'pause', 'update').length > 0) return 'recorded';
      return { broken: `${named(one)} has status fired, and the receiver accepted no wake of it` };
    case 'paused':
      return 'paused';
    default:
      return pending(one, evidence);
  }
}

function pending(one: AlarmCase, evidence: Evidence): PromiseState | { broken: string } {
  const owed = one.occurrences.find(({ source, dueAt }) => source === 'schedule' && dueAt !== null);
  // The sixth invariant covers series without a pending occurrence.
  if (!owed && one.row?.kind === 'cron') return 'pending';
  if (!owed) return { broken: `${named(one)} is active, was never delivered, and has no pending occurrence` };
  const neglect = neglectOf(owed, evidence);
  return neglect === undefined ? 'pending' : { broken: `${named(one)}: ${neglect}` };
}

function fireIdsOf({ attempts, wakes }: AlarmCase): Set<string> {
  return new Set([...attempts, ...wakes].map(({ fireId }) => fireId));
}

/** The ledger must not record a delivery that the receiver never accepted. */
function falseDeliveries(evidence: Evidence): string[] {
  return evidence.history.database.attempts
    .filter(({ outcome, fireId }) => outcome === 'delivered' && !evidence.isAccepted(fireId))
    .filter(({ alarmId }) => evidence.caseOf(alarmId) !== undefined)
    .map(
      ({ fireId, attempt, finishedAt }) =>
        `the ledger records attempt ${attempt} at ${fireId} as delivered (${at(finishedAt)}), and the receiver accepted no wake of it`,
    );
}

export function keptPromises(evidence: Evidence): Finding {
  const violations: string[] = [];
  const states: Record<PromiseState, number> = { delivered: 0, recorded: 0, cancelled: 0, paused: 0, pending: 0 };
  const promised = evidence.cases.filter(({ isPromised }) => isPromised);
  for (const one of promised) {
    const state = stateOf(one, evidence);
    if (typeof state === 'string') states[state]++;
    else violations.push(state.broken);
  }
  return {
    number: 1,
    title: 'an acknowledged alarm is delivered or visibly given up',
    judged: promised.length,
    unit: 'acknowledged alarms',
    violations: [...violations, ...falseDeliveries(evidence)],
    counts: {
      'alarms delivered': states.delivered,
      'alarms given up, with their error': states.recorded,
      'alarms cancelled': states.cancelled,
      'alarms paused': states.paused,
      'alarms pending': states.pending,
    },
  };
}
