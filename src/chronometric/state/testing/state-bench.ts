import type { TestContext } from 'node:test';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { openState } from '../open-state.ts';
import type { ChronometricState } from '../state.ts';

export const DAY_MS = 24 * 3_600_000;

/** The logical day of these tests' clocks ends after 20 hours. Each later one has 24 hours. */
export function dayEnd(instant: number): number {
  const begin = Date.UTC(2026, 5, 15, 4);
  return begin + (Math.floor((instant - begin) / DAY_MS) + 1) * DAY_MS;
}

/** A state in a new folder. `another` opens the same file again. */
export function stateBench(t: TestContext, dataDir = temporaryFolder(t)) {
  const clock = new ManualClock();
  const another = (): ChronometricState => {
    const state = openState({ dataDir, clock, dayEnd });
    t.after(() => state.close());
    return state;
  };
  return { clock, dataDir, another, state: another() };
}
