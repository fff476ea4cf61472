/** Moves a file into a database, and ends itself with `kill -9` at the n-th step of a phase, if it gets so far. */
import { move } from '../../../src/chronos/store/transfer/move.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { createLogger } from '../../../src/kit/log/log.ts';

const [from = '', to = '', lastPhase = '', nth = ''] = process.argv.slice(2);
let steps = 0;
const { outcome } = await move({
  from,
  to,
  clock: systemClock,
  log: createLogger('mover', 'error'),
  report({ phase }) {
    if (phase !== lastPhase || ++steps !== Number(nth)) return;
    process.kill(process.pid, 'SIGKILL');
  },
});
process.stdout.write(outcome);
