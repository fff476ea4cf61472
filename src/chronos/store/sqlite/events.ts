/** Events that alarms wait for. */
import type { DatabaseSync } from 'node:sqlite';
import type { AlarmEvent } from '../../../wire/conditions.ts';
import { TIMELESS_EVENT } from '../../alarm/hook.ts';
import { distinctEvents, eventBytes, eventRows, KNOWN_EVENTS, trimmedBefore } from '../event-rows.ts';
import type { EventArrival, RecordedEvents } from '../store.ts';
import { writeWithin } from './alarm-changes.ts';
import { LIMIT, prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

export function prepareEvents(db: DatabaseSync, tables: Tables) {
  const known = prepareQuery(db, 'SELECT 1 FROM events WHERE alarm = ? AND id = ?', () => true);
  const insert = db.prepare(
    'INSERT INTO events (alarm, number, id, received_at, data, cause) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const inRange = db.prepare(
    `SELECT id, received_at, data, cause FROM events INDEXED BY events_waiting
     WHERE alarm = ? AND number >= ? AND number <= ? AND data IS NOT NULL ORDER BY number`,
  );
  inRange.setReturnArrays(true);
  const drop = db.prepare(
    `UPDATE events INDEXED BY events_waiting SET data = NULL WHERE alarm = ? AND number <= ? AND data IS NOT NULL`,
  );
  const prune = db.prepare(`
    DELETE FROM events WHERE seq IN (
      SELECT seq FROM events INDEXED BY events_by_age WHERE data IS NULL AND received_at < ? AND id NOT GLOB '${TIMELESS_EVENT}*'
      ORDER BY received_at ${LIMIT})`);
  const trim = db.prepare(`
    DELETE FROM events WHERE alarm = ?1 AND data IS NULL AND received_at < ?2 AND seq NOT IN (
      SELECT seq FROM events WHERE alarm = ?1 AND data IS NULL ORDER BY received_at DESC, seq DESC LIMIT ?3)`);

  return {
    /** Stores new events with the state that they lead to; `undefined` when the alarm does not exist. */
    record({ owner, alarmId, events, arrive, limits = {} }: EventArrival): RecordedEvents | undefined {
      const stored = tables.find(owner, alarmId);
      if (!stored) return undefined;
      const { state, row } = stored;
      const { seq } = row.location;
      const fresh = distinctEvents(events).filter(({ id }) => !known.get(seq, id));
      if (fresh.length === 0) return { state, fresh: 0 };
      const wanted = arrive(state, fresh);
      const rows = eventRows(state, wanted, fresh);
      writeWithin(tables, stored, wanted, limits);
      for (const { number, id, receivedAt, data, cause } of rows) insert.run(seq, number, id, receivedAt, data, cause);
      const before = trimmedBefore(state, wanted, fresh);
      if (before !== undefined) trim.run(seq, before, KNOWN_EVENTS);
      return { state: wanted, fresh: fresh.length };
    },

    of(owner: string, alarmId: string, range: { from: number; to: number; maxBytes: number }): AlarmEvent[] {
      const seq = tables.alarms.seqOf(owner, alarmId);
      const found: AlarmEvent[] = [];
      if (seq === undefined) return found;
      let left = range.maxBytes;
      for (const row of inRange.iterate(seq, range.from, range.to)) {
        const [id, receivedAt, data, cause] = row as unknown as [string, number, string, string | null];
        const event = { id, receivedAt, data, ...(cause !== null && { cause }) };
        left -= eventBytes(event);
        if (left < 0 && found.length > 0) break;
        found.push(event);
      }
      return found;
    },

    drop(owner: string, alarmId: string, upTo: number): void {
      const seq = tables.alarms.seqOf(owner, alarmId);
      if (seq !== undefined) drop.run(seq, upTo);
    },

    /** Deletes dropped events that were received before an instant and may not come again; returns their number. */
    prune(before: number, limit: number): number {
      return Number(prune.run(before, limit).changes);
    },
  };
}
