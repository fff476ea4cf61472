/**
 * The attempts at alarms. The last one of an alarm is in the row of its progress; a later attempt moves it to the
 * ledger.
 */
import type { DatabaseSync } from 'node:sqlite';
import { partsOfFireId } from '../../../wire/fire-id.ts';
import type { Attempt, Occurrence } from '../../alarm/alarm.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import type { Completion } from '../store.ts';
import { attemptChange } from '../stored-change.ts';
import { ATTEMPT_NAMES, attemptColumns, attemptIn, attemptValues, LAST_ATTEMPT_NAMES } from './alarms.ts';
import type { Changes } from './changes.ts';
import type { ClaimRow } from './claims.ts';
import { LIMIT, prepareQuery } from './statements.ts';

/** The start of a page of the ledger: the last row of the previous page. */
type AttemptCursor = { startedAt: number; fireId: string; attempt: number };

const latestFirst = (one: Attempt, other: Attempt) =>
  other.startedAt - one.startedAt || other.scheduledFor - one.scheduledFor || other.attempt - one.attempt;

export function prepareLedger(db: DatabaseSync, changes: Changes) {
  const displace = db.prepare(
    `INSERT INTO ledger (alarm, ${ATTEMPT_NAMES.join(', ')}) SELECT alarm, ${LAST_ATTEMPT_NAMES.join(', ')} FROM progress
     WHERE alarm = ? AND last_attempt IS NOT NULL`,
  );
  const assigned = LAST_ATTEMPT_NAMES.map((name) => `${name} = ?`).join(', ');
  const record = db.prepare(`UPDATE progress SET ${assigned} WHERE alarm = ?`);
  const DELIVERED = `failure_count = 0, last_error = NULL, updated_at = ?, last_fired_at = ?, fire_count = ?,
    scheduled_fires = ?, scheduled_for = ?, nominal = ?, due_at = ?, attempt = ?, fence = ?, missed_count = ?,
    held_reason = NULL, held_until = NULL, cause = NULL, ${assigned}`;
  // Only an end changes the status, which two indexes depend on.
  const proceed = db.prepare(`UPDATE progress SET ${DELIVERED} WHERE alarm = ?`);
  const end =
    db.prepare(`UPDATE progress SET status = ?, last_error = ?, ${DELIVERED.replace('last_error = NULL, ', '')}
    WHERE alarm = ?`);

  const last = prepareQuery(
    db,
    `SELECT ${attemptColumns('progress')} FROM definitions AS d CROSS JOIN progress AS f ON f.alarm = d.seq
     WHERE d.owner = ? AND d.id = ? AND f.last_attempt IS NOT NULL`,
    attemptIn,
  );
  const pageFrom = (behind: string) =>
    prepareQuery(
      db,
      `SELECT ${attemptColumns('ledger')} FROM definitions AS d CROSS JOIN ledger AS f ON f.alarm = d.seq
       WHERE d.owner = ? AND d.id = ? ${behind}
       ORDER BY f.started_at DESC, f.scheduled_for DESC, f.attempt DESC ${LIMIT}`,
      attemptIn,
    );
  const latest = pageFrom('');
  const earlier = pageFrom('AND f.started_at <= ?3 AND (f.started_at, f.scheduled_for, f.attempt) < (?3, ?4, ?5)');
  const prune = db.prepare(`
    DELETE FROM ledger WHERE seq IN (
      SELECT seq FROM ledger INDEXED BY ledger_by_age WHERE finished_at < ? ORDER BY finished_at ${LIMIT})`);

  function add(alarm: number, attempt: Attempt): void {
    displace.run(alarm);
    record.run(...attemptValues(attempt), alarm);
    changes.note(attemptChange(attempt));
  }

  return {
    /**
     * Records an attempt.
     *
     * @param alarm the row number of the alarm
     */
    add,

    /** Records an attempt without an outcome; `endedAt` as in {@link interruptedAttempt}. */
    interrupted(alarm: number, claimed: Occurrence, endedAt: number): void {
      add(alarm, interruptedAttempt(claimed, endedAt));
    },

    /** Records a delivery together with what it changes: one row, where the alarm had no attempt before. */
    deliver(
      { alarm, hasAttempt }: ClaimRow,
      { progress, next }: NonNullable<Completion['direct']>['effect'],
      attempt: Attempt,
    ): void {
      if (hasAttempt) displace.run(alarm);
      const { status, lastError, updatedAt, lastFiredAt, fireCount, scheduledFires } = progress;
      const values = [
        ...[updatedAt, lastFiredAt, fireCount, scheduledFires],
        ...(next
          ? [next.scheduledFor, next.nominal, next.dueAt, next.attempt, next.fence, next.missedCount]
          : [null, null, null, null, null, null]),
        ...attemptValues(attempt),
        alarm,
      ];
      if (next) proceed.run(...values);
      else end.run(status, lastError, ...values);
      changes.note(attemptChange(attempt));
    },

    /** Deletes attempts that finished before an instant, the oldest first; returns their number. */
    prune(before: number, limit: number): number {
      return Number(prune.run(before, limit).changes);
    },

    /** One page, latest first. */
    page(owner: string, alarmId: string, limit: number, before?: AttemptCursor): Attempt[] {
      const newest = last.get(owner, alarmId);
      if (!before) return merged(newest, latest.all(owner, alarmId, limit), limit);
      const { dueEpochMs } = partsOfFireId(before.fireId);
      const isBehind =
        newest !== undefined && latestFirst(newest, { ...newest, ...before, scheduledFor: dueEpochMs }) > 0;
      const page = earlier.all(owner, alarmId, before.startedAt, dueEpochMs, before.attempt, limit);
      return merged(isBehind ? newest : undefined, page, limit);
    },
  };
}

/** A page of the ledger with the last attempt of the alarm, which need not have begun last. */
function merged(last: Attempt | undefined, page: Attempt[], limit: number): Attempt[] {
  return last ? [...page, last].sort(latestFirst).slice(0, limit) : page;
}
