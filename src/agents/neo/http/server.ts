/** Neo's HTTP server: authorization and routes (docs/reference/api.md, "Delivery to a daemon"). */
import type { Clock } from '../../../kit/clock/clock.ts';
import { requireBearer } from '../../../kit/http/bearer.ts';
import { sendOk, serve } from '../../../kit/http/handlers.ts';
import { type RunningServer, startServer } from '../../../kit/http/server.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { Outbox } from '../../../kit/outbox/outbox.ts';
import type { EventFeed } from '../../../turns/event-feed.ts';
import { chatRoutes } from '../../../turns/http/chat-routes.ts';
import { eventRoutes } from '../../../turns/http/event-routes.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import { VERSION } from '../../../wire/version.ts';
import { WAKE_BODY_MAX_BYTES } from '../../../wire/wake.ts';
import type { Capabilities } from '../capabilities.ts';
import type { NeoConfig } from '../config.ts';
import type { ConversationStore } from '../conversations/store.ts';
import type { Approvers } from '../delegate/approvers.ts';
import type { Runner } from '../runner.ts';
import { attachGates, gateRoutes } from './gate-routes.ts';
import { NEO_ROUTES } from './routes.ts';

export type NeoServerOptions = {
  config: NeoConfig;
  store: ConversationStore;
  runner: Runner;
  /** Sends turn reports, where there are any. */
  turnReports: Pick<Outbox, 'isBusy'> | undefined;
  /** The name of the answering model. */
  model: string;
  /** The model's tools, and the receiver of answers to the executor's questions. */
  capabilities: Pick<Capabilities, 'describe' | 'executor'>;
  /** Counts the followers of the events. */
  approvers?: Pick<Approvers, 'addStream'> | undefined;
  feed: EventFeed;
  /** Called for each prompt of a person. */
  onPrompt?: ((at: number) => void) | undefined;
  log: Logger;
  clock: Clock;
  drainMs: number;
};

/** Starts the server; resolves when it accepts connections. */
export function startNeoServer(options: NeoServerOptions): Promise<RunningServer> {
  const { config, store, runner, turnReports, capabilities, approvers, feed, onPrompt, log, clock, drainMs } = options;
  return startServer({
    name: 'neo',
    version: VERSION,
    host: config.host,
    port: config.port,
    listener: config.listener,
    allowedHosts: config.allowedHosts,
    log,
    clock,
    drainMs,
    // A wake is larger than the create request of its alarm; refusing it here would strand an acknowledged alarm.
    limits: { bodyBytes: WAKE_BODY_MAX_BYTES },
    // A machine that is put to sleep takes its unsent turn reports with it.
    health: () => {
      const { busy, queued, nextTurnAt } = runner.state();
      const next = nextTurnAt === undefined ? {} : { next_turn_at: formatInstant(nextTurnAt) };
      return { busy: busy || turnReports?.isBusy() === true, queued, ...next };
    },
    routes: (app) => {
      // `/`, `/healthz` and `/readyz` are routed before this.
      app.use(requireBearer(config.token));
      const isFull = () => runner.state().queued >= (config.maxQueued ?? Number.POSITIVE_INFINITY);
      chatRoutes(app, { store, engine: runner, clock, onPrompt, isFull, repeatMs: config.repeatMs });
      const { executor } = capabilities;
      eventRoutes(app, {
        ...{ feed, clock, log },
        onStream: (stream, conversationId) => attachGates(stream, conversationId, { executor, approvers }),
      });
      // Waits until the servers had time to start.
      serve(app, NEO_ROUTES.tools, async (c) =>
        sendOk(c, { ...(await capabilities.describe()), model: options.model }),
      );
      gateRoutes(app, executor);
    },
  });
}
