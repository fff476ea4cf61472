/** Deletes final alarms with all their rows. */
import type { Executor } from './pool.ts';
import { STORED_BYTES } from './rows.ts';
import { isStorable } from './state.ts';
import { type Statement, statement } from './statement.ts';

/** Rows of the ledger, of turn reports, and of events that one call deletes: a long ledger is deleted in steps. */
const LEDGER_ROWS_AT_ONCE = 2000;

/** The rows of alarms that ended. Nothing of them runs: no claim, no retry and no waiting trigger. */
const ENDED = `
    SELECT owner, alarm_id AS id FROM progress AS p
    WHERE bucket = $1 AND ended AND aged_at < $2 AND claimed_at IS NULL AND due_at IS NULL AND triggers = 0
    ORDER BY aged_at LIMIT $3`;

const CANCELLED = `
    SELECT owner, alarm_id AS id FROM progress AS p
    WHERE bucket = $1 AND owner = $2 AND status = 'cancelled' AND claimed_at IS NULL AND due_at IS NULL AND triggers = 0
    ORDER BY alarm_id LIMIT $3`;

type Deletion = { ledger: Statement; alarms: Statement };

/**
 * The ledger is deleted first, in limited steps; the alarm follows when its ledger is empty. Its row is locked while it
 * is deleted: a concurrent change waits and then finds no alarm.
 */
function deletion(name: string, which: string): Deletion {
  return {
    ledger: statement(
      `${name}_ledger`,
      `
      WITH old AS (${which}
      ), attempts AS (
        DELETE FROM ledger WHERE bucket = $1 AND (owner, alarm_id, started_at, scheduled_for, attempt) IN (
          SELECT f.owner, f.alarm_id, f.started_at, f.scheduled_for, f.attempt
          FROM ledger AS f JOIN old ON f.bucket = $1 AND f.owner = old.owner AND f.alarm_id = old.id
          LIMIT ${LEDGER_ROWS_AT_ONCE})
      ), arrived AS (
        DELETE FROM events WHERE bucket = $1 AND (owner, alarm_id, id) IN (
          SELECT e.owner, e.alarm_id, e.id
          FROM events AS e JOIN old ON e.bucket = $1 AND e.owner = old.owner AND e.alarm_id = old.id
          LIMIT ${LEDGER_ROWS_AT_ONCE})
      )
      DELETE FROM fire_receipts WHERE bucket = $1 AND (owner, alarm_id, fire_id, stage) IN (
        SELECT r.owner, r.alarm_id, r.fire_id, r.stage
        FROM fire_receipts AS r JOIN old ON r.bucket = $1 AND r.owner = old.owner AND r.alarm_id = old.id
        LIMIT ${LEDGER_ROWS_AT_ONCE})`,
    ),
    alarms: statement(
      `${name}_alarms`,
      `
      WITH old AS (${which} FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM progress AS p USING old
        WHERE p.bucket = $1 AND p.owner = old.owner AND p.alarm_id = old.id AND p.trigger_at = 0
          AND NOT EXISTS (SELECT 1 FROM ledger AS f WHERE f.bucket = $1 AND f.owner = p.owner AND f.alarm_id = p.alarm_id)
          AND NOT EXISTS (
            SELECT 1 FROM fire_receipts AS r WHERE r.bucket = $1 AND r.owner = p.owner AND r.alarm_id = p.alarm_id)
          AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.bucket = $1 AND e.owner = p.owner AND e.alarm_id = p.alarm_id)
        RETURNING p.owner, p.alarm_id
      ), defined AS (
        DELETE FROM definitions AS d USING gone WHERE d.bucket = $1 AND d.owner = gone.owner AND d.id = gone.alarm_id
        RETURNING d.owner, ${STORED_BYTES} AS bytes
      ), counted AS (
        UPDATE owners AS w SET stored_alarms = GREATEST(w.stored_alarms - less.alarms, 0),
          stored_bytes = GREATEST(w.stored_bytes - less.bytes, 0)
        FROM (SELECT owner, count(*) AS alarms, sum(bytes)::bigint AS bytes FROM defined GROUP BY owner) AS less
        WHERE w.bucket = $1 AND w.owner = less.owner
      )
      SELECT count(*) FROM gone`,
    ),
  };
}

const OF_ALL = deletion('forget_ended', ENDED);
const OF_OWNER = deletion('forget_cancelled', CANCELLED);

async function deleteAlarms(executor: Executor, { ledger, alarms }: Deletion, values: unknown[]): Promise<number> {
  await executor.query(ledger, values);
  return (await executor.query(alarms, values))[0]![0] as number;
}

/** Deletes alarms of a bucket that ended before an instant; returns their number. */
export function deleteEnded(executor: Executor, bucket: number, before: number, limit: number): Promise<number> {
  return deleteAlarms(executor, OF_ALL, [bucket, before, limit]);
}

/** Deletes an owner's oldest cancelled alarms; returns their number. */
export async function deleteCancelled(
  executor: Executor,
  bucket: number,
  owner: string,
  limit: number,
): Promise<number> {
  return isStorable(owner) ? deleteAlarms(executor, OF_OWNER, [bucket, owner, limit]) : 0;
}
