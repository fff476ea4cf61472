/**
 * What is kept per owner so that it need not be counted or searched for: how many alarms stand open, how much is
 * stored, and when the first of their free occurrences falls due.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { AlarmStatus } from '../../../wire/alarm.ts';
import type { StoreUsage } from '../store.ts';
import { LIMIT, prepareQuery } from './statements.ts';

/** An owner, and when the first of their free occurrences falls due. */
export type QueuedOwner = { owner: string; nextDue: number };

/** By how much an owner's stored alarms have grown. */
export type Grown = { alarms: number; bytes: number };

const NOT_GROWN: Grown = { alarms: 0, bytes: 0 };

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

export function prepareOwners(db: DatabaseSync) {
  const refreshRow = db.prepare(`
    INSERT INTO owners (owner, open_alarms, stored_alarms, stored_bytes, next_due)
    SELECT ?1, max(?2, 0), max(?3, 0), max(?4, 0), min(due_at) FROM occurrences INDEXED BY occurrences_free
    WHERE owner = ?1 AND due_at IS NOT NULL AND lease_until IS NULL
    ON CONFLICT (owner) DO UPDATE SET open_alarms = open_alarms + ?2, stored_alarms = max(stored_alarms + ?3, 0),
      stored_bytes = max(stored_bytes + ?4, 0), next_due = excluded.next_due
    WHERE ?2 <> 0 OR ?3 <> 0 OR ?4 <> 0 OR next_due IS NOT excluded.next_due`);
  const held = prepareQuery(
    db,
    'SELECT open_alarms, stored_alarms, stored_bytes FROM owners WHERE owner = ?',
    ([open, alarms, bytes]) => ({ open: open as number, alarms: alarms as number, bytes: bytes as number }),
  );
  const waitingTriggers = prepareQuery(
    db,
    `SELECT count(*) FROM occurrences INDEXED BY occurrences_triggers
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
    `SELECT owner, next_due FROM owners INDEXED BY owners_queue
     WHERE next_due <= ? ORDER BY next_due, owner ${LIMIT}`,
    ([owner, nextDue]) => ({ owner: owner as string, nextDue: nextDue as number }),
  );

  return {
    /**
     * Brings an owner's row up to date; to be called, once per transaction and owner, after their occurrences came,
     * went or changed.
     *
     * @param opened by how many the owner's open alarms have grown
     */
    refresh(owner: string, opened = 0, grown: Grown = NOT_GROWN): void {
      refreshRow.run(owner, opened, grown.alarms, grown.bytes);
    },

    /** How many of the owner's alarms are active or paused, how many there are, and what those take up. */
    held(owner: string): { open: number; alarms: number; bytes: number } {
      return held.get(owner) ?? { open: 0, alarms: 0, bytes: 0 };
    },

    /** How many triggers of the owner's alarms wait to be delivered. */
    waitingTriggers(owner: string): number {
      return waitingTriggers.get(owner)!;
    },

    /** What all owners have together. */
    usage(): StoreUsage {
      return usage.get()!;
    },

    /** The owners who are owed something at or before an instant, at most `limit`, who waits longest first. */
    queue(until: number, limit: number): QueuedOwner[] {
      return queue.all(until, limit);
    },
  };
}
