/** Turn reports of fires. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { partsOfFireId } from '../../../wire/fire-id.ts';
import type { TurnStage } from '../../../wire/turn-report.ts';
import { ATTEMPTS_READ, type StoredTurnReport } from '../../alarm/fire-history.ts';
import { TURN_REPORT_COLUMNS } from '../columns.ts';
import type { FireTurnReports, RecordedTurnReports } from '../store.ts';
import { LIMIT, prepareQuery, shapeOf } from './statements.ts';

const TURN_REPORT = shapeOf(TURN_REPORT_COLUMNS);

const readOptions = ([options]: readonly SQLOutputValue[]) => ({ options: options as string | null });

export function prepareTurnReports(db: DatabaseSync) {
  const pending = prepareQuery(
    db,
    `SELECT d.options FROM definitions AS d CROSS JOIN (
       SELECT alarm, scheduled_for, attempt FROM progress UNION ALL SELECT alarm, scheduled_for, attempt FROM triggers
     ) AS o ON o.alarm = d.seq
     WHERE d.owner = ?1 AND d.id = ?2 AND o.scheduled_for = ?3 AND (o.attempt >= 1 OR EXISTS (
       SELECT 1 FROM claims AS l WHERE l.alarm = o.alarm AND l.scheduled_for = o.scheduled_for AND l.attempt >= 1))`,
    readOptions,
  );
  const attempted = prepareQuery(
    db,
    `SELECT options FROM (
       SELECT last_scheduled_for AS scheduled_for, d.options FROM definitions AS d CROSS JOIN progress AS p ON p.alarm = d.seq
       WHERE d.owner = ?1 AND d.id = ?2 AND p.last_started_at >= ?3
       UNION ALL
       SELECT scheduled_for, options FROM (
         SELECT f.scheduled_for, d.options FROM definitions AS d CROSS JOIN ledger AS f ON f.alarm = d.seq
         WHERE d.owner = ?1 AND d.id = ?2 AND f.started_at >= ?3 ORDER BY f.started_at LIMIT ${ATTEMPTS_READ}))
     WHERE scheduled_for = ?4 LIMIT 1`,
    readOptions,
  );
  const insert = db.prepare(`
    INSERT INTO fire_receipts (${TURN_REPORT.columns}) VALUES (${Object.keys(TURN_REPORT_COLUMNS)
      .map(() => '?')
      .join(', ')})
    ON CONFLICT (owner, alarm_id, fire_id, stage) DO UPDATE SET at = excluded.at, error = excluded.error,
      turn_id = excluded.turn_id, conversation_id = excluded.conversation_id, retry_at = excluded.retry_at,
      recorded_at = excluded.recorded_at
    WHERE excluded.stage = 'turn_waits' AND excluded.at > fire_receipts.at`);
  const ofFires = prepareQuery(
    db,
    `SELECT ${TURN_REPORT.columns} FROM fire_receipts
     WHERE owner = ? AND alarm_id = ? AND fire_id IN (SELECT value FROM json_each(?))`,
    TURN_REPORT.read,
  );
  const prune = db.prepare(`
    DELETE FROM fire_receipts WHERE (owner, alarm_id, fire_id, stage) IN (
      SELECT owner, alarm_id, fire_id, stage FROM fire_receipts INDEXED BY fire_receipts_by_age
      WHERE recorded_at < ? ORDER BY recorded_at ${LIMIT})`);

  /** The options of the alarm of an attempted fire; `undefined` when the fire does not exist. */
  const find = ({ owner, alarmId, fireId, dueAt }: Pick<FireTurnReports, 'owner' | 'alarmId' | 'fireId' | 'dueAt'>) => {
    const named = partsOfFireId(fireId);
    if (named.alarmId !== alarmId) return undefined;
    return pending.get(owner, alarmId, named.dueEpochMs) ?? attempted.get(owner, alarmId, dueAt, named.dueEpochMs);
  };

  return {
    find,

    /** Stores new reports; `undefined` when the fire does not exist. */
    record(reported: FireTurnReports): RecordedTurnReports | undefined {
      const found = find(reported);
      if (!found) return undefined;
      const { owner, alarmId, fireId, reports, recordedAt } = reported;
      const fresh = new Set<TurnStage>();
      for (const { stage, at, outcome, error, turnId, conversationId, retryAt, reply, usage } of reports) {
        const { changes } = insert.run(
          ...[owner, alarmId, fireId, stage, at, outcome, error, turnId, conversationId, recordedAt, retryAt, reply],
          usage,
        );
        if (Number(changes) === 1) fresh.add(stage);
      }
      return { fresh, ...found };
    },

    of(owner: string, alarmId: string, fireIds: readonly string[]): StoredTurnReport[] {
      return ofFires.all(owner, alarmId, JSON.stringify(fireIds));
    },

    /** Deletes reports that were recorded before an instant, the oldest first; returns their number. */
    prune(before: number, limit: number): number {
      return Number(prune.run(before, limit).changes);
    },
  };
}
