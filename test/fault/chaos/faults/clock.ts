/**
 * The wall clock jumps by an hour, forward or back, and returns. With SQLite, alarms use the machine's clock:
 * occurrences of the skipped hour are due at once. After a jump back, alarms wait until the clock shows their due time.
 * With PostgreSQL one replica's clock is wrong, without any effect, because the database's clock counts.
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
  config: () => ({ clocksJump: true }),
  short: { strikes: 4, strikingMs: 15_000, recoveringMs: 0, drainMs: ONE_RETRY_MS },
  async strike({ installation, random, round }) {
    const jumping = pick(random, installation.clocks);
    const byMs = round % 2 === 0 ? HOUR_MS : -HOUR_MS;
    jumping.set(byMs);
    await pause(between(random, 2000, 4000));
    jumping.set(0);
    return { what: byMs > 0 ? 'an hour ahead' : 'an hour behind', endedAt: Date.now() };
  },
  // Alarms set while the machine's clock was ahead are due in an hour. The clock skips that hour.
  finish({ plan, clocks }) {
    if (plan.store === 'sqlite') clocks[0]!.set(HOUR_MS);
  },
};
