/** An owner's alarms, newest first. */
import type { DatabaseSync } from 'node:sqlite';
import { ALARM_KINDS, ALARM_STATUSES } from '../../../wire/alarm.ts';
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
  // Most of what is stored is of this sort, so that it is found by walking over all; a fire keeps no index of it.
  const newestRung = prepareQuery(
    db,
    `SELECT id FROM alarms WHERE owner = ? AND id < ? AND status = 'fired' AND kind = 'once' ORDER BY id DESC ${LIMIT}`,
    ([id]) => id as string,
  );

  /**
   * One walk down the index per status and kind, merged: no filter reads more than `limit` entries of each, however
   * many alarms of the other sort the owner has collected over the years. Of alarms that rang once, it reads over those
   * that are newer and stand open.
   */
  function filtered(owner: string, filter: AlarmFilter, before: string): string[] {
    const statuses = filter.status === undefined ? ALARM_STATUSES : [filter.status];
    const kinds = filter.kind === undefined ? ALARM_KINDS : [filter.kind];
    return statuses
      .flatMap((status) =>
        kinds.flatMap((kind) =>
          status === 'fired' && kind === 'once'
            ? newestRung.all(owner, before, filter.limit)
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
