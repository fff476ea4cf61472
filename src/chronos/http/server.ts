/** chronosd's HTTP server: who may come in, and which routes there are. */
import type { Clock } from '../../clock/clock.ts';
import { requireBearer } from '../../http-kit/bearer.ts';
import { type ReadyReport, type RunningServer, startServer } from '../../http-kit/server.ts';
import type { Logger } from '../../log/log.ts';
import { VERSION } from '../../wire/version.ts';
import { agentAdminRoutes, agentRoutes } from './agent-routes.ts';
import { alarmRoutes } from './alarm-routes.ts';
import { fireRoutes } from './fire-routes.ts';
import { type MetricsPage, metricsRoute } from './metrics-route.ts';
import { refuseQuery } from './no-arguments.ts';
import type { ChronosService } from './service.ts';

export type ChronosServerOptions = {
  host: string;
  port: number;
  /** Left out, there are only health, readiness and metrics. */
  service: ChronosService | undefined;
  ready: () => Promise<ReadyReport>;
  /** Adds `/metrics`. The token lets scrapers on other machines in. */
  metrics?: { page: MetricsPage; scrapeToken: string | undefined };
  log: Logger;
  clock: Clock;
};

/** Starts the server; resolves when it accepts connections. */
export function startChronosServer({
  host,
  port,
  service,
  ready,
  metrics,
  log,
  clock,
}: ChronosServerOptions): Promise<RunningServer> {
  return startServer({
    name: 'chronosd',
    version: VERSION,
    host,
    port,
    log,
    clock,
    ready,
    routes: (app) => {
      if (metrics) metricsRoute(app, metrics.page, metrics.scrapeToken);
      if (!service) return;
      const transport = requireBearer(service.auth.transportToken);
      const admin = requireBearer(service.auth.adminToken);
      app.use('/v1/*', (c, next) => (c.req.path.startsWith('/v1/admin/') ? admin(c, next) : transport(c, next)));
      app.use('/v1/*', async (c, next) => {
        if (c.req.method !== 'GET') refuseQuery(c);
        await next();
      });
      agentRoutes(app, service);
      agentAdminRoutes(app, service);
      alarmRoutes(app, service);
      fireRoutes(app, service);
    },
  });
}
