/** chronosd's HTTP server: authentication and routes. */
import type { Clock } from '../../kit/clock/clock.ts';
import { requireBearer } from '../../kit/http/bearer.ts';
import type { ListenerSettings } from '../../kit/http/listener-settings.ts';
import { type MetricsPage, metricsRoute } from '../../kit/http/metrics-route.ts';
import { type ReadyReport, type RunningServer, startServer } from '../../kit/http/server.ts';
import type { Logger } from '../../kit/log/log.ts';
import { isFeed } from '../../wire/calendar-feed.ts';
import { isHook } from '../../wire/hook.ts';
import { VERSION } from '../../wire/version.ts';
import { OverBound } from '../store/limits.ts';
import type { KeyRing } from '../turn-reports/key-ring.ts';
import { agentAdminRoutes, agentRoutes } from './agent-routes.ts';
import { alarmListRoutes } from './alarm-list-routes.ts';
import { alarmRoutes } from './alarm-routes.ts';
import { backfillRoute } from './backfill-route.ts';
import { calendarRoute } from './calendar-route.ts';
import { clientRoutes } from './client-routes.ts';
import { type EventService, eventRoutes } from './event-routes.ts';
import { feedRoutes } from './feed-routes.ts';
import { fireRoutes } from './fire-routes.ts';
import { hookRoutes } from './hook-routes.ts';
import { refuseQuery } from './no-arguments.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import type { ChronosService } from './service.ts';
import { FIRES_PATH, turnReportRoutes } from './turn-report-routes.ts';
import { usageRoute } from './usage-route.ts';

export type ChronosServerOptions = {
  host: string;
  port: number;
  /** Accepted `Host` values besides loopback names and `host`. */
  allowedHosts?: readonly string[];
  /** Limits and certificate of the listener. */
  listener?: ListenerSettings | undefined;
  /** Without it, only health, readiness and metrics are served. */
  service: ChronosService | undefined;
  /** Without it, there is no stream of events. */
  events?: EventService;
  /** Identifies the signer of a turn report; without it, no reports are accepted. */
  turnReportKeys?: KeyRing;
  ready: () => Promise<ReadyReport>;
  /** Adds `/metrics`. The token authorizes scrapers on other machines. */
  metrics?: { page: MetricsPage; scrapeToken: string | undefined };
  /** Called for every webhook without a valid proof. */
  onUnproved?: () => void;
  log: Logger;
  clock: Clock;
};

/** Starts the server; resolves when it accepts connections. */
export function startChronosServer({
  host,
  port,
  allowedHosts = [],
  listener,
  service,
  events,
  turnReportKeys,
  ready,
  metrics,
  onUnproved = () => {},
  log,
  clock,
}: ChronosServerOptions): Promise<RunningServer> {
  return startServer({
    name: 'chronosd',
    version: VERSION,
    host,
    port,
    allowedHosts,
    listener,
    log,
    clock,
    ready,
    isOpen: (target) => isHook(target) || isFeed(target),
    routes: (app) => {
      if (metrics) metricsRoute(app, CHRONOS_ROUTES.metrics, { ...metrics, tokenName: 'CHRONOS_METRICS_TOKEN' });
      if (!service) return;
      const transport = requireBearer(service.auth.transportToken);
      const admin = requireBearer(service.auth.adminToken);
      app.use('/v1/*', (c, next) => {
        if (c.req.path.startsWith(FIRES_PATH)) return next();
        return c.req.path.startsWith('/v1/admin/') ? admin(c, next) : transport(c, next);
      });
      app.use('/v1/*', async (c, next) => {
        if (c.req.method !== 'GET') refuseQuery(c);
        await next();
      });
      app.use(async (c, next) => {
        await next();
        if (c.error instanceof OverBound) service.onRefused?.(c.error.bound);
      });
      agentRoutes(app, service, log);
      agentAdminRoutes(app, service, log);
      // Before the alarms by their ids, because of the totals.
      alarmListRoutes(app, service);
      alarmRoutes(app, service);
      clientRoutes(app, service);
      backfillRoute(app, service);
      calendarRoute(app, service);
      feedRoutes(app, service);
      fireRoutes(app, service);
      hookRoutes(app, service, { log, onUnproved });
      usageRoute(app, service);
      if (events) eventRoutes(app, service, events, log);
      if (turnReportKeys) turnReportRoutes(app, service, { ring: turnReportKeys, log });
    },
  });
}
