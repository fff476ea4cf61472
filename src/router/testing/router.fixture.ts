/**
 * A router in its own process, for tests that kill it. Reads its variables from the environment and prints its URL on
 * stdout.
 */
import { flushCompileCache } from 'node:module';
import { openAgentHost } from '../../agents/host.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { onTermination } from '../../kit/http/drain.ts';
import { createLogger } from '../../kit/log/log.ts';
import { parseRouterConfig } from '../config.ts';
import { startRouter } from '../daemon.ts';

const log = createLogger('router', 'trace');
const router = await startRouter({
  openAgents: openAgentHost,
  config: parseRouterConfig(process.env),
  clock: systemClock,
  log,
  version: '0.0.0',
  environment: process.env,
});
onTermination(() => router.close(), { log, clock: systemClock });
console.log(router.url);
// A killed process would not store its compiled code for the next one.
flushCompileCache();
