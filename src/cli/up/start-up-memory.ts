/** Giving back the memory that starting took: parsed modules and the young heap they grew, which V8 would keep for hours of idleness. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../../kit/clock/clock.ts';

/** By then the first look at the store and the first probes are over too. */
const AFTER_MS = 1_500;

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/** Runs one full collection, which takes some ten milliseconds, soon after a daemon has started. */
export function releaseStartUpMemory(clock: Clock): void {
  clock.after(AFTER_MS, () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as Collect;
    setFlagsFromString('--no-expose-gc');
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  });
}
