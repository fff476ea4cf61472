/** Records events of an alarm, from whatever source. */
import type { AlarmEvent } from '../wire/conditions.ts';
import { withEvents } from './alarm/events.ts';
import type { ChronosService } from './http/service.ts';

/**
 * Records the events that are new, and wakes the dispatcher for what is due.
 *
 * @returns how many were new; `undefined` when this owner has no such alarm
 * @throws ReveilleError `conflict` when the alarm has ended, `rate_limited` when too many events wait
 */
export async function recordAlarmEvents(
  { store, clock, onDue }: Pick<ChronosService, 'store' | 'clock' | 'onDue'>,
  owner: string,
  alarmId: string,
  events: readonly AlarmEvent[],
): Promise<number | undefined> {
  const now = clock.now();
  const arrive = (state: Parameters<typeof withEvents>[0], fresh: readonly AlarmEvent[]) =>
    withEvents(state, fresh, now);
  const recorded = await store.recordEvents({ owner, alarmId, events, arrive });
  for (const { dueAt } of recorded?.state.occurrences ?? []) if (dueAt !== null) onDue(dueAt);
  return recorded?.fresh;
}
