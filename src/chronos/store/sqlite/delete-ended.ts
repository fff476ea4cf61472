/** Deletes final alarms with all their rows. */
import type { DatabaseSync } from 'node:sqlite';
import { storedBytes } from '../../alarm/alarm.ts';
import type { TotalsChange } from './owners.ts';
import { LIMIT, prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

/** Attempts and turn reports that one call deletes: a long ledger is deleted in steps that block nothing. */
const LEDGER_ROWS_AT_ONCE = 2000;

/** No claim and no waiting trigger. The pending occurrence of a failed alarm is parked. */
const NOTHING_RUNS = `NOT EXISTS (SELECT 1 FROM owed AS o WHERE o.alarm = a.seq AND o.due_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM claims AS l WHERE l.alarm = a.seq)`;

export function prepareDeleteEnded(db: DatabaseSync, tables: Tables) {
  const seqIn = ([seq]: readonly unknown[]) => seq as number;
  // Alarms that an earlier version ended have no end time. They ended after their last fire and after they were due.
  const ended = prepareQuery(
    db,
    `SELECT seq FROM alarms AS a INDEXED BY alarms_ended
     WHERE status IN ('fired', 'cancelled', 'failed') AND updated_at < ?1 AND coalesce(last_fired_at, 0) < ?1
       AND (status = 'cancelled' OR coalesce(fire_at, 0) < ?1) AND ${NOTHING_RUNS}
     ORDER BY updated_at LIMIT ?2 + 0`,
    seqIn,
  );
  const cancelled = prepareQuery(
    db,
    `SELECT seq FROM alarms AS a 
     WHERE owner = ? AND status = 'cancelled' AND NOT (status = 'fired' AND kind = 'once') AND ${NOTHING_RUNS} ORDER BY id ${LIMIT}`,
    seqIn,
  );
  const attempts = db.prepare('DELETE FROM ledger WHERE seq IN (SELECT seq FROM ledger WHERE alarm = ? LIMIT ? + 0)');
  const receipts = db.prepare(`
    DELETE FROM fire_receipts WHERE owner = ?1 AND alarm_id = ?2 AND (fire_id, stage) IN (
      SELECT fire_id, stage FROM fire_receipts WHERE owner = ?1 AND alarm_id = ?2 LIMIT ?3 + 0)`);
  const occurrences = db.prepare('DELETE FROM owed WHERE alarm = ?');
  const texts = db.prepare('DELETE FROM alarm_texts WHERE seq = ?');
  const row = db.prepare('DELETE FROM alarms WHERE seq = ?');

  /**
   * @returns how many of them were deleted
   */
  function deleteAlarms(numbers: readonly number[]): number {
    let left = LEDGER_ROWS_AT_ONCE;
    let deleted = 0;
    const shrunk = new Map<number, TotalsChange>();
    for (const seq of numbers) {
      const alarm = tables.alarms.at(seq)!;
      left -= Number(attempts.run(seq, left).changes);
      left -= Number(receipts.run(alarm.owner, alarm.id, left).changes);
      if (left <= 0) break;
      occurrences.run(seq);
      texts.run(seq);
      row.run(seq);
      const ownerSeq = tables.owners.seqOf(alarm.owner)!;
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
