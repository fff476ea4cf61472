/** Events as rows: which of the given ones are new, and the number of each. The common part of all stores. Pure. */

import type { AlarmEvent } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmState } from '../alarm/alarm.ts';
import { eventStateOf } from '../alarm/events.ts';

/** Longest id of an event: it is part of an index. */
export const EVENT_ID_MAX_BYTES = 1024;

/** What surrounds the id and the data of an event in a wake. */
export const EVENT_FRAME_BYTES = 64;

export type StoredEvent = {
  owner: string;
  alarmId: string;
  /** 0: no wake carries it, and only its id counts. */
  number: number;
  id: string;
  receivedAt: number;
  /** `null`: it was carried, or no wake carries it. */
  data: string | null;
  /** Who caused it (`storedCause`); `null`: an earlier version recorded it. */
  cause: string | null;
};

/**
 * The events with an id, each once, in the form in which it can be stored.
 *
 * @throws ReveilleError `invalid_request` when an id is too long
 */
export function distinctEvents(events: readonly AlarmEvent[]): AlarmEvent[] {
  const distinct = new Map<string, AlarmEvent>();
  for (const event of events) {
    const id = event.id.toWellFormed();
    if (Buffer.byteLength(id) > EVENT_ID_MAX_BYTES)
      throw new ReveilleError('invalid_request', `the id of an event must be at most ${EVENT_ID_MAX_BYTES} bytes`);
    if (!distinct.has(id)) distinct.set(id, { ...event, id });
  }
  return [...distinct.values()];
}

/**
 * The rows of new events.
 *
 * @param wanted the state with them: either all of them wait, or none does
 */
export function eventRows(stored: AlarmState, wanted: AlarmState, fresh: readonly AlarmEvent[]): StoredEvent[] {
  const { owner, id: alarmId } = stored.alarm;
  const { last } = eventStateOf(stored.alarm);
  const added = eventStateOf(wanted.alarm).last - last;
  if (added !== 0 && added !== fresh.length)
    throw new ReveilleError('internal', `alarm ${alarmId} has ${added} more events, but ${fresh.length} came`, {
      retryable: false,
    });
  return fresh.map(({ id, receivedAt, data, cause = null }, index) =>
    added === 0
      ? { owner, alarmId, number: 0, id, receivedAt, data: null, cause: null }
      : { owner, alarmId, number: last + index + 1, id, receivedAt, data, cause },
  );
}

/** About how many bytes an event has in a wake. */
export const eventBytes = ({ id, data }: AlarmEvent): number =>
  Buffer.byteLength(id) + Buffer.byteLength(data) + EVENT_FRAME_BYTES;
