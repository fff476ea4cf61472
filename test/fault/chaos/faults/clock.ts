/**
 * The wall clock jumps by an hour, either way, and back. With SQLite the machine's clock is what alarms go by: what was
 * due in the hour that was skipped is due at once, and after a jump back alarms wait until the clock shows their
 * instant. With PostgreSQL one replica's clock is wrong, and nobody must notice: the database's counts.
 */
import { pause } from '../../../support/cluster/processes.ts';
import { needs } from '../../../support/tools.ts';
import { between, type Fault, ONE_RETRY_MS, pick } from '../fault.ts';

const HOUR_MS = 3_600_000;

export const clock: Fault = {
  name: 'clock',
  title: 'wall clock jumps by an hour',
  stores: ['sqlite', 'postgres'],
  missing: () => needs('faketime', false) || undefined,
  house: () => ({ clocksJump: true }),
  short: { strikes: 4, strikingMs: 15_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ house, random, round }) {
    const jumping = pick(random, house.clocks);
    const byMs = round % 2 === 0 ? HOUR_MS : -HOUR_MS;
    jumping.set(byMs);
    await pause(between(random, 2000, 4000));
    jumping.set(0);
    return { what: byMs > 0 ? 'an hour ahead' : 'an hour behind', overAt: Date.now() };
  },
  // What was set while the machine's clock was ahead is due in an hour. The hour passes.
  finish({ plan, clocks }) {
    if (plan.store === 'sqlite') clocks[0]!.set(HOUR_MS);
  },
};
