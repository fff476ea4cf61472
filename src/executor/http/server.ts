/** The executor's HTTP server: who may come in, and which routes there are (contracts §6). */
import type { Clock } from '../../clock/clock.ts';
import { requireBearer } from '../../http-kit/bearer.ts';
import { type RunningServer, startServer } from '../../http-kit/server.ts';
import type { Logger } from '../../log/log.ts';
import { INTENT_BODY_MAX_BYTES } from '../../wire/executor.ts';
import { VERSION } from '../../wire/version.ts';
import type { ExecutorConfig } from '../config.ts';
import type { ExecutorRail } from '../rail.ts';
import { eventRoutes } from './event-routes.ts';
import { gateRoutes } from './gate-routes.ts';
import { intentRoutes } from './intent-routes.ts';

export type ExecutorServerOptions = {
  config: Pick<ExecutorConfig, 'host' | 'port' | 'door' | 'allowedHosts' | 'token'>;
  rail: ExecutorRail;
  /** Why there are no tools; without them nothing can be carried out. */
  tools: { failure(): Error | undefined };
  clock: Clock;
  log: Logger;
  drainMs: number;
};

/** Starts the server; resolves when it accepts connections. */
export function startExecutorServer({
  config,
  rail,
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
    door: config.door,
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
      app.use(requireBearer(config.token));
      intentRoutes(app, rail);
      gateRoutes(app, rail);
      eventRoutes(app, rail, clock);
    },
  });
}
