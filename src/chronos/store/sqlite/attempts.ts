/** The ledger of attempts. */
import type { DatabaseSync } from 'node:sqlite';
import type { Attempt, Occurrence } from '../../alarm/alarm.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import { ATTEMPT_COLUMNS } from '../columns.ts';
import { LIMIT, prepareInsert, prepareQuery, shapeOf } from './statements.ts';

const ATTEMPT = shapeOf(ATTEMPT_COLUMNS);

/** Where a page of the ledger goes on: the last row of the page before. */
type AttemptCursor = { startedAt: number; fireId: string; attempt: number };

export function prepareLedger(db: DatabaseSync) {
  const insert = prepareInsert<Attempt>(db, 'fire_attempts', ATTEMPT_COLUMNS);
  const latest = prepareQuery(
    db,
    `SELECT ${ATTEMPT.columns} FROM fire_attempts WHERE owner = ? AND alarm_id = ?
     ORDER BY started_at DESC, fire_id DESC, attempt DESC ${LIMIT}`,
    ATTEMPT.read,
  );
  const earlier = prepareQuery(
    db,
    `SELECT ${ATTEMPT.columns} FROM fire_attempts
     WHERE owner = ? AND alarm_id = ? AND (started_at, fire_id, attempt) < (?, ?, ?)
     ORDER BY started_at DESC, fire_id DESC, attempt DESC ${LIMIT}`,
    ATTEMPT.read,
  );

  const prune = db.prepare(`
    DELETE FROM fire_attempts WHERE (owner, alarm_id, started_at, fire_id, attempt) IN (
      SELECT owner, alarm_id, started_at, fire_id, attempt FROM fire_attempts INDEXED BY fire_attempts_by_age
      WHERE finished_at < ? ORDER BY finished_at ${LIMIT})`);

  return {
    insert,

    /** Records the attempt of a holder who was not heard of again; `knownAt` as in {@link interruptedAttempt}. */
    interrupted(held: Occurrence, knownAt?: number): void {
      insert(interruptedAttempt(held, knownAt));
    },

    /** Deletes attempts that finished before an instant, the oldest first; says how many there were. */
    prune(before: number, limit: number): number {
      return Number(prune.run(before, limit).changes);
    },

    /** One page, latest first. */
    page(owner: string, alarmId: string, limit: number, before?: AttemptCursor): Attempt[] {
      if (!before) return latest.all(owner, alarmId, limit);
      return earlier.all(owner, alarmId, before.startedAt, before.fireId, before.attempt, limit);
    },
  };
}
