/** What is kept per owner so that it need not be counted: how many alarms stand open, and how much is stored. */
import type { DatabaseSync } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/undo.ts';
import type { AlarmStatus } from '../../../wire/alarm.ts';
import type { StoreUsage } from '../store.ts';
import { prepareQuery } from './statements.ts';

/** By how much an owner's stored alarms have grown. */
export type Grown = { alarms: number; bytes: number };

/** Numbers of owners that are remembered; then all are forgotten. */
const MOST_NUMBERS = 20_000;

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

/** @param undo what is done in memory is undone with the rows */
export function prepareOwners(db: DatabaseSync, undo: Undo) {
  const numberOf = prepareQuery(db, 'SELECT seq FROM owners WHERE owner = ?', ([seq]) => seq as number);
  const insert = prepareQuery(
    db,
    'INSERT INTO owners (owner, open_alarms, stored_alarms, stored_bytes) VALUES (?, 0, 0, 0) RETURNING seq',
    ([seq]) => seq as number,
  );
  const growRow = db.prepare(`
    UPDATE owners SET open_alarms = max(open_alarms + ?2, 0), stored_alarms = max(stored_alarms + ?3, 0),
      stored_bytes = max(stored_bytes + ?4, 0) WHERE seq = ?1`);
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
  let numbers = new Map<string, number>();
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
     * Counts what came and went.
     *
     * @param opened by how many the owner's open alarms have grown
     */
    grow(seq: number, opened: number, { alarms, bytes }: Grown = { alarms: 0, bytes: 0 }): void {
      if (opened !== 0 || alarms !== 0 || bytes !== 0) growRow.run(seq, opened, alarms, bytes);
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
  };
}
