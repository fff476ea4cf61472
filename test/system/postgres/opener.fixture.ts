/** Opens a store on command, reports it, creates one alarm and ends. */
import { once } from 'node:events';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { createLogger } from '../../../src/kit/log/log.ts';
import { createDue, NOW } from '../../contract/store/fixtures.ts';

const [uri = '', owner = ''] = process.argv.slice(2);
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const store = await openPostgresStore({ uri, clock: systemClock, log: createLogger('opener', 'warn'), poolSize: 2 });
await createDue(store, NOW, { owner });
await store.close();
process.stdin.destroy();
