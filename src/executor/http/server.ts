/** The executor's HTTP server: authentication and routes (docs/reference/api.md, "Executor"). */
import type { Clock } from '../../kit/clock/clock.ts';
import { type RunningServer, startServer } from '../../kit/http/server.ts';
import type { Logger } from '../../kit/log/log.ts';
import { INTENT_BODY_MAX_BYTES } from '../../wire/executor.ts';
import { VERSION } from '../../wire/version.ts';
import type { ExecutorConfig } from '../config.ts';
import type { Journal } from '../journal/journal.ts';
import type { ExecutorRail } from '../rail.ts';
import { approverRoutes, submitterRoutes } from './admin-routes.ts';
import { eventRoutes, gateRoutes, intentRoutes } from './intent-routes.ts';
import { requireAdmin, requireCaller } from './principal.ts';

type ExecutorServerOptions = {
  config: Pick<ExecutorConfig, 'host' | 'port' | 'listener' | 'allowedHosts' | 'token' | 'adminToken'>;
  rail: ExecutorRail;
  journal: Pick<Journal, 'roster' | 'submitters'>;
  /** The public key that receipts are signed with. */
  publicKey: string;
  /** Why there are no tools; without them no intent can be executed. */
  tools: { failure(): Error | undefined };
  clock: Clock;
  log: Logger;
  drainMs: number;
};

/** Starts the server; resolves when it accepts connections. */
export function startExecutorServer({
  config,
  rail,
  journal,
  publicKey,
  tools,
  clock,
  log,
  drainMs,
}: ExecutorServerOptions): Promise<RunningServer> {
  return startServer({
    name: 'executor',
    version: VERSION,
    host: config.host,
    port: config.port,
    listener: config.listener,
    allowedHosts: config.allowedHosts,
    log,
    clock,
    drainMs,
    ready: () => {
      const failure = tools.failure();
      return failure ? { ready: false, reasons: [failure.message] } : { ready: true };
    },
    limits: { bodyBytes: INTENT_BODY_MAX_BYTES },
    routes: (app) => {
      // `/`, `/healthz` and `/readyz` are routed before this.
      app.use('/approvers', requireAdmin(config));
      app.use('/submitters', requireAdmin(config));
      approverRoutes(app, journal.roster, publicKey);
      submitterRoutes(app, journal.submitters);
      app.use(requireCaller(config, journal.submitters));
      intentRoutes(app, rail);
      gateRoutes(app, rail, { roster: journal.roster, executor: publicKey });
      eventRoutes(app, rail, clock);
    },
  });
}
