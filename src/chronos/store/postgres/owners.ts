/**
 * How many alarms of an owner stand open: bounded from above for every create, counted only where the bound meets the
 * limit.
 */
import type { AlarmStatus } from '../../../wire/alarm.ts';
import type { StoreUsage } from '../store.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { statement } from './statement.ts';

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

/** Raises the bound of owners who take alarms up again, and counts the bytes by which texts have grown. */
export const ADD_OPEN = statement(
  'add_open',
  `
  INSERT INTO owners (owner, open_at_most, stored_bytes)
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS added (owner, count, bytes) ORDER BY owner
  ON CONFLICT (owner) DO UPDATE SET open_at_most = owners.open_at_most + excluded.open_at_most,
    stored_bytes = GREATEST(owners.stored_bytes + excluded.stored_bytes, 0)`,
);

/** Takes off what was counted for creates that stored nothing: their key or id was taken. */
const TAKE_OFF = statement(
  'take_off_stored',
  `
  UPDATE owners SET stored_alarms = GREATEST(stored_alarms - $2::bigint, 0), stored_bytes = GREATEST(stored_bytes - $3::bigint, 0)
  WHERE owner = $1`,
);

export async function takeOffStored(
  executor: Executor,
  owner: string,
  { alarms, bytes }: { alarms: number; bytes: number },
): Promise<void> {
  await executor.query(TAKE_OFF, [owner, alarms, bytes]);
}

const STORED = statement('stored_of', 'SELECT stored_alarms, stored_bytes FROM owners WHERE owner = $1');

/** How many alarms an owner has, ended ones included, and what they take up. */
export async function storedOf(executor: Executor, owner: string): Promise<{ alarms: number; bytes: number }> {
  const [row] = (await executor.query(STORED, [owner])) as [number, number][];
  return { alarms: row?.[0] ?? 0, bytes: row?.[1] ?? 0 };
}

const WAITING_TRIGGERS = statement(
  'waiting_triggers',
  `SELECT count(*) FROM occurrences WHERE owner = $1 AND source = 'trigger' AND due_at IS NOT NULL`,
);

/** How many triggers of an owner's alarms wait to be delivered. */
export async function waitingTriggers(executor: Executor, owner: string): Promise<number> {
  return (await executor.query(WAITING_TRIGGERS, [owner]))[0]![0] as number;
}

const USAGE = statement(
  'usage',
  'SELECT count(*), COALESCE(sum(stored_alarms), 0)::bigint, COALESCE(sum(stored_bytes), 0)::bigint FROM owners',
);

/** What all owners have together. */
export async function usage(executor: Executor): Promise<StoreUsage> {
  const [[owners, alarms, bytes]] = (await executor.query(USAGE, [])) as [[number, number, number]];
  return { owners, alarms, bytes };
}

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
