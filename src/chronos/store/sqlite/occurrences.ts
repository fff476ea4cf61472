/** The occurrences' rows: what is owed, and who holds it. */
import type { DatabaseSync } from 'node:sqlite';
import type { Occurrence } from '../../alarm/alarm.ts';
import { OCCURRENCE_COLUMNS } from '../columns.ts';
import type { LeaseKey } from '../store.ts';
import { LIMIT, prepareInsert, prepareQuery, prepareUpdate, shapeOf } from './statements.ts';

const OCCURRENCE = shapeOf(OCCURRENCE_COLUMNS);

const BY_FIRE = 'owner = ? AND alarm_id = ? AND fire_id = ?';

export function prepareOccurrences(db: DatabaseSync) {
  const ofAlarm = prepareQuery(
    db,
    `SELECT ${OCCURRENCE.columns} FROM occurrences WHERE owner = ? AND alarm_id = ? ORDER BY fire_id`,
    OCCURRENCE.read,
  );
  const due = prepareQuery(
    db,
    `SELECT ${OCCURRENCE.columns} FROM occurrences INDEXED BY occurrences_free
     WHERE owner = ? AND due_at <= ? AND lease_until IS NULL ORDER BY due_at, alarm_id, fire_id ${LIMIT}`,
    OCCURRENCE.read,
  );
  const leased = prepareQuery(
    db,
    `SELECT ${OCCURRENCE.columns} FROM occurrences INDEXED BY occurrences_leased
     WHERE lease_until <= ? ORDER BY lease_until`,
    OCCURRENCE.read,
  );
  const insert = prepareInsert<Occurrence>(db, 'occurrences', OCCURRENCE_COLUMNS);
  const update = prepareUpdate<Occurrence>(
    db,
    'occurrences',
    OCCURRENCE_COLUMNS,
    [
      'source',
      'scheduledFor',
      'nominal',
      'dueAt',
      'attempt',
      'missedCount',
      'fence',
      'leaseUntil',
      'claimedAt',
      'heldReason',
      'heldUntil',
    ],
    BY_FIRE,
    ['owner', 'alarmId', 'fireId'],
  );
  const hold = prepareUpdate<Occurrence>(
    db,
    'occurrences',
    OCCURRENCE_COLUMNS,
    ['attempt', 'fence', 'leaseUntil', 'claimedAt'],
    BY_FIRE,
    ['owner', 'alarmId', 'fireId'],
  );
  const renew = db.prepare(
    `UPDATE occurrences SET lease_until = ? WHERE ${BY_FIRE} AND fence = ? AND lease_until IS NOT NULL`,
  );
  const remove = db.prepare(`DELETE FROM occurrences WHERE ${BY_FIRE}`);

  return {
    /** Everything one alarm owes. */
    of(owner: string, alarmId: string): Occurrence[] {
      return ofAlarm.all(owner, alarmId);
    },

    /** What one owner is owed by an instant and nobody holds, earliest due first. */
    due(owner: string, until: number, limit: number): Occurrence[] {
      return due.all(owner, until, limit);
    },

    /**
     * What is held under a lease that ends at or before an instant, parked occurrences included, first to end first.
     */
    leasedUntil(instant: number): Occurrence[] {
      return leased.all(instant);
    },

    insert,
    update,

    /** Writes who holds the occurrence, and nothing else of it. */
    hold,

    /** @returns whether the lease was still there to be extended */
    renew(key: LeaseKey, leaseUntil: number): boolean {
      return renew.run(leaseUntil, key.owner, key.alarmId, key.fireId, key.fence).changes === 1;
    },

    remove(occurrence: Occurrence): void {
      remove.run(occurrence.owner, occurrence.alarmId, occurrence.fireId);
    },
  };
}
