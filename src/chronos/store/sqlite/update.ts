/** Changing one alarm by a pure transition. */
import type { AlarmState, Transition } from '../../alarm/alarm.ts';
import { checkTransition } from '../difference.ts';
import type { Tables } from './tables.ts';

export function prepareUpdateAlarm(tables: Tables) {
  return (owner: string, alarmId: string, transition: Transition): AlarmState | undefined => {
    const stored = tables.state(owner, alarmId);
    if (!stored) return undefined;
    const wanted = transition(stored);
    checkTransition(stored, wanted);
    const opened = tables.write(stored, wanted);
    tables.owners.refresh(owner, opened);
    return wanted;
  };
}
