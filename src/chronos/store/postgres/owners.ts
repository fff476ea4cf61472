/** How many alarms of an owner stand open: bounded from above for every create, counted only where the bound meets the limit. */
import type { AlarmStatus } from '../../../wire/alarm.ts';
import type { PrimaryPool } from './pool.ts';
import { statement } from './statement.ts';

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

/** Raises the bound of owners who take alarms up again. */
export const ADD_OPEN = statement(
  'add_open',
  `
  INSERT INTO owners (owner, open_at_most)
  SELECT * FROM unnest($1::text[], $2::bigint[]) AS added (owner, count) ORDER BY owner
  ON CONFLICT (owner) DO UPDATE SET open_at_most = owners.open_at_most + excluded.open_at_most`,
);

/** Makes sure of the owner's row and locks it: no create of theirs commits before this transaction. */
const LOCK = statement(
  'lock_owner',
  `
  INSERT INTO owners (owner, open_at_most) VALUES ($1, 0)
  ON CONFLICT (owner) DO UPDATE SET open_at_most = owners.open_at_most`,
);

const COUNT = statement(
  'count_open',
  `SELECT count(*) FROM alarms WHERE owner = $1 AND status IN ('active', 'paused')`,
);

const SET = statement('set_open', 'UPDATE owners SET open_at_most = $2 WHERE owner = $1');

/** Counts an owner's open alarms and makes the bound exact. */
export function countOpen(pool: PrimaryPool, owner: string): Promise<number> {
  return pool.transaction(async (transaction) => {
    await transaction.query(LOCK, [owner]);
    // A statement of its own: it sees what the creates that were waited for have committed.
    const [[open]] = (await transaction.query(COUNT, [owner])) as [[number]];
    await transaction.query(SET, [owner, open]);
    return open;
  });
}
