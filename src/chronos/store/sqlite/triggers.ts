/**
 * The rows of occurrences beside the schedule: triggers, and occurrences in delivery whose schedule was replaced
 * meanwhile.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Occurrence } from '../../alarm/alarm.ts';
import { type AlarmLocation, occurrenceColumns, occurrenceIn, occurrenceValues } from './alarms.ts';
import { prepareQuery } from './statements.ts';

export function prepareTriggers(db: DatabaseSync) {
  const ofAlarm = prepareQuery(
    db,
    `SELECT ${occurrenceColumns('o')} FROM triggers AS o WHERE o.alarm = ? ORDER BY o.scheduled_for`,
    (row) => row,
  );
  const columns = 'scheduled_for, nominal, due_at, attempt, fence, missed_count, held_reason, held_until, cause';
  const put = db.prepare(
    `INSERT OR REPLACE INTO triggers (alarm, owner, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const remove = db.prepare('DELETE FROM triggers WHERE alarm = ? AND scheduled_for = ?');

  return {
    /** Those of one alarm, without their claims. */
    of: (location: AlarmLocation): Occurrence[] =>
      ofAlarm.all(location.seq).map((row) => occurrenceIn(row, 0, location, 'trigger')),

    /** Inserts or changes one. */
    put({ seq, ownerSeq }: AlarmLocation, occurrence: Occurrence): void {
      put.run(seq, ownerSeq, ...occurrenceValues(occurrence));
    },

    remove({ seq }: AlarmLocation, { scheduledFor }: Occurrence): void {
      remove.run(seq, scheduledFor);
    },
  };
}
