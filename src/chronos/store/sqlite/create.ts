/** Storing a new alarm. */
import { ReveilleError } from '../../../wire/errors.ts';
import { type AlarmState, storedBytes } from '../../alarm/alarm.ts';
import { checkTransition } from '../difference.ts';
import type { CreateResult, NewAlarm, StoreLimits } from '../store.ts';
import { isOpen } from './owners.ts';
import type { Tables } from './tables.ts';

type FindByKey = (owner: string, idempotencyKey: string) => AlarmState | undefined;

export function prepareCreate(tables: Tables, findByKey: FindByKey) {
  const { alarms, occurrences, owners } = tables;

  return ({ alarm, occurrence }: NewAlarm, limits: StoreLimits & { maxActive: number }): CreateResult => {
    const { owner, id, idempotencyKey } = alarm;
    const holder = idempotencyKey === null ? undefined : findByKey(owner, idempotencyKey);
    if (holder) return { result: 'key_taken', state: holder };
    const { maxActive, maxStored = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY } = limits;
    const held = owners.held(owner);
    if (held.open >= maxActive) return { result: 'too_many', active: held.open };
    const bytes = storedBytes(alarm);
    if (held.alarms >= maxStored || held.bytes + bytes > maxBytes)
      return { result: 'too_much', alarms: held.alarms, bytes: held.bytes };
    if (alarms.exists(owner, id)) throw new ReveilleError('conflict', `there is an alarm ${id} already`);

    const state = { alarm, occurrences: [occurrence] };
    checkTransition({ alarm, occurrences: [] }, state);
    alarms.insert(alarm);
    occurrences.insert(occurrence);
    owners.refresh(owner, isOpen(alarm.status) ? 1 : 0, { alarms: 1, bytes });
    return { result: 'created', state };
  };
}
