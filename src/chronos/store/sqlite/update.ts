/** Changing one alarm by a pure transition. */
import type { AlarmState, Transition } from '../../alarm/alarm.ts';
import { checkTransition } from '../difference.ts';
import { checkGrowth, comesNearer, growthOf } from '../limits.ts';
import type { StoreLimits } from '../store.ts';
import type { Tables } from './tables.ts';

export function prepareUpdateAlarm(tables: Tables) {
  return (owner: string, alarmId: string, transition: Transition, limits: StoreLimits = {}): AlarmState | undefined => {
    const stored = tables.state(owner, alarmId);
    if (!stored) return undefined;
    const wanted = transition(stored);
    checkTransition(stored, wanted);
    const growth = growthOf(stored, wanted);
    if (comesNearer(growth, limits)) {
      const { open: active, bytes } = tables.owners.held(owner);
      checkGrowth(growth, limits, { active, bytes, triggers: tables.owners.waitingTriggers(owner) });
    }
    const opened = tables.write(stored, wanted);
    tables.owners.refresh(owner, opened, { alarms: 0, bytes: growth.bytes });
    return wanted;
  };
}
