/**
 * A heartbeat in a separate process. From the given instant on, its clock runs faster by the given factor. Prints `beat`
 * for each beat.
 */
import { writeSync } from 'node:fs';
import { type Clock, systemClock } from '../../../kit/clock/clock.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import { startHeartbeat } from '../heartbeat.ts';
import { openState } from '../open-state.ts';
import { DAY_MS } from './state-bench.ts';

const [dataDir, origin, speed] = process.argv.slice(2);
const accelerated = (ms: number) => Number(origin) + (ms - Number(origin)) * Number(speed);
const clock: Clock = {
  now: () => Math.round(accelerated(systemClock.now())),
  monotonic: () => systemClock.monotonic() * Number(speed),
  after: (delayMs, callback) => systemClock.after(delayMs / Number(speed), callback),
};
const state = openState({ dataDir: dataDir!, clock, dayEnd: (instant) => instant + DAY_MS });
startHeartbeat({
  clock,
  log: silentLogger,
  state: {
    beat(now, since) {
      state.beat(now, since);
      writeSync(1, 'beat\n');
    },
  },
});
