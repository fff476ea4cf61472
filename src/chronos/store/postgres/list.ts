/** An owner's alarms, newest first. */
import { ALARM_KINDS, ALARM_STATUSES } from '../../../wire/alarm.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { AlarmFilter } from '../store.ts';
import type { Executor } from './pool.ts';
import { readState, STATE_COLUMNS } from './rows.ts';
import { statement } from './statement.ts';

/** Sorts after every id. */
const AFTER_ALL = '\u{10ffff}';

const NEWEST = statement(
  'list',
  `SELECT ${STATE_COLUMNS} FROM alarms AS a WHERE a.owner = $1 AND a.id < $2 ORDER BY a.id DESC LIMIT $3`,
);

/**
 * One walk down the index per status and kind, merged: no filter reads more than `limit` entries of each, however many alarms of
 * the other sort the owner has collected over the years.
 */
const FILTERED = statement(
  'list_filtered',
  `
  SELECT ${STATE_COLUMNS}
  FROM (
    SELECT found.id
    FROM unnest($4::text[]) AS s (status) CROSS JOIN unnest($5::text[]) AS k (kind)
    CROSS JOIN LATERAL (
      SELECT id FROM alarms
      WHERE owner = $1 AND status = s.status AND kind = k.kind AND id < $2 ORDER BY id DESC LIMIT $3
    ) AS found
    ORDER BY found.id DESC LIMIT $3
  ) AS page
  JOIN alarms AS a ON a.owner = $1 AND a.id = page.id
  ORDER BY a.id DESC`,
);

export async function list(executor: Executor, owner: string, filter: AlarmFilter): Promise<AlarmState[]> {
  const { status, kind, limit, before = AFTER_ALL } = filter;
  const rows =
    status === undefined && kind === undefined
      ? await executor.query(NEWEST, [owner, before, limit])
      : await executor.query(FILTERED, [
          owner,
          before,
          limit,
          status === undefined ? ALARM_STATUSES : [status],
          kind === undefined ? ALARM_KINDS : [kind],
        ]);
  return rows.map((row) => readState(row).state);
}
