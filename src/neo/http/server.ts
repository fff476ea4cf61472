/** Neo's HTTP server: who may come in, and which routes there are (contracts §5). */
import type { Clock } from '../../clock/clock.ts';
import { requireBearer } from '../../http-kit/bearer.ts';
import { type RunningServer, startServer } from '../../http-kit/server.ts';
import type { Logger } from '../../log/log.ts';
import { VERSION } from '../../wire/version.ts';
import { WAKE_BODY_MAX_BYTES } from '../../wire/wake.ts';
import type { NeoConfig } from '../config.ts';
import type { ConversationStore } from '../conversations/store.ts';
import type { EventFeed } from '../events.ts';
import type { Runner } from '../runner.ts';
import { chatRoutes } from './chat-routes.ts';
import { conversationRoutes } from './conversation-routes.ts';
import { eventRoutes } from './event-routes.ts';
import { toolRoutes } from './tool-routes.ts';

export type NeoServerOptions = {
  config: NeoConfig;
  store: ConversationStore;
  runner: Runner;
  feed: EventFeed;
  log: Logger;
  clock: Clock;
  drainMs: number;
};

/** Starts the server; resolves when it accepts connections. */
export function startNeoServer(options: NeoServerOptions): Promise<RunningServer> {
  const { config, store, runner, feed, log, clock, drainMs } = options;
  return startServer({
    name: 'neo',
    version: VERSION,
    host: config.host,
    port: config.port,
    allowedHosts: config.allowedHosts,
    log,
    clock,
    drainMs,
    // A wake is larger than the create that made it; refusing it here would strand an alarm that was acknowledged.
    limits: { bodyBytes: WAKE_BODY_MAX_BYTES },
    health: () => runner.state(),
    routes: (app) => {
      // `/`, `/healthz` and `/readyz` are routed before this.
      app.use(requireBearer(config.token));
      chatRoutes(app, { store, clock, onAccepted: runner.accepted });
      conversationRoutes(app, store);
      eventRoutes(app, { feed, clock, log });
      toolRoutes(app, config);
    },
  });
}
