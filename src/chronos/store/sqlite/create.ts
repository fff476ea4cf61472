/** Storing a new alarm. */
import type { DatabaseSync } from 'node:sqlite';
import { ReveilleError } from '../../../wire/errors.ts';
import { checkTransition } from '../difference.ts';
import type { CreateResult, NewAlarm } from '../store.ts';
import { isOpen } from './owners.ts';
import { prepareQuery } from './rows.ts';
import type { Tables } from './tables.ts';

export function prepareCreate(db: DatabaseSync, tables: Tables) {
  const holderOfKey = prepareQuery(
    db,
    `SELECT id FROM alarms INDEXED BY alarms_idempotency
     WHERE owner = ? AND idempotency_key = ? AND status <> 'cancelled'`,
    ([id]) => id as string,
  );
  const known = prepareQuery(db, 'SELECT 1 FROM alarms WHERE owner = ? AND id = ?', () => true);

  return ({ alarm, occurrence }: NewAlarm, limits: { maxActive: number }): CreateResult => {
    const { owner, id, idempotencyKey } = alarm;
    if (idempotencyKey !== null) {
      const holder = holderOfKey.get(owner, idempotencyKey);
      if (holder !== undefined) return { result: 'key_taken', state: tables.state(owner, holder)! };
    }
    const active = tables.owners.openAlarms(owner);
    if (active >= limits.maxActive) return { result: 'too_many', active };
    if (known.get(owner, id)) throw new ReveilleError('conflict', `there is an alarm ${id} already`);

    const state = { alarm, occurrences: [occurrence] };
    checkTransition({ alarm, occurrences: [] }, state);
    tables.alarms.insert(alarm);
    tables.occurrences.insert(occurrence);
    tables.owners.refresh(owner, isOpen(alarm.status) ? 1 : 0);
    return { result: 'created', state };
  };
}
