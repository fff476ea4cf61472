/** Forgetting alarms that have come to their end, with all that belongs to them. */
import type { DatabaseSync } from 'node:sqlite';
import { storedBytes } from '../../alarm/alarm.ts';
import type { Grown } from './owners.ts';
import { LIMIT, prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

/** Attempts and receipts that one call deletes: a ledger of years is taken down in steps, which hold nothing up. */
const LEDGER_ROWS_AT_ONCE = 2000;

type Key = { owner: string; id: string };

/** Nobody works on it, and no trigger waits. What a failed alarm owes is parked. */
const NOTHING_RUNS = `NOT EXISTS (
    SELECT 1 FROM occurrences AS o WHERE o.owner = a.owner AND o.alarm_id = a.id
      AND (o.lease_until IS NOT NULL OR o.due_at IS NOT NULL))`;

export function prepareForget(db: DatabaseSync, tables: Tables) {
  const keyOf = ([owner, id]: readonly unknown[]): Key => ({ owner: owner as string, id: id as string });
  // What an earlier version ended does not say when, but not before it fired last or was due.
  const ended = prepareQuery(
    db,
    `SELECT owner, id FROM alarms AS a INDEXED BY alarms_ended
     WHERE status IN ('fired', 'cancelled', 'failed') AND updated_at < ?1 AND coalesce(last_fired_at, 0) < ?1
       AND (status = 'cancelled' OR coalesce(fire_at, 0) < ?1) AND ${NOTHING_RUNS}
     ORDER BY updated_at LIMIT ?2 + 0`,
    keyOf,
  );
  const cancelled = prepareQuery(
    db,
    `SELECT owner, id FROM alarms AS a WHERE owner = ? AND status = 'cancelled' AND ${NOTHING_RUNS} ORDER BY id ${LIMIT}`,
    keyOf,
  );
  const ledger = ['fire_attempts', 'fire_receipts'].map((table) => {
    const key = table === 'fire_attempts' ? 'started_at, fire_id, attempt' : 'fire_id, stage';
    return db.prepare(`
      DELETE FROM ${table} WHERE owner = ?1 AND alarm_id = ?2 AND (${key}) IN (
        SELECT ${key} FROM ${table} WHERE owner = ?1 AND alarm_id = ?2 LIMIT ?3 + 0)`);
  });
  const owed = db.prepare('DELETE FROM occurrences WHERE owner = ? AND alarm_id = ?');
  const texts = db.prepare('DELETE FROM alarm_texts WHERE seq = (SELECT seq FROM alarms WHERE owner = ? AND id = ?)');
  const row = db.prepare('DELETE FROM alarms WHERE owner = ? AND id = ?');

  /** @returns how many of them are gone */
  function forget(keys: readonly Key[]): number {
    let left = LEDGER_ROWS_AT_ONCE;
    let forgotten = 0;
    const shrunk = new Map<string, Grown>();
    for (const { owner, id } of keys) {
      for (const remove of ledger) left -= Number(remove.run(owner, id, left).changes);
      if (left <= 0) break;
      const alarm = tables.alarms.find(owner, id)!;
      owed.run(owner, id);
      texts.run(owner, id);
      row.run(owner, id);
      const { alarms, bytes } = shrunk.get(owner) ?? { alarms: 0, bytes: 0 };
      shrunk.set(owner, { alarms: alarms - 1, bytes: bytes - storedBytes(alarm) });
      forgotten++;
    }
    for (const [owner, grown] of shrunk) tables.owners.refresh(owner, 0, grown);
    return forgotten;
  }

  return {
    endedBefore: (before: number, limit: number) => forget(ended.all(before, limit)),
    cancelledOf: (owner: string, limit: number) => forget(cancelled.all(owner, limit)),
  };
}
