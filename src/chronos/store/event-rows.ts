/** Events as rows: which of the given ones are new, and the number of each. The common part of all stores. Pure. */

import type { AlarmEvent } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmState } from '../alarm/alarm.ts';
import { eventStateOf } from '../alarm/events.ts';
import { UNNAMED_EVENT } from '../alarm/hook.ts';

/** Longest id of an event: it is part of an index. */
export const EVENT_ID_MAX_BYTES = 1024;

/**
 * The ids of events that are over stay, so that a repeated one is known: all of the time in which a signature may be
 * valid, and the latest of each alarm.
 */
export const REPEATABLE_MS = 15 * 60_000;
export const KNOWN_EVENTS = 2000;
/** Older ids of an alarm are deleted whenever so many more events have come. */
const TRIM_EVERY = 500;

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
  if (added > 0)
    return fresh.map(({ id, receivedAt, data, cause = null }, index) => ({
      ...{ owner, alarmId, number: last + index + 1, id, receivedAt, data, cause },
    }));
  return fresh
    .filter(({ id }) => !id.startsWith(UNNAMED_EVENT))
    .map(({ id, receivedAt }) => ({ owner, alarmId, number: 0, id, receivedAt, data: null, cause: null }));
}

/**
 * The instant before which ids beyond {@link KNOWN_EVENTS} of an alarm are deleted with new events; `undefined`: not yet.
 */
export function trimmedBefore(
  stored: AlarmState,
  wanted: AlarmState,
  fresh: readonly Pick<AlarmEvent, 'receivedAt'>[],
): number | undefined {
  const rounds = ({ alarm }: AlarmState) => {
    const { last, met = 0 } = eventStateOf(alarm);
    return Math.floor((last + met) / TRIM_EVERY);
  };
  if (rounds(wanted) === rounds(stored)) return undefined;
  return Math.max(...fresh.map(({ receivedAt }) => receivedAt)) - REPEATABLE_MS;
}

/** About how many bytes an event has in a wake. */
export const eventBytes = ({ id, data }: AlarmEvent): number =>
  Buffer.byteLength(id) + Buffer.byteLength(data) + EVENT_FRAME_BYTES;
