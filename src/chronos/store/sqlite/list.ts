/** An owner's alarms, newest first. */
import type { DatabaseSync } from 'node:sqlite';
import { ALARM_KINDS, ALARM_STATUSES } from '../../../wire/alarm-fields.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { AlarmFilter } from '../store.ts';
import { LIMIT, prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

/** Sorts after every id. */
const AFTER_ALL = '\u{10ffff}';

export function prepareList(db: DatabaseSync, tables: Tables) {
  const newest = prepareQuery(
    db,
    `SELECT id FROM definitions WHERE owner = ? AND id < ? ORDER BY id DESC ${LIMIT}`,
    ([id]) => id as string,
  );
  const newestAside = prepareQuery(
    db,
    `SELECT id FROM aside WHERE owner = ? AND status = ? AND kind = ? AND id < ?
     ORDER BY id DESC ${LIMIT}`,
    ([id]) => id as string,
  );
  // An index by id would cost every fire a page: the active alarms of the owner are sorted.
  const newestActive = prepareQuery(
    db,
    `SELECT d.id FROM owners AS w CROSS JOIN active AS a ON a.owner = w.seq
       CROSS JOIN progress AS p ON p.alarm = a.alarm CROSS JOIN definitions AS d ON d.seq = a.alarm
     WHERE w.owner = ? AND p.status = 'active' AND d.kind = ? AND d.id < ? ORDER BY d.id DESC ${LIMIT}`,
    ([id]) => id as string,
  );
  // Most alarms are fired ones, so the search scans all alarms.
  const newestFired = prepareQuery(
    db,
    `SELECT d.id FROM definitions AS d CROSS JOIN progress AS p ON p.alarm = d.seq
     WHERE d.owner = ? AND d.kind = ? AND d.id < ? AND p.status = 'fired' ORDER BY d.id DESC ${LIMIT}`,
    ([id]) => id as string,
  );

  /**
   * One scan per status and kind, merged. For `paused`, `cancelled` and `failed` alarms it reads at most `limit` entries;
   * for active ones all of the owner's, which are bounded; for fired ones also newer alarms of other statuses.
   */
  function filtered(owner: string, filter: AlarmFilter, before: string): string[] {
    const statuses = filter.status === undefined ? ALARM_STATUSES : [filter.status];
    const kinds = filter.kind === undefined ? ALARM_KINDS : [filter.kind];
    return statuses
      .flatMap((status) =>
        kinds.flatMap((kind) => {
          if (status === 'active') return newestActive.all(owner, kind, before, filter.limit);
          if (status === 'fired') return newestFired.all(owner, kind, before, filter.limit);
          return newestAside.all(owner, status, kind, before, filter.limit);
        }),
      )
      .sort((one, other) => (one < other ? 1 : -1))
      .slice(0, filter.limit);
  }

  return (owner: string, filter: AlarmFilter): AlarmState[] => {
    const before = filter.before ?? AFTER_ALL;
    const all = filter.status === undefined && filter.kind === undefined;
    const ids = all ? newest.all(owner, before, filter.limit) : filtered(owner, filter, before);
    return ids.map((id) => tables.find(owner, id)!.state);
  };
}
