/** The ledger of attempts. */
import type { DatabaseSync } from 'node:sqlite';
import { partsOfFireId } from '../../../wire/fire-id.ts';
import type { Attempt, Occurrence } from '../../alarm/alarm.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import { attemptChange } from '../stored-change.ts';
import type { Changes } from './changes.ts';
import { LIMIT, prepareQuery } from './statements.ts';

/** The start of a page of the ledger: the last row of the previous page. */
type AttemptCursor = { startedAt: number; fireId: string; attempt: number };

const COLUMNS =
  'f.scheduled_for, f.attempt, f.started_at, f.finished_at, f.outcome, f.http_status, f.error, f.missed_count, f.machine_ready_ms, f.late_because';

export function prepareLedger(db: DatabaseSync, changes: Changes) {
  const insert = db.prepare(
    `INSERT INTO ledger (alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error,
       missed_count, machine_ready_ms, late_because) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const pageFrom = (behind: string) =>
    prepareQuery<Attempt>(
      db,
      `SELECT a.owner, a.id, ${COLUMNS} FROM alarms AS a CROSS JOIN ledger AS f ON f.alarm = a.seq
       WHERE a.owner = ? AND a.id = ? ${behind}
       ORDER BY f.started_at DESC, f.scheduled_for DESC, f.attempt DESC ${LIMIT}`,
      ([owner, id, at, attempt, startedAt, finishedAt, ...[outcome, httpStatus, error, missedCount, ready, late]]) =>
        ({
          ...{ fireId: `${id}@${at}`, alarmId: id, owner, scheduledFor: at, attempt, startedAt, finishedAt },
          ...{ outcome, httpStatus, error, missedCount, machineReadyMs: ready, lateBecause: late },
        }) as Attempt,
    );
  const latest = pageFrom('');
  const earlier = pageFrom('AND f.started_at <= ?3 AND (f.started_at, f.scheduled_for, f.attempt) < (?3, ?4, ?5)');
  const prune = db.prepare(`
    DELETE FROM ledger WHERE seq IN (
      SELECT seq FROM ledger INDEXED BY ledger_by_age WHERE finished_at < ? ORDER BY finished_at ${LIMIT})`);

  function add(alarm: number, attempt: Attempt): void {
    const { scheduledFor, startedAt, finishedAt, outcome, httpStatus, error, missedCount, machineReadyMs } = attempt;
    insert.run(
      ...[alarm, scheduledFor, attempt.attempt, startedAt, finishedAt, outcome, httpStatus, error],
      ...[missedCount, machineReadyMs, attempt.lateBecause],
    );
    changes.note(attemptChange(attempt));
  }

  return {
    /**
     * @param alarm the row number of the alarm
     */
    insert: add,

    /** Records an attempt without an outcome; `endedAt` as in {@link interruptedAttempt}. */
    interrupted(alarm: number, claimed: Occurrence, endedAt: number): void {
      add(alarm, interruptedAttempt(claimed, endedAt));
    },

    /** Deletes attempts that finished before an instant, the oldest first; returns their number. */
    prune(before: number, limit: number): number {
      return Number(prune.run(before, limit).changes);
    },

    /** One page, latest first. */
    page(owner: string, alarmId: string, limit: number, before?: AttemptCursor): Attempt[] {
      if (!before) return latest.all(owner, alarmId, limit);
      const { dueEpochMs } = partsOfFireId(before.fireId);
      return earlier.all(owner, alarmId, before.startedAt, dueEpochMs, before.attempt, limit);
    },
  };
}
