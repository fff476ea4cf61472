/** Changing one alarm by a pure transition. */
import type { AlarmState, Transition } from '../../alarm/alarm.ts';
import type { Tables } from './tables.ts';

export function prepareUpdateAlarm(tables: Tables) {
  return (owner: string, alarmId: string, transition: Transition): AlarmState | undefined => {
    const stored = tables.state(owner, alarmId);
    if (!stored) return undefined;
    const wanted = transition(stored);
    const opened = tables.write(stored, stored, wanted);
    tables.owners.refresh(owner, opened);
    return wanted;
  };
}
