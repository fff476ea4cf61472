/**
 * The reaper: waits for its router to die, and then, unless another one comes, ends the machines that it left.
 * Arguments: the router's data folder, and how many seconds another one has to come.
 */
import { systemClock } from '../../kit/clock/clock.ts';
import { FAREWELL } from './reaper.ts';

const [dataDir = '', seconds = ''] = process.argv.slice(2);
let heard = '';
for await (const chunk of process.stdin) heard += chunk;
if (heard !== FAREWELL) {
  // Not before it is needed: as long as the router lives, this process should hold next to nothing.
  const { settleOrphans } = await import('./reap.ts');
  const { createLogger } = await import('../../kit/log/log.ts');
  const log = createLogger('undertaker');
  await settleOrphans({ dataDir, graceMs: Number(seconds) * 1000, clock: systemClock, log });
}
