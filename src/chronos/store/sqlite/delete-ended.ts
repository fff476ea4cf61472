/** Deletes final alarms with all their rows. */
import type { DatabaseSync } from 'node:sqlite';
import { storedBytes } from '../../alarm/alarm.ts';
import type { TotalsChange } from './owners.ts';
import { LIMIT, prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

/** Attempts, turn reports and events that one call deletes: a long ledger is deleted in steps that block nothing. */
const LEDGER_ROWS_AT_ONCE = 2000;

/** No claim and no waiting trigger. The pending occurrence of a failed alarm is parked. */
const NOTHING_RUNS = `p.due_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM triggers AS o WHERE o.alarm = p.alarm AND o.due_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM claims AS l WHERE l.alarm = p.alarm)`;

export function prepareDeleteEnded(db: DatabaseSync, tables: Tables) {
  const seqIn = ([seq]: readonly unknown[]) => seq as number;
  // Alarms that an earlier version ended have no end time. They ended after their last fire and after they were due.
  const ended = prepareQuery(
    db,
    `SELECT p.alarm FROM progress AS p INDEXED BY progress_ended CROSS JOIN definitions AS d ON d.seq = p.alarm
     WHERE p.status NOT IN ('active', 'paused') AND p.updated_at < ?1 AND coalesce(p.last_fired_at, 0) < ?1
       AND (p.status = 'cancelled' OR coalesce(d.fire_at, 0) < ?1) AND ${NOTHING_RUNS}
     ORDER BY p.updated_at LIMIT ?2 + 0`,
    seqIn,
  );
  const cancelled = prepareQuery(
    db,
    `SELECT p.alarm FROM aside AS a CROSS JOIN progress AS p ON p.alarm = a.alarm
     WHERE a.owner = ? AND a.status = 'cancelled' AND ${NOTHING_RUNS} ORDER BY a.id ${LIMIT}`,
    seqIn,
  );
  const attempts = db.prepare('DELETE FROM ledger WHERE seq IN (SELECT seq FROM ledger WHERE alarm = ? LIMIT ? + 0)');
  const receipts = db.prepare(`
    DELETE FROM fire_receipts WHERE owner = ?1 AND alarm_id = ?2 AND (fire_id, stage) IN (
      SELECT fire_id, stage FROM fire_receipts WHERE owner = ?1 AND alarm_id = ?2 LIMIT ?3 + 0)`);
  const events = db.prepare('DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE alarm = ? LIMIT ? + 0)');
  const occurrences = db.prepare('DELETE FROM triggers WHERE alarm = ?');

  /**
   * @returns how many of them were deleted
   */
  function deleteAlarms(numbers: readonly number[]): number {
    let left = LEDGER_ROWS_AT_ONCE;
    let deleted = 0;
    const shrunk = new Map<number, TotalsChange>();
    for (const seq of numbers) {
      const stored = tables.alarms.at([seq])[0]!;
      const { alarm, location } = stored;
      left -= Number(attempts.run(seq, left).changes);
      left -= Number(receipts.run(alarm.owner, alarm.id, left).changes);
      left -= Number(events.run(seq, left).changes);
      if (left <= 0) break;
      occurrences.run(seq);
      tables.alarms.delete(stored);
      const { ownerSeq } = location;
      const { alarms, bytes } = shrunk.get(ownerSeq) ?? { alarms: 0, bytes: 0 };
      shrunk.set(ownerSeq, { alarms: alarms - 1, bytes: bytes - storedBytes(alarm) });
      deleted++;
    }
    for (const [owner, grown] of shrunk) tables.owners.addToTotals(owner, 0, grown);
    return deleted;
  }

  return {
    endedBefore: (before: number, limit: number) => deleteAlarms(ended.all(before, limit)),
    cancelledOf: (owner: string, limit: number) => deleteAlarms(cancelled.all(owner, limit)),
  };
}
