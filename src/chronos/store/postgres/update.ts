/** Changing one alarm by a pure transition. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { AlarmState, Attempt, Transition } from '../../alarm/alarm.ts';
import { checkTransition, differenceOf } from '../difference.ts';
import { checkGrowth, comesNearer, growthOf } from '../limits.ts';
import type { StoreLimits } from '../store.ts';
import { abandonedAttempts } from './attempts.ts';
import { untilUndisturbed } from './contention.ts';
import { countOpen, storedOf, waitingTriggers } from './owners.ts';
import type { PrimaryPool } from './pool.ts';
import { readOne } from './state.ts';
import { writeChanges } from './write.ts';

function isSame(stored: AlarmState, wanted: AlarmState): boolean {
  const { alarm, came, changed, went } = differenceOf(stored, wanted);
  return alarm.size + came.length + changed.length + went.length === 0;
}

export function prepareUpdate(pool: PrimaryPool, clock: Clock) {
  /** Replicas that do this for one owner at the same instant do not see each other's change. */
  async function check(stored: AlarmState, wanted: AlarmState, limits: StoreLimits): Promise<void> {
    const { owner } = wanted.alarm;
    const growth = growthOf(stored, wanted);
    if (!comesNearer(growth, limits)) return;
    const active = growth.opens ? await countOpen(pool, owner) : 0;
    const [{ bytes }, triggers] = await Promise.all([storedOf(pool, owner), waitingTriggers(pool, owner)]);
    checkGrowth(growth, limits, { active, bytes, triggers });
  }

  return async (
    owner: string,
    alarmId: string,
    transition: Transition,
    limits: StoreLimits = {},
  ): Promise<AlarmState | undefined> => {
    const { state } = await untilUndisturbed(
      clock,
      async (): Promise<{ state: AlarmState | undefined } | undefined> => {
        const stored = await readOne(pool, owner, alarmId);
        if (!stored) return { state: undefined };
        const wanted = transition(stored.state);
        checkTransition(stored.state, wanted);
        if (isSame(stored.state, wanted)) return { state: wanted };
        await check(stored.state, wanted, limits);
        const attempts: Attempt[] = abandonedAttempts(stored.state, wanted);
        return (await writeChanges(pool, [{ stored, wanted, attempts }])) ? { state: wanted } : undefined;
      },
    );
    return state;
  };
}
