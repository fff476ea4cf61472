/** Part of 6: the runs of a schedule in all logs, and the windows that they must be in. */
import { type AlarmCase, dueOf, type Evidence } from '../evidence.ts';
import type { Definition } from '../history.ts';
import type { Window } from '../matching.ts';
import type { Target } from '../targets.ts';

/** One occurrence of an alarm's own schedule, from any log. */
export type Run = {
  fireId: string;
  /** Its nominal time. */
  at: number;
  /** Number of further targets that it reports as skipped; `undefined` if unknown. */
  missedCount: number | undefined;
  /** It is in the ledger. */
  hasEnded: boolean;
};

/** The past and next runs of an alarm's own schedule, in the order of their times. */
export function runsOf(one: AlarmCase, evidence: Evidence): Run[] {
  const live = one.occurrences.filter(({ source }) => source === 'schedule').map(({ fireId }) => fireId);
  const triggered = new Set(one.occurrences.filter(({ source }) => source === 'trigger').map(({ fireId }) => fireId));
  const fireIds = new Set([...one.attempts, ...one.wakes].map(({ fireId }) => fireId).concat(live));
  return [...fireIds]
    .filter((fireId) => !evidence.isTriggered(fireId) && !triggered.has(fireId))
    .map((fireId) => {
      const [attempt] = evidence.attemptsAt(fireId);
      const known = attempt ?? evidence.occurrenceOf(fireId) ?? evidence.wakesFor(fireId)[0];
      return {
        fireId,
        at: dueOf(fireId),
        missedCount: known?.missedCount ?? undefined,
        hasEnded: attempt !== undefined,
      };
    })
    .sort((run, other) => run.at - other.at);
}

/** Number of the schedule's occurrences that the ledger records as delivered. */
export function deliveriesOf(one: AlarmCase, evidence: Evidence): number {
  const isDelivered = (fireId: string) => evidence.attemptsAt(fireId).some(({ outcome }) => outcome === 'delivered');
  return runsOf(one, evidence).filter(({ fireId }) => isDelivered(fireId)).length;
}

const MOVING: readonly (keyof Definition)[] = [
  'fireAt',
  'delaySeconds',
  'expression',
  'timezone',
  'endsAt',
  'maxFires',
  'jitterSeconds',
];

/** Its owner edited its schedule. */
export function isMoved({ id }: AlarmCase, evidence: Evidence): boolean {
  return evidence
    .acts(id, 'update')
    .some(({ operation }) => MOVING.some((member) => operation.change[member] !== undefined));
}

/** A target has a window with both ends included. */
export function windowsOf(targets: readonly Target[]): Window[] {
  return targets.map(({ at: from, spreadMs }) => ({ from, until: from + Math.max(0, Math.ceil(spreadMs) - 1) }));
}
