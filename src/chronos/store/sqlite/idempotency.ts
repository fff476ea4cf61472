/** Which alarm of an owner holds an idempotency key: the one that is not cancelled. */
import type { DatabaseSync } from 'node:sqlite';
import type { AlarmState } from '../../alarm/alarm.ts';
import { prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

export function prepareFindByKey(db: DatabaseSync, tables: Tables) {
  const holder = prepareQuery(
    db,
    `SELECT id FROM alarms INDEXED BY alarms_idempotency
     WHERE owner = ? AND idempotency_key = ? AND status <> 'cancelled'`,
    ([id]) => id as string,
  );

  return (owner: string, idempotencyKey: string): AlarmState | undefined => {
    const id = holder.get(owner, idempotencyKey);
    return id === undefined ? undefined : tables.state(owner, id);
  };
}
