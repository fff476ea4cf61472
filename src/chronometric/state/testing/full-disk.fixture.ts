/**
 * Starts sessions until the disk is full. Then prints the number of acknowledged sessions, the error, and whether reading
 * still works.
 */
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { ReveilleError, wireErrorOf } from '../../../wire/errors.ts';
import { openState } from '../open-state.ts';
import { dayEnd } from './state-bench.ts';

const clock = new ManualClock();
const state = openState({ dataDir: process.argv[2]!, clock, dayEnd });
let acknowledged = 0;
for (;;) {
  try {
    state.start('canary '.repeat(1000), clock.now(), 'auto_close');
    acknowledged++;
  } catch (error) {
    if (!(error instanceof ReveilleError)) throw error;
    process.stdout.write(
      JSON.stringify({ acknowledged, error: wireErrorOf(error), openWhenFull: state.open() !== undefined }),
    );
    break;
  }
}
