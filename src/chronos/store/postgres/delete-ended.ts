/** Deletes final alarms with all their rows. */
import type { Executor } from './pool.ts';
import { isStorable } from './state.ts';
import { type Statement, statement } from './statement.ts';

/** Attempts and turn reports that one call deletes: a long ledger is deleted in steps. */
const LEDGER_ROWS_AT_ONCE = 2000;

/** No claim and no waiting trigger. The pending occurrence of a failed alarm is parked. */
const NOTHING_RUNS = `NOT EXISTS (
      SELECT 1 FROM occurrences AS o WHERE o.bucket = $1 AND o.owner = a.owner AND o.alarm_id = a.id
        AND (o.holder IS NOT NULL OR o.due_at IS NOT NULL))`;

/** Alarms that an earlier version ended have no end time. They ended after their last fire and after they were due. */
const ENDED = `
    SELECT owner, id FROM alarms AS a
    WHERE bucket = $1 AND over_from < $2 AND status IN ('fired', 'cancelled', 'failed') AND updated_at < $2
      AND COALESCE(last_fired_at, 0) < $2 AND (status = 'cancelled' OR COALESCE(fire_at, 0) < $2) AND ${NOTHING_RUNS}
    ORDER BY over_from LIMIT $3`;

const CANCELLED = `
    SELECT owner, id FROM alarms AS a WHERE bucket = $1 AND owner = $2 AND aside = 'cancelled' AND ${NOTHING_RUNS}
    ORDER BY id LIMIT $3`;

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
        DELETE FROM fire_attempts WHERE bucket = $1 AND (owner, alarm_id, started_at, fire_id, attempt) IN (
          SELECT f.owner, f.alarm_id, f.started_at, f.fire_id, f.attempt
          FROM fire_attempts AS f JOIN old ON f.bucket = $1 AND f.owner = old.owner AND f.alarm_id = old.id
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
        DELETE FROM alarms AS a USING old
        WHERE a.bucket = $1 AND a.owner = old.owner AND a.id = old.id
          AND NOT EXISTS (SELECT 1 FROM fire_attempts AS f WHERE f.bucket = $1 AND f.owner = a.owner AND f.alarm_id = a.id)
          AND NOT EXISTS (SELECT 1 FROM fire_receipts AS r WHERE r.bucket = $1 AND r.owner = a.owner AND r.alarm_id = a.id)
        RETURNING a.owner, a.id,
          1024 + octet_length(a.wake_message) + COALESCE(octet_length(a.payload), 0) + octet_length(a.label) AS bytes
      ), owed AS (
        DELETE FROM occurrences AS o USING gone WHERE o.bucket = $1 AND o.owner = gone.owner AND o.alarm_id = gone.id
      ), counted AS (
        UPDATE owners AS w SET stored_alarms = GREATEST(w.stored_alarms - less.alarms, 0),
          stored_bytes = GREATEST(w.stored_bytes - less.bytes, 0)
        FROM (SELECT owner, count(*) AS alarms, sum(bytes)::bigint AS bytes FROM gone GROUP BY owner) AS less
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
