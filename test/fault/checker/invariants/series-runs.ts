/** Part of 6: the runs of a schedule, as any log knows them, and the windows that they have to meet. */
import { type AlarmCase, dueOf, type Evidence } from '../evidence.ts';
import type { Definition } from '../history.ts';
import type { Window } from '../matching.ts';
import type { Target } from '../targets.ts';

/** One occurrence of an alarm's own schedule, as any log knows it. */
export type Run = {
  fireId: string;
  /** The instant it stands for. */
  at: number;
  /** How many targets it says it stands for besides its own; `undefined` where nobody knows. */
  missedCount: number | undefined;
  /** Something came of it: it is in the ledger. */
  hasEnded: boolean;
};

/** What ran of an alarm's own schedule, or is to run next, in the order of its instants. */
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

/** How many occurrences of the schedule the ledger calls delivered. */
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

/** Its owner edited when it rings. */
export function isMoved({ id }: AlarmCase, evidence: Evidence): boolean {
  return evidence
    .acts(id, 'update')
    .some(({ operation }) => MOVING.some((member) => operation.change[member] !== undefined));
}

/** A target has a window that both ends belong to. */
export function windowsOf(targets: readonly Target[]): Window[] {
  return targets.map(({ at: from, spreadMs }) => ({ from, until: from + Math.max(0, Math.ceil(spreadMs) - 1) }));
}
