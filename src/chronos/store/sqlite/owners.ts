/** Totals per owner that would otherwise be counted: open alarms and stored size. */
import type { DatabaseSync } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { AlarmStatus } from '../../../wire/alarm-fields.ts';
import { NONE_OPEN, type OpenCount, type StoreUsage } from '../store.ts';
import { prepareQuery } from './statements.ts';

/** The change in an owner's stored alarms. */
export type TotalsChange = { alarms: number; bytes: number };

/** Owner numbers that are cached; beyond it the cache is cleared. */
const MOST_NUMBERS = 20_000;

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

/**
 * @param undo reverts changes in memory when the transaction is rolled back
 */
export function prepareOwners(db: DatabaseSync, undo: Undo) {
  const numberOf = prepareQuery(db, 'SELECT seq FROM owners WHERE owner = ?', ([seq]) => seq as number);
  const insert = prepareQuery(
    db,
    'INSERT INTO owners (owner, open_alarms, stored_alarms, stored_bytes) VALUES (?, 0, 0, 0) RETURNING seq',
    ([seq]) => seq as number,
  );
  const addToRow = db.prepare(`
    UPDATE owners SET open_alarms = max(open_alarms + ?2, 0), stored_alarms = max(stored_alarms + ?3, 0),
      stored_bytes = max(stored_bytes + ?4, 0) WHERE seq = ?1`);
  const totals = prepareQuery(
    db,
    'SELECT open_alarms, stored_alarms, stored_bytes FROM owners WHERE seq = ?',
    ([open, alarms, bytes]) => ({ open: open as number, alarms: alarms as number, bytes: bytes as number }),
  );
  const waitingTriggers = prepareQuery(
    db,
    'SELECT count(*) FROM triggers INDEXED BY triggers_waiting WHERE owner = ? AND due_at IS NOT NULL',
    ([count]) => count as number,
  );
  const countOpen = prepareQuery(
    db,
    `SELECT (SELECT count(*) FROM active AS a CROSS JOIN progress AS p ON p.alarm = a.alarm
       WHERE a.owner = ?1 AND p.status = 'active'), (
       SELECT count(*) FROM aside WHERE owner = (SELECT owner FROM owners WHERE seq = ?1) AND status = 'paused')`,
    ([active, paused]): OpenCount => ({ open: (active as number) + (paused as number), active: active as number }),
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
    // The owner may have been added in the current transaction.
    undo.note(() => numbers.delete(owner));
    return found;
  }

  return {
    /** The owner's number; `undefined` for an owner who never had an alarm. */
    seqOf,

    /** The owner's number; a new owner gets one. */
    enrolled(owner: string): number {
      return seqOf(owner) ?? insert.get(owner)!;
    },

    /**
     * Updates the totals.
     *
     * @param opened the change in the owner's open alarms
     */
    addToTotals(seq: number, opened: number, { alarms, bytes }: TotalsChange = { alarms: 0, bytes: 0 }): void {
      if (opened !== 0 || alarms !== 0 || bytes !== 0) addToRow.run(seq, opened, alarms, bytes);
    },

    /**
     * The number of the owner's open alarms, of all its alarms, and their stored size. A delivery that ends an alarm
     * leaves the stored number of open ones alone; where it reaches the limit they are counted.
     */
    totals(
      seq: number | undefined,
      maxOpen = Number.POSITIVE_INFINITY,
    ): { open: number; alarms: number; bytes: number } {
      const found = (seq === undefined ? undefined : totals.get(seq)) ?? { open: 0, alarms: 0, bytes: 0 };
      if (seq === undefined || found.open < maxOpen) return found;
      const { open } = countOpen.get(seq)!;
      if (open !== found.open) addToRow.run(seq, open - found.open, 0, 0);
      return { ...found, open };
    },

    /** How many alarms of an owner are open. */
    open(owner: string): OpenCount {
      const seq = seqOf(owner);
      return seq === undefined ? NONE_OPEN : countOpen.get(seq)!;
    },

    /** How many triggers of the owner's alarms wait for delivery. */
    waitingTriggers(seq: number): number {
      return waitingTriggers.get(seq)!;
    },

    /** The totals of all owners. */
    usage(): StoreUsage {
      return usage.get()!;
    },
  };
}
