/**
 * The executor as a process of its own, for tests that kill it: configuration from the environment, one line on stdout
 * when ready.
 */

import { flushCompileCache } from 'node:module';
import { parseExecutorConfig } from '../../../src/executor/config.ts';
import { startExecutor } from '../../../src/executor/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { onTermination } from '../../../src/kit/http/drain.ts';
import { createLogger } from '../../../src/kit/log/log.ts';

const log = createLogger('executor', 'fatal');
const config = parseExecutorConfig(process.env);
const executor = await startExecutor({ config, variables: process.env, clock: systemClock, log });
onTermination(() => executor.close(), { log, clock: systemClock });
process.stdout.write(`${JSON.stringify({ url: executor.url, publicKey: executor.publicKey })}\n`);
// A killed process would not store its compiled code for the next one.
flushCompileCache();
