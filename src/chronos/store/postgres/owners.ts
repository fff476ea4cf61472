/**
 * The number of open alarms per owner. Every create uses an upper bound; the exact number is counted only when the
 * bound reaches the limit.
 */
import type { AlarmStatus } from '../../../wire/alarm-fields.ts';
import type { OpenCount, StoreUsage } from '../store.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { statement } from './statement.ts';

/** Whether an alarm with this status counts against its owner's limit. */
export function isOpen(status: AlarmStatus): boolean {
  return status === 'active' || status === 'paused';
}

/** Raises the bound of owners who reopen alarms, adds the bytes of longer texts, and counts the change. */
export const ADD_OPEN = statement(
  'add_open',
  `
  INSERT INTO owners (bucket, owner, open_at_most, stored_bytes, edits)
  SELECT $1, owner, count, bytes, 1 FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS added (owner, count, bytes)
  ORDER BY owner
  ON CONFLICT (bucket, owner) DO UPDATE SET open_at_most = owners.open_at_most + excluded.open_at_most,
    edits = owners.edits + 1,
    stored_bytes = GREATEST(owners.stored_bytes + excluded.stored_bytes, 0)`,
);

/** Subtracts creates that stored nothing because their key or id was taken. */
const TAKE_OFF = statement(
  'take_off_stored',
  `
  UPDATE owners SET stored_alarms = GREATEST(stored_alarms - $3::bigint, 0), stored_bytes = GREATEST(stored_bytes - $4::bigint, 0)
  WHERE bucket = $1 AND owner = $2`,
);

export async function takeOffStored(
  executor: Executor,
  bucket: number,
  owner: string,
  { alarms, bytes }: { alarms: number; bytes: number },
): Promise<void> {
  await executor.query(TAKE_OFF, [bucket, owner, alarms, bytes]);
}

const STORED = statement(
  'stored_of',
  'SELECT stored_alarms, stored_bytes FROM owners WHERE bucket = $1 AND owner = $2',
);

/** How many alarms an owner has, finished ones included, and their stored size. */
export async function storedOf(
  executor: Executor,
  bucket: number,
  owner: string,
): Promise<{ alarms: number; bytes: number }> {
  const [row] = (await executor.query(STORED, [bucket, owner])) as [number, number][];
  return { alarms: row?.[0] ?? 0, bytes: row?.[1] ?? 0 };
}

const WAITING_TRIGGERS = statement(
  'waiting_triggers',
  `SELECT count(*) FROM progress WHERE bucket = $1 AND owner = $2 AND trigger_at <> 0 AND due_at IS NOT NULL`,
);

/** How many triggers of an owner's alarms wait for delivery. */
export async function waitingTriggers(executor: Executor, bucket: number, owner: string): Promise<number> {
  return (await executor.query(WAITING_TRIGGERS, [bucket, owner]))[0]![0] as number;
}

const USAGE = statement(
  'usage',
  'SELECT count(*), COALESCE(sum(stored_alarms), 0)::bigint, COALESCE(sum(stored_bytes), 0)::bigint FROM owners',
);

/** The totals of all owners. */
export async function usage(executor: Executor): Promise<StoreUsage> {
  const [[owners, alarms, bytes]] = (await executor.query(USAGE, [])) as [[number, number, number]];
  return { owners, alarms, bytes };
}

/** Creates the owner's row if needed and locks it: no create of the owner commits before this transaction. */
const LOCK = statement(
  'lock_owner',
  `
  INSERT INTO owners (bucket, owner, open_at_most) VALUES ($1, $2, 0)
  ON CONFLICT (bucket, owner) DO UPDATE SET open_at_most = owners.open_at_most`,
);

const COUNT = statement(
  'count_open',
  `SELECT count(*), count(*) FILTER (WHERE status = 'active') FROM progress
   WHERE bucket = $1 AND owner = $2 AND status IN ('active', 'paused') AND status <> 'fired'`,
);

const SET = statement('set_open', 'UPDATE owners SET open_at_most = $3 WHERE bucket = $1 AND owner = $2');

export async function lockOwner(transaction: Executor, bucket: number, owner: string): Promise<void> {
  await transaction.query(LOCK, [bucket, owner]);
}

/** How many alarms of an owner are open at present. */
export async function countOpenOf(executor: Executor, bucket: number, owner: string): Promise<OpenCount> {
  const [[open, active]] = (await executor.query(COUNT, [bucket, owner])) as [[number, number]];
  return { open, active };
}

/** Counts an owner's open alarms and sets the bound to the exact number. */
export function countOpen(pool: PrimaryPool, bucket: number, owner: string): Promise<number> {
  return pool.transaction(async (transaction) => {
    await lockOwner(transaction, bucket, owner);
    // A separate statement, so that it sees the commits of the creates that LOCK waited for.
    const { open } = await countOpenOf(transaction, bucket, owner);
    await transaction.query(SET, [bucket, owner, open]);
    return open;
  });
}
