/** Computes the row changes of a batch of transitions. Pure. */

import type { Alarm, AlarmState, Attempt, Occurrence } from '../../alarm/alarm.ts';
import { differenceOf } from '../difference.ts';
import { increaseOf } from '../limits.ts';
import { isOpen } from './owners.ts';
import { CHANGEABLE, PROGRESS, type Versioned } from './rows.ts';
import type { Statement } from './statement.ts';

/** One alarm's change. */
export type Change = {
  /** The state that was read. */
  stored: Versioned;
  wanted: AlarmState;
  /** Attempts that are added to the ledger with it. */
  attempts: readonly Attempt[];
  /** The owner requested it; otherwise an attempt ended. */
  isByOwner?: true;
};

/** A row of `occurrences` that becomes another: the same occurrence, or the next one of its series. */
export type Move = { from: Occurrence; to: Occurrence; revision: number };

export type Plan = {
  alarms: { alarm: Alarm; revision: number }[];
  /** Together with `moves`, all occurrences that were pending when the alarms were read. */
  deletes: Occurrence[];
  moves: Move[];
  inserts: { occurrence: Occurrence; revision: number }[];
  ledger: Attempt[];
  /**
   * Owners whose counters change: more open alarms, longer texts (bytes), or only `edits`, which counts changes that no
   * row of the ledger shows (`change-poll.ts`).
   */
  grown: Map<string, { opened: number; bytes: number }>;
  /** Whether anything beyond {@link PROGRESS} changes. */
  edits: boolean;
};

/** A statement that writes a part of a plan, with its values after the bucket. */
export type Writer = { statement: Statement; values: (plan: Plan) => unknown[] };

/** The statements that write alarms with their occurrences, by what they change. */
export type Writers = Readonly<
  Record<'progress' | 'all', { delete: Writer; move: Writer }> & {
    /** Adds the attempts to the ledger, where the others do not. */
    ledger?: Writer;
  }
>;

const DEFINITION = CHANGEABLE.filter((member) => !PROGRESS.some((known) => known === member));

const byFireId = (one: Occurrence, other: Occurrence) => (one.fireId < other.fireId ? -1 : 1);

function planOccurrences(plan: Plan, stored: AlarmState, wanted: AlarmState, revision: number): void {
  const { added, removed } = differenceOf(stored, wanted);
  const replaced = Math.min(added.length, removed.length);
  const moves = removed.slice(0, replaced).map((from, index): Move => ({ from, to: added[index]!, revision }));
  // Unchanged occurrences are written as well, because they carry the alarm's revision.
  const known = new Map(stored.occurrences.map((occurrence) => [occurrence.fireId, occurrence]));
  for (const to of wanted.occurrences) {
    const from = known.get(to.fireId);
    if (from) moves.push({ from, to, revision });
  }
  plan.moves.push(...moves.sort((one, other) => byFireId(one.from, other.from)));
  plan.deletes.push(...removed.slice(replaced).sort(byFireId));
  for (const occurrence of added.slice(replaced)) plan.inserts.push({ occurrence, revision });
}

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

export function planOf(changes: readonly Change[]): Plan {
  const plan: Plan = {
    alarms: [],
    deletes: [],
    moves: [],
    inserts: [],
    ledger: [],
    grown: new Map(),
    edits: false,
  };
  for (const { stored, wanted, attempts, isByOwner } of inOrder(changes)) {
    const { alarm } = wanted;
    const before = stored.state.alarm;
    plan.alarms.push({ alarm, revision: stored.revision });
    planOccurrences(plan, stored.state, wanted, stored.revision + 1);
    plan.ledger.push(...attempts);
    const edits = DEFINITION.some((member) => alarm[member] !== before[member]);
    plan.edits ||= edits;
    const opens = isOpen(alarm.status) && !isOpen(before.status);
    const bytes = edits ? increaseOf(stored.state, wanted).bytes : 0;
    if (!opens && bytes === 0 && !isByOwner && !isDeferred(stored.state, wanted)) continue;
    const grown = plan.grown.get(alarm.owner) ?? { opened: 0, bytes: 0 };
    plan.grown.set(alarm.owner, { opened: grown.opened + Number(opens), bytes: grown.bytes + bytes });
  }
  return plan;
}
