/** Computes the row changes of a batch of transitions. Pure. */

import { type Alarm, type AlarmState, type Attempt, type Occurrence, scheduledOccurrence } from '../../alarm/alarm.ts';
import { differenceOf } from '../difference.ts';
import { increaseOf } from '../limits.ts';
import { isOpen } from './owners.ts';
import { DEFINITION, type Versioned } from './rows.ts';

/** One alarm's change. */
export type Change = {
  /** The state that was read. */
  stored: Versioned;
  wanted: AlarmState;
  /** Attempts that are recorded with it. */
  attempts: readonly Attempt[];
  /** The owner requested it; otherwise an attempt ended. */
  isByOwner?: true;
};

/** An alarm's row of `progress`, as it was read and as it is to be. */
type ProgressChange = {
  alarm: Alarm;
  revision: number;
  edition: number;
  scheduled: Occurrence | undefined;
  triggers: number;
  holder: number | null;
  last: Attempt | undefined;
};

/** The row of an occurrence beside the schedule. */
type TriggerRow = { occurrence: Occurrence; revision: number; holder: number | null };

export type Plan = {
  progress: ProgressChange[];
  definitions: { alarm: Alarm; edition: number }[];
  /** Rows of other occurrences that end or change, as they were read, and the new ones. A change is both. */
  gone: TriggerRow[];
  added: TriggerRow[];
  /** Attempts that a later one replaces. */
  ledger: Attempt[];
  /**
   * Owners whose counters change: more open alarms, longer texts (bytes), or only `edits`, which counts changes that no
   * attempt shows (`change-poll.ts`).
   */
  grown: Map<string, { opened: number; bytes: number }>;
};

const holdsKey = ({ status, idempotencyKey }: Alarm) => status !== 'cancelled' && idempotencyKey !== null;

/** One common order, so that batches that lock the same rows cannot deadlock. */
function inOrder(changes: readonly Change[]): Change[] {
  return changes.toSorted(({ wanted: { alarm: one } }, { wanted: { alarm: other } }) =>
    one.owner === other.owner ? (one.id < other.id ? -1 : 1) : one.owner < other.owner ? -1 : 1,
  );
}

/** Whether the transition deferred an occurrence. */
function isDeferred(stored: AlarmState, wanted: AlarmState): boolean {
  return wanted.occurrences.some(
    ({ fireId, heldUntil }) =>
      heldUntil !== null && stored.occurrences.some((was) => was.fireId === fireId && was.heldUntil !== heldUntil),
  );
}

/** The holder of an occurrence that was claimed before and still is. A row that becomes another one takes it along. */
function holderOf({ holders }: Versioned, occurrence: Occurrence | undefined): number | null {
  return occurrence && occurrence.claimedAt !== null ? (holders.get(occurrence.fireId) ?? null) : null;
}

function planTriggers(plan: Plan, stored: Versioned, wanted: AlarmState): void {
  const { added, changed, removed } = differenceOf(stored.state, wanted);
  for (const { fireId } of [...changed, ...removed]) {
    const revision = stored.triggers.get(fireId);
    const occurrence = stored.state.occurrences.find((each) => each.fireId === fireId)!;
    if (revision !== undefined) plan.gone.push({ occurrence, revision, holder: null });
  }
  for (const occurrence of [...added, ...changed]) {
    if (occurrence.source !== 'trigger') continue;
    const revision = (stored.triggers.get(occurrence.fireId) ?? 0) + 1;
    plan.added.push({ occurrence, revision, holder: holderOf(stored, occurrence) });
  }
}

function planGrowth(plan: Plan, { stored, wanted, isByOwner }: Change, edits: boolean): void {
  const { owner, status } = wanted.alarm;
  const opens = isOpen(status) && !isOpen(stored.state.alarm.status);
  const bytes = edits ? increaseOf(stored.state, wanted).bytes : 0;
  const pauses = status === 'paused' && stored.state.alarm.status !== 'paused';
  if (!opens && bytes === 0 && !isByOwner && !pauses && !isDeferred(stored.state, wanted)) return;
  const grown = plan.grown.get(owner) ?? { opened: 0, bytes: 0 };
  plan.grown.set(owner, { opened: grown.opened + Number(opens), bytes: grown.bytes + bytes });
}

export function planOf(changes: readonly Change[]): Plan {
  const plan: Plan = { progress: [], definitions: [], gone: [], added: [], ledger: [], grown: new Map() };
  for (const change of inOrder(changes)) {
    const { stored, wanted, attempts } = change;
    const { alarm } = wanted;
    const before = stored.state.alarm;
    const edits = DEFINITION.members.some((member) => alarm[member] !== before[member]);
    const edition = stored.edition + Number(edits);
    const recorded = stored.last ? [stored.last, ...attempts] : attempts;
    const last = recorded.at(-1);
    const scheduled = scheduledOccurrence(wanted);
    plan.progress.push({
      alarm,
      revision: stored.revision,
      edition,
      scheduled,
      holder: holderOf(stored, scheduled),
      triggers: wanted.occurrences.filter(({ source }) => source === 'trigger').length,
      last,
    });
    plan.ledger.push(...recorded.slice(0, -1));
    if (edits || holdsKey(alarm) !== holdsKey(before)) plan.definitions.push({ alarm, edition });
    planTriggers(plan, stored, wanted);
    planGrowth(plan, change, edits);
  }
  return plan;
}
