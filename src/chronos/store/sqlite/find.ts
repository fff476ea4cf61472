/** Finds an owner's alarms by their text, and by when they fire. */
import type { DatabaseSync } from 'node:sqlite';
import type { AlarmState } from '../../alarm/alarm.ts';
import { type AlarmSearch, type ComputerWakes, SEARCH_STEP, type UpcomingRequest } from '../store.ts';
import { LIMIT, prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

/** Sorts after every id. */
const AFTER_ALL = '\u{10ffff}';

/** An occurrence with this many failed attempts does not wake the computer any more. */
const MAX_WAKE_ATTEMPTS = 3;

/** Up to this many active alarms of one owner are sorted; for more, the queue of all owners is scanned. */
const FEW = 1000;

export function prepareFind(db: DatabaseSync, tables: Tables) {
  const last = prepareQuery(
    db,
    `SELECT min(id), count(*) FROM (SELECT id FROM alarms WHERE owner = ? AND id < ? ORDER BY id DESC LIMIT ${SEARCH_STEP})`,
    ([id, count]) => ({ id: id as string | null, count: count as number }),
  );
  // `lower` of SQLite folds only A to Z.
  const containing = prepareQuery(
    db,
    `SELECT a.id FROM alarms AS a CROSS JOIN alarm_texts AS t USING (seq)
     WHERE a.owner = ?1 AND a.id < ?2 AND a.id >= ?3 AND (?4 IS NULL OR a.status = ?4) AND (?5 IS NULL OR a.kind = ?5)
       AND (instr(lower(a.label), lower(?6)) > 0 OR instr(lower(t.wake_message), lower(?6)) > 0)
     ORDER BY a.id DESC ${LIMIT.replace('?', '?7')}`,
    ([id]) => id as string,
  );
  const activeOf = prepareQuery(
    db,
    `SELECT count(*) FROM (SELECT 1 FROM alarms INDEXED BY alarms_by_status
       WHERE owner = ? AND status = 'active' AND NOT (status = 'fired' AND kind = 'once') LIMIT ${FEW + 1})`,
    ([count]) => count as number,
  );
  // An owner with few alarms is not searched in the queue of all owners, which may be long.
  const dueOfFew = prepareQuery(
    db,
    `SELECT a.id FROM alarms AS a INDEXED BY alarms_by_status CROSS JOIN owed AS o ON o.alarm = a.seq
     WHERE a.owner = ?1 AND a.status = 'active' AND NOT (a.status = 'fired' AND a.kind = 'once')
       AND o.source = 'schedule' AND o.due_at IS NOT NULL AND o.due_at <= ?4 AND (o.due_at, a.id) > (?2, ?3)
     ORDER BY o.due_at, a.id ${LIMIT.replace('?', '?5')}`,
    ([id]) => id as string,
  );
  // The queue of all owners: an index for each owner would cost every fire a page.
  const due = prepareQuery(
    db,
    `SELECT a.id FROM owed AS o INDEXED BY owed_due CROSS JOIN alarms AS a ON a.seq = o.alarm
     WHERE o.due_at IS NOT NULL AND o.due_at >= ?2 AND o.due_at <= ?4 AND o.owner = ?1 AND o.source = 'schedule'
       AND a.status = 'active' AND (o.due_at, a.id) > (?2, ?3)
     ORDER BY o.due_at, a.id ${LIMIT.replace('?', '?5')}`,
    ([id]) => id as string,
  );
  const computerWakes = prepareQuery(
    db,
    `SELECT min(at), min(at) FILTER (WHERE at > ?) FROM (
       SELECT max(o.due_at, coalesce(o.held_until, o.due_at)) AS at
       FROM alarms AS a INDEXED BY alarms_waking CROSS JOIN owed AS o ON o.alarm = a.seq
       WHERE a.wake_computer = 1 AND o.due_at IS NOT NULL AND o.attempt < ${MAX_WAKE_ATTEMPTS})`,
    ([first, later]): ComputerWakes => ({
      ...(first === null ? {} : { first: first as number }),
      ...(later === null ? {} : { later: later as number }),
    }),
  );
  const stateOf = (owner: string) => (id: string) => tables.find(owner, id)!.state;

  return {
    search(owner: string, { text, status, kind, before = AFTER_ALL, limit }: AlarmSearch) {
      const { id: oldest, count } = last.get(owner, before)!;
      if (oldest === null) return { found: [], reached: undefined };
      const ids = containing.all(owner, before, oldest, status ?? null, kind ?? null, text, limit);
      const end = count === SEARCH_STEP ? oldest : undefined;
      return { found: ids.map(stateOf(owner)), reached: ids.length === limit ? ids.at(-1)! : end };
    },

    wakings: (after: number): ComputerWakes => computerWakes.get(after)!,

    upcoming(owner: string, { until = Number.MAX_SAFE_INTEGER, after, limit }: UpcomingRequest): AlarmState[] {
      const number = tables.owners.seqOf(owner);
      if (number === undefined) return [];
      const { dueAt, alarmId } = after ?? { dueAt: Number.MIN_SAFE_INTEGER, alarmId: '' };
      const isFew = activeOf.get(owner)! <= FEW;
      const ids = isFew
        ? dueOfFew.all(owner, dueAt, alarmId, until, limit)
        : due.all(number, dueAt, alarmId, until, limit);
      return ids.map(stateOf(owner));
    },
  };
}
