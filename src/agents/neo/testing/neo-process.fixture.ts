/**
 * Neo as a separate process, for tests that kill it: configuration from the environment, one line on stdout when ready.
 */
import { flushCompileCache } from 'node:module';
import { systemClock } from '../../../kit/clock/clock.ts';
import { onTermination } from '../../../kit/http/drain.ts';
import { createLogger } from '../../../kit/log/log.ts';
import { parseNeoConfig } from '../config.ts';
import { startNeo } from '../daemon.ts';

const log = createLogger('neo', 'warn');
try {
  const onFatal = (error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  };
  const config = parseNeoConfig(process.env);
  const neo = await startNeo({ config, variables: process.env, clock: systemClock, log, onFatal });
  onTermination(() => neo.close(), { log, clock: systemClock });
  process.stdout.write(`${JSON.stringify({ port: neo.port })}\n`);
  // A killed process would not store its compiled code for the next one.
  flushCompileCache();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
