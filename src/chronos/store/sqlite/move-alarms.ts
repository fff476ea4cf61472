/** Moves alarms to another owner with all their rows. */
import type { DatabaseSync } from 'node:sqlite';
import { storedBytes } from '../../alarm/alarm.ts';
import { refusedMove } from '../limits.ts';
import { type AlarmMove, MOVE_STEP, type MoveAlarmsResult } from '../store.ts';
import type { Changes } from './changes.ts';
import { isOpen } from './owners.ts';
import { LIMIT, prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

/** The rows of the moved alarms: ?1 has their numbers. */
const MOVED = '(SELECT value FROM json_each(?1))';

export function prepareMoveAlarms(db: DatabaseSync, tables: Tables, changes: Changes) {
  const next = prepareQuery(
    db,
    `SELECT seq FROM definitions WHERE owner = ? ORDER BY id ${LIMIT}`,
    ([seq]) => seq as number,
  );
  const sharedKeys = prepareQuery(
    db,
    `SELECT count(*) FROM held_keys AS one CROSS JOIN held_keys AS other ON other.idempotency_key = one.idempotency_key
     WHERE one.owner = ? AND other.owner = ?`,
    ([count]) => count as number,
  );
  // A turn report refers to its alarm by the owner: both change before the commit.
  const reports = db.prepare(`
    UPDATE fire_receipts SET owner = ?3 WHERE owner = ?2
      AND alarm_id IN (SELECT id FROM definitions WHERE seq IN ${MOVED})`);
  const definitions = db.prepare(`UPDATE definitions SET owner = ?2 WHERE seq IN ${MOVED}`);
  const progress = db.prepare(`
    UPDATE progress SET owner = ?2,
      updated_at = CASE WHEN status IN ('active', 'paused') THEN ?3 ELSE updated_at END WHERE alarm IN ${MOVED}`);
  const triggers = db.prepare(`UPDATE triggers SET owner = ?2 WHERE alarm IN ${MOVED}`);
  // Alarms that deliveries have ended leave the list here.
  const ended = db.prepare(`
    DELETE FROM active WHERE owner = ?2 AND alarm IN ${MOVED}
      AND NOT EXISTS (SELECT 1 FROM progress AS p WHERE p.alarm = active.alarm AND p.status = 'active')`);
  const active = db.prepare(`UPDATE active SET owner = ?3 WHERE owner = ?2 AND alarm IN ${MOVED}`);
  const aside = db.prepare(`UPDATE aside SET owner = ?3 WHERE owner = ?2 AND alarm IN ${MOVED}`);
  const keys = db.prepare(`UPDATE held_keys SET owner = ?3 WHERE owner = ?2 AND alarm IN ${MOVED}`);

  return ({ from, to, limits, now }: AlarmMove): MoveAlarmsResult => {
    const { owners, claims, dueQueue } = tables;
    const source = owners.seqOf(from);
    const numbers = source === undefined ? [] : next.all(from, MOVE_STEP);
    if (source === undefined || numbers.length === 0) return { result: 'moved', moved: 0 };
    const target = owners.enrolled(to);
    const inFlight = claims.all().filter(({ owner }) => owner === source).length;
    const totals = [owners.totals(source, 0), owners.totals(target, 0)];
    const refused = refusedMove({ inFlight, sharedKeys: sharedKeys.get(from, to)!, totals }, limits);
    if (refused) return refused;

    const stored = tables.alarms.at(numbers).map(({ alarm }) => alarm);
    const moved = JSON.stringify(numbers);
    db.exec('PRAGMA defer_foreign_keys = ON');
    reports.run(moved, from, to);
    definitions.run(moved, to);
    progress.run(moved, target, now);
    triggers.run(moved, target);
    ended.run(moved, source);
    active.run(moved, source, target);
    aside.run(moved, from, to);
    keys.run(moved, from, to);
    dueQueue.forget();
    const open = stored.filter(({ status }) => isOpen(status));
    const bytes = stored.reduce((sum, alarm) => sum + storedBytes(alarm), 0);
    owners.addToTotals(source, -open.length, { alarms: -stored.length, bytes: -bytes });
    owners.addToTotals(target, open.length, { alarms: stored.length, bytes });
    for (const { id: alarmId } of open) changes.note({ kind: 'edited', owner: to, alarmId, at: now });
    return { result: 'moved', moved: stored.length };
  };
}
