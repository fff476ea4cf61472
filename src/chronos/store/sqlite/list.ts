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
    `SELECT id FROM alarms WHERE owner = ? AND id < ? ORDER BY id DESC ${LIMIT}`,
    ([id]) => id as string,
  );
  const newestOf = prepareQuery(
    db,
    `SELECT id FROM alarms INDEXED BY alarms_by_status
     WHERE owner = ? AND status = ? AND kind = ? AND NOT (status = 'fired' AND kind = 'once') AND id < ?
     ORDER BY id DESC ${LIMIT}`,
    ([id]) => id as string,
  );
  // Most alarms are fired ones, so the search scans all alarms: an index for them would cost every fire a write.
  const newestFired = prepareQuery(
    db,
    `SELECT id FROM alarms WHERE owner = ? AND id < ? AND status = 'fired' AND kind = 'once' ORDER BY id DESC ${LIMIT}`,
    ([id]) => id as string,
  );

  /**
   * One index scan per status and kind, merged. Each reads at most `limit` entries, however many other alarms the owner
   * has. The scan for fired `once` alarms also reads newer alarms that are open.
   */
  function filtered(owner: string, filter: AlarmFilter, before: string): string[] {
    const statuses = filter.status === undefined ? ALARM_STATUSES : [filter.status];
    const kinds = filter.kind === undefined ? ALARM_KINDS : [filter.kind];
    return statuses
      .flatMap((status) =>
        kinds.flatMap((kind) =>
          status === 'fired' && kind === 'once'
            ? newestFired.all(owner, before, filter.limit)
            : newestOf.all(owner, status, kind, before, filter.limit),
        ),
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
