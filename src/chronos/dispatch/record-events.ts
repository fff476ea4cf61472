/** Records events of an alarm, from whatever source. */
import type { Clock } from '../../kit/clock/clock.ts';
import { type Cause, storedCause } from '../../wire/cause.ts';
import type { AlarmEvent } from '../../wire/conditions.ts';
import type { AlarmState } from '../alarm/alarm.ts';
import { withEvents } from '../alarm/events.ts';
import type { AlarmStore, StoreLimits } from '../store/store.ts';

export type EventSink = {
  readonly store: AlarmStore;
  readonly clock: Clock;
  /** Notifies the dispatcher that something is due at this instant. */
  readonly onDue: (dueAt: number) => void;
};

type Arrival = (state: AlarmState, fresh: readonly AlarmEvent[], now: number) => AlarmState;

/**
 * Records the events that are new, and wakes the dispatcher for what is due.
 *
 * @param limits of the owner's storage; without them the events are stored in any case
 * @param arrive what new events change
 * @param cause of events that have none themselves
 * @returns how many were new; `undefined` when this owner has no such alarm
 * @throws ReveilleError `conflict` when the alarm has ended, `rate_limited` when too many events wait, or too
 *   much is stored
 */
export async function recordAlarmEvents(
  { store, clock, onDue }: EventSink,
  owner: string,
  alarmId: string,
  events: readonly AlarmEvent[],
  {
    limits = {},
    arrive = withEvents,
    cause,
  }: { limits?: StoreLimits | undefined; arrive?: Arrival; cause?: Cause } = {},
): Promise<number | undefined> {
  const now = clock.now();
  const caused = cause ? events.map((event) => ({ cause: storedCause(cause), ...event })) : events;
  const recorded = await store.recordEvents({
    ...{ owner, alarmId, events: caused, limits },
    arrive: (state, fresh) => arrive(state, fresh, now),
  });
  for (const { dueAt } of recorded?.state.occurrences ?? []) if (dueAt !== null) onDue(dueAt);
  return recorded?.fresh;
}
