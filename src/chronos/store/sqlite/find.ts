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
    `SELECT min(id), count(*) FROM (SELECT id FROM definitions WHERE owner = ? AND id < ? ORDER BY id DESC LIMIT ${SEARCH_STEP})`,
    ([id, count]) => ({ id: id as string | null, count: count as number }),
  );
  // `lower` of SQLite folds only A to Z.
  const containing = prepareQuery(
    db,
    `SELECT d.id FROM definitions AS d CROSS JOIN progress AS p ON p.alarm = d.seq
     WHERE d.owner = ?1 AND d.id < ?2 AND d.id >= ?3 AND (?4 IS NULL OR p.status = ?4) AND (?5 IS NULL OR d.kind = ?5)
       AND (instr(lower(d.label), lower(?6)) > 0 OR instr(lower(d.wake_message), lower(?6)) > 0)
     ORDER BY d.id DESC ${LIMIT.replace('?', '?7')}`,
    ([id]) => id as string,
  );
  const conversation = prepareQuery(
    db,
    `SELECT 1 FROM definitions AS d WHERE d.owner = ?1 AND d.made_by = ?2 AND (d.conversation_id = ?3 OR EXISTS (
       SELECT 1 FROM fire_receipts AS r WHERE r.owner = d.owner AND r.alarm_id = d.id AND r.conversation_id = ?3)) LIMIT 1`,
    () => true,
  );
  const activeOf = prepareQuery(
    db,
    `SELECT count(*) FROM (SELECT 1 FROM active WHERE owner = ? LIMIT ${FEW + 1})`,
    ([count]) => count as number,
  );
  // An owner with few alarms is not searched in the queue of all owners, which may be long.
  const dueOfFew = prepareQuery(
    db,
    `SELECT d.id FROM active AS a CROSS JOIN progress AS p ON p.alarm = a.alarm
       CROSS JOIN definitions AS d ON d.seq = a.alarm
     WHERE a.owner = ?1 AND p.status = 'active'
       AND p.due_at IS NOT NULL AND p.due_at <= ?4 AND (p.due_at, d.id) > (?2, ?3)
     ORDER BY p.due_at, d.id ${LIMIT.replace('?', '?5')}`,
    ([id]) => id as string,
  );
  // The queue of all owners: an index for each owner would cost every fire a page.
  const due = prepareQuery(
    db,
    `SELECT d.id FROM progress AS p INDEXED BY progress_due CROSS JOIN definitions AS d ON d.seq = p.alarm
     WHERE p.due_at IS NOT NULL AND p.due_at >= ?2 AND p.due_at <= ?4 AND p.owner = ?1
       AND p.status = 'active' AND (p.due_at, d.id) > (?2, ?3)
     ORDER BY p.due_at, d.id ${LIMIT.replace('?', '?5')}`,
    ([id]) => id as string,
  );
  const computerWakes = prepareQuery(
    db,
    `SELECT min(at), min(at) FILTER (WHERE at > ?) FROM (
       ${['progress', 'triggers']
         .map(
           (table) => `SELECT max(o.due_at, coalesce(o.held_until, o.due_at)) AS at
       FROM definitions AS d INDEXED BY definitions_waking CROSS JOIN ${table} AS o ON o.alarm = d.seq
       WHERE d.wake_computer = 1 AND o.due_at IS NOT NULL AND o.attempt < ${MAX_WAKE_ATTEMPTS}`,
         )
         .join(' UNION ALL ')})`,
    ([first, later]): ComputerWakes => ({
      ...(first === null ? {} : { first: first as number }),
      ...(later === null ? {} : { later: later as number }),
    }),
  );
  const stateOf = (owner: string) => (id: string) => tables.find(owner, id)!.state;

  return {
    hasConversation: (owner: string, madeBy: string, conversationId: string): boolean =>
      conversation.get(owner, madeBy, conversationId) === true,
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
      const query = activeOf.get(number)! <= FEW ? dueOfFew : due;
      const ids = query.all(number, dueAt, alarmId, until, limit);
      return ids.map(stateOf(owner));
    },
  };
}
