/** Storing a new alarm. */
import { ReveilleError } from '../../../wire/errors.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import { checkTransition } from '../difference.ts';
import type { CreateResult, NewAlarm } from '../store.ts';
import { isOpen } from './owners.ts';
import type { Tables } from './tables.ts';

type FindByKey = (owner: string, idempotencyKey: string) => AlarmState | undefined;

export function prepareCreate(tables: Tables, findByKey: FindByKey) {
  const { alarms, occurrences, owners } = tables;

  return ({ alarm, occurrence }: NewAlarm, limits: { maxActive: number }): CreateResult => {
    const { owner, id, idempotencyKey } = alarm;
    const holder = idempotencyKey === null ? undefined : findByKey(owner, idempotencyKey);
    if (holder) return { result: 'key_taken', state: holder };
    const active = owners.openAlarms(owner);
    if (active >= limits.maxActive) return { result: 'too_many', active };
    if (alarms.exists(owner, id)) throw new ReveilleError('conflict', `there is an alarm ${id} already`);

    const state = { alarm, occurrences: [occurrence] };
    checkTransition({ alarm, occurrences: [] }, state);
    alarms.insert(alarm);
    occurrences.insert(occurrence);
    owners.refresh(owner, isOpen(alarm.status) ? 1 : 0);
    return { result: 'created', state };
  };
}
