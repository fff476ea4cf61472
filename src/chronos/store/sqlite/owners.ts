/**
 * What is kept per owner so that it need not be counted or searched for: how many alarms stand open, how much is
 * stored, and before which instant nothing that nobody holds is due.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/undo.ts';
import type { AlarmStatus } from '../../../wire/alarm.ts';
import type { StoreUsage } from '../store.ts';
import type { prepareOccurrences } from './occurrences.ts';
import { LIMIT, prepareQuery } from './statements.ts';

/** An owner, and when the first of what nobody holds falls due. */
export type QueuedOwner = { seq: number; owner: string; nextDue: number };

/** By how much an owner's stored alarms have grown. */
export type Grown = { alarms: number; bytes: number };

const NOT_GROWN: Grown = { alarms: 0, bytes: 0 };
/** Nothing is due that nobody holds. */
const NEVER = Number.POSITIVE_INFINITY;
/** Numbers of owners that are remembered; then all are forgotten. */
const MOST_NUMBERS = 20_000;

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

/** @param undo what is done in memory is undone with the rows */
export function prepareOwners(db: DatabaseSync, occurrences: ReturnType<typeof prepareOccurrences>, undo: Undo) {
  const numberOf = prepareQuery(db, 'SELECT seq FROM owners WHERE owner = ?', ([seq]) => seq as number);
  const insert = prepareQuery(
    db,
    'INSERT INTO owners (owner, open_alarms, stored_alarms, stored_bytes) VALUES (?, 0, 0, 0) RETURNING seq',
    ([seq]) => seq as number,
  );
  const refreshRow = db.prepare(`
    UPDATE owners SET open_alarms = max(open_alarms + ?2, 0), stored_alarms = max(stored_alarms + ?3, 0),
      stored_bytes = max(stored_bytes + ?4, 0), next_due = ?5
    WHERE seq = ?1 AND (?2 <> 0 OR ?3 <> 0 OR ?4 <> 0 OR next_due IS NOT ?5)`);
  const growRow = db.prepare(`
    UPDATE owners SET open_alarms = open_alarms + ?2, stored_alarms = stored_alarms + 1,
      stored_bytes = stored_bytes + ?3, next_due = CASE WHEN ?4 < next_due OR next_due IS NULL THEN ?4 ELSE next_due END
    WHERE seq = ?1`);
  const held = prepareQuery(
    db,
    'SELECT open_alarms, stored_alarms, stored_bytes FROM owners WHERE seq = ?',
    ([open, alarms, bytes]) => ({ open: open as number, alarms: alarms as number, bytes: bytes as number }),
  );
  const waitingTriggers = prepareQuery(
    db,
    `SELECT count(*) FROM owed INDEXED BY owed_triggers
     WHERE owner = ? AND source = 'trigger' AND due_at IS NOT NULL`,
    ([count]) => count as number,
  );
  const usage = prepareQuery<StoreUsage>(
    db,
    'SELECT count(*), coalesce(sum(stored_alarms), 0), coalesce(sum(stored_bytes), 0) FROM owners',
    ([owners, alarms, bytes]) => ({ owners: owners as number, alarms: alarms as number, bytes: bytes as number }),
  );
  const queue = prepareQuery<QueuedOwner>(
    db,
    `SELECT seq, owner, next_due FROM owners INDEXED BY owners_queue
     WHERE next_due <= ? ORDER BY next_due, seq ${LIMIT}`,
    ([seq, owner, nextDue]) => ({ seq, owner, nextDue }) as QueuedOwner,
  );

  let numbers = new Map<string, number>();
  /** When the first of what nobody holds falls due, of owners whose rows say something earlier. */
  const exactly = new Map<number, number>();

  function setExactly(seq: number, nextDue: number | undefined): void {
    const before = exactly.get(seq);
    if (before === nextDue) return;
    const set = (value: number | undefined) => {
      if (value === undefined) exactly.delete(seq);
      else exactly.set(seq, value);
    };
    set(nextDue);
    undo.note(() => set(before));
  }

  function seqOf(owner: string): number | undefined {
    const known = numbers.get(owner);
    if (known !== undefined) return known;
    const found = numberOf.get(owner);
    if (found === undefined) return undefined;
    if (numbers.size >= MOST_NUMBERS) numbers = new Map();
    numbers.set(owner, found);
    // The owner may have come with the transaction under way.
    undo.note(() => numbers.delete(owner));
    return found;
  }

  return {
    /** The owner's number; `undefined` for one who never had an alarm. */
    seqOf,

    /** The owner's number; a new owner gets one. */
    enrolled(owner: string): number {
      return seqOf(owner) ?? insert.get(owner)!;
    },

    /**
     * Brings an owner's row up to date; to be called, once per transaction and owner, after their occurrences came,
     * went, changed or were let go.
     *
     * @param opened by how many the owner's open alarms have grown
     */
    refresh(seq: number, opened = 0, grown: Grown = NOT_GROWN): void {
      refreshRow.run(seq, opened, grown.alarms, grown.bytes, occurrences.free(seq, 1)[0]?.dueAt ?? null);
      setExactly(seq, undefined);
    },

    /** Counts a new alarm whose occurrence is due at an instant. */
    grow(seq: number, { opened, bytes, dueAt }: { opened: number; bytes: number; dueAt: number | null }): void {
      growRow.run(seq, opened, bytes, dueAt);
      const exact = exactly.get(seq);
      if (exact !== undefined && dueAt !== null && dueAt < exact) setExactly(seq, dueAt);
    },

    /** Remembers what nobody holds first after a claim; `undefined`: nothing. The row may say something earlier. */
    claimed(seq: number, nextDue: number | undefined): void {
      setExactly(seq, nextDue ?? NEVER);
    },

    /** How many of the owner's alarms are active or paused, how many there are, and what those take up. */
    held(seq: number | undefined): { open: number; alarms: number; bytes: number } {
      return (seq === undefined ? undefined : held.get(seq)) ?? { open: 0, alarms: 0, bytes: 0 };
    },

    /** How many triggers of the owner's alarms wait to be delivered. */
    waitingTriggers(seq: number): number {
      return waitingTriggers.get(seq)!;
    },

    /** What all owners have together. */
    usage(): StoreUsage {
      return usage.get()!;
    },

    /**
     * At least the first `limit` owners who are owed something at or before an instant, in an order in which nobody
     * further down is owed anything before what stands in the row of the present one.
     */
    *queue(until: number, limit: number): Generator<QueuedOwner & { exactly: number }> {
      for (const queued of queue.all(until, limit + exactly.size))
        yield { ...queued, exactly: exactly.get(queued.seq) ?? queued.nextDue };
    },
  };
}
