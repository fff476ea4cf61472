/** A process that opens a file of memories, stores one of its own, and prints `ok` or the error. */
import { systemClock } from '../../../../kit/clock/clock.ts';
import { openCortex } from '../cortex.ts';
import { from, note } from './cortex-bench.ts';

try {
  const cortex = openCortex({ path: process.argv[2]!, clock: systemClock });
  await cortex.remember([note(`Process ${process.pid} was here`)], from('t1'));
  await cortex.close();
  process.stdout.write('ok');
} catch (error) {
  process.stdout.write(error instanceof Error ? error.message : String(error));
}
