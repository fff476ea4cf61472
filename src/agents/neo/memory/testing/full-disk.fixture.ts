/**
 * Stores memories until the disk is full, then prints the acknowledged ones, the error, and whether recall still works.
 */
import { systemClock } from '../../../../kit/clock/clock.ts';
import { ReveilleError, wireErrorOf } from '../../../../wire/errors.ts';
import { openCortex } from '../cortex.ts';
import { from, note } from './cortex-bench.ts';

const BATCH = 20;
const cortex = openCortex({ path: process.argv[2]!, clock: systemClock });
let acknowledged = 0;
for (;;) {
  const batch = Array.from({ length: BATCH }, (_, at) => note(`item${acknowledged + at} ${'word '.repeat(100)}`));
  try {
    await cortex.remember(batch, from('t1'));
    acknowledged += BATCH;
  } catch (error) {
    if (!(error instanceof ReveilleError)) throw error;
    const found = cortex.findByText('item7', 10).length;
    process.stdout.write(JSON.stringify({ acknowledged, error: wireErrorOf(error), found }));
    break;
  }
}
