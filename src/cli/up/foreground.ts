/** Running one daemon in the foreground until a signal ends it. */
import { onTermination } from '../../kit/http/drain.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { CliContext } from '../context.ts';
import { type DaemonName, namingPort } from './listener.ts';

/** A router stops its machines one grace period after its deliveries have ended. */
const DRAIN_LIMIT_MS = 30_000;

export type Daemon = { url: string; close(): Promise<void> };

/**
 * Starts a daemon, says where it listens (`--json`: one line on stdout), and stays until SIGTERM or SIGINT has drained it.
 */
export async function runDaemon(
  context: CliContext,
  name: DaemonName,
  start: (log: Logger) => Promise<Daemon>,
): Promise<void> {
  const { out, clock } = context;
  const log = await context.log(name, out.live ? 'warn' : 'info');
  const daemon = await namingPort(name, () => start(log));
  out.result({ system: name, url: daemon.url, pid: process.pid }, `${name} listens on ${daemon.url}; Ctrl-C ends it`);
  onTermination(() => daemon.close(), { log, clock, hardLimitMs: DRAIN_LIMIT_MS });
  await new Promise(() => {});
}
