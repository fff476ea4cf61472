/**
 * What is kept per owner so that it need not be counted or searched for: how many alarms stand open, and when the first of
 * their free occurrences falls due.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { AlarmStatus } from '../../../wire/alarm.ts';
import { LIMIT, prepareQuery } from './statements.ts';

/** An owner, and when the first of their free occurrences falls due. */
export type QueuedOwner = { owner: string; nextDue: number };

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

export function prepareOwners(db: DatabaseSync) {
  const refreshRow = db.prepare(`
    INSERT INTO owners (owner, open_alarms, next_due)
    SELECT ?1, max(?2, 0), min(due_at) FROM occurrences INDEXED BY occurrences_free
    WHERE owner = ?1 AND due_at IS NOT NULL AND lease_until IS NULL
    ON CONFLICT (owner) DO UPDATE SET open_alarms = open_alarms + ?2, next_due = excluded.next_due
    WHERE ?2 <> 0 OR next_due IS NOT excluded.next_due`);
  const openAlarms = prepareQuery(db, 'SELECT open_alarms FROM owners WHERE owner = ?', ([count]) => count as number);
  const queue = prepareQuery<QueuedOwner>(
    db,
    `SELECT owner, next_due FROM owners INDEXED BY owners_queue
     WHERE next_due <= ? ORDER BY next_due, owner ${LIMIT}`,
    ([owner, nextDue]) => ({ owner: owner as string, nextDue: nextDue as number }),
  );

  return {
    /**
     * Brings an owner's row up to date; to be called, once per transaction and owner, after their occurrences came, went or
     * changed.
     *
     * @param opened by how many the owner's open alarms have grown
     */
    refresh(owner: string, opened = 0): void {
      refreshRow.run(owner, opened);
    },

    /** How many of the owner's alarms are active or paused. */
    openAlarms(owner: string): number {
      return openAlarms.get(owner) ?? 0;
    },

    /** The owners who are owed something at or before an instant, at most `limit`, who waits longest first. */
    queue(until: number, limit: number): QueuedOwner[] {
      return queue.all(until, limit);
    },
  };
}
