/** Reading alarms with what they owe. */
import type { AlarmState } from '../../alarm/alarm.ts';
import type { Executor } from './pool.ts';
import { readState, STATE_COLUMNS, type Versioned } from './rows.ts';
import { statement } from './statement.ts';

const BY_ID = statement(
  'states_by_id',
  `
  SELECT ${STATE_COLUMNS}
  FROM unnest($1::text[], $2::text[]) AS wanted (owner, id)
  JOIN alarms AS a ON a.owner = wanted.owner AND a.id = wanted.id`,
);

const BY_KEY = statement(
  'state_by_key',
  `
  SELECT ${STATE_COLUMNS} FROM alarms AS a
  WHERE a.owner = $1 AND a.idempotency_key = $2 AND a.idempotency_key IS NOT NULL AND a.status <> 'cancelled'`,
);

/** What no text column holds is not there. */
export function isStorable(...texts: string[]): boolean {
  return !texts.some((text) => text.includes('\0'));
}

/** An alarm's name within a batch. */
export type AlarmKey = { owner: string; id: string };

/** The alarms that exist among those named, in no particular order. */
export async function readStates(executor: Executor, keys: readonly AlarmKey[]): Promise<Versioned[]> {
  const rows = await executor.query(BY_ID, [keys.map(({ owner }) => owner), keys.map(({ id }) => id)]);
  return rows.map(readState);
}

export async function readOne(executor: Executor, owner: string, id: string): Promise<Versioned | undefined> {
  if (!isStorable(owner, id)) return undefined;
  return (await readStates(executor, [{ owner, id }]))[0];
}

export async function findByKey(executor: Executor, owner: string, key: string): Promise<AlarmState | undefined> {
  if (!isStorable(owner, key)) return undefined;
  const [row] = await executor.query(BY_KEY, [owner, key]);
  return row && readState(row).state;
}
