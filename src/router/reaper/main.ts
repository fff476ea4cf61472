/**
 * The reaper waits for the end of its router. Then it ends the router's machines, unless another router adopts them.
 * Arguments: the router's data folder, and the seconds that another router has to start.
 */
import { systemClock } from '../../kit/clock/clock.ts';
import { SHUTDOWN_MESSAGE } from './reaper.ts';

const [dataDir = '', seconds = ''] = process.argv.slice(2);
let received = '';
for await (const chunk of process.stdin) received += chunk;
if (received !== SHUTDOWN_MESSAGE) {
  // Loaded late: during the router's life this process should use almost no memory.
  const { settleOrphans } = await import('./reap.ts');
  const { createLogger } = await import('../../kit/log/log.ts');
  const log = createLogger('undertaker');
  await settleOrphans({ dataDir, graceMs: Number(seconds) * 1000, clock: systemClock, log });
}
