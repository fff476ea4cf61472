/** The router: knows where each user's agent lives, starts that machine and delivers its wakes. Everything is wired here. */
import { join } from 'node:path';
import { Agent } from 'undici';
import type { Clock } from '../clock/clock.ts';
import { type RunningServer, startServer } from '../http-kit/server.ts';
import type { Logger } from '../log/log.ts';
import { toReveilleError } from '../wire/errors.ts';
import { WAKE_BODY_MAX_BYTES } from '../wire/wake.ts';
import type { RouterConfig } from './config.ts';
import { Fleet } from './fleet.ts';
import { addMachineRoutes } from './http/machine-routes.ts';
import { addWakeRoutes } from './http/wake-routes.ts';
import { IdleKeeper } from './idle-keeper.ts';
import { Registry } from './machines/registry.ts';
import { createHealthProbe } from './providers/health.ts';
import { createHttpProvider } from './providers/http.ts';
import { ProcessProvider } from './providers/process.ts';
import { ProcessRecords } from './providers/process-records.ts';
import { type WakeNotice, Wakes } from './wake.ts';

export type RouterOptions = {
  config: RouterConfig;
  clock: Clock;
  log: Logger;
  version: string;
  /** The environment of which the processes of machines get the allow-listed part. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Told how every wake ended. It must not throw. */
  onWake?: (notice: WakeNotice) => void;
};

export type RunningRouter = {
  readonly url: string;
  readonly port: number;
  /**
   * Accepts nothing more, lets deliveries finish, stops every machine of provider `process`, and closes the registry. Takes
   * less than 20 seconds at worst; calling it again gives the same promise.
   */
  close(): Promise<void>;
};

/** A start goes on after the wake that began it has given up, for the next attempt's sake, but not for ever. */
const START_LIMIT_WAKES = 4;
/** For deliveries under way when the router closes; the machines need their time after it. */
const DRAIN_MS = 5000;
/** Per daemon. A daemon that hangs holds its own connections and nobody else's. */
const CONNECTIONS = 128;

/**
 * Starts a router.
 *
 * @throws ReveilleError `unavailable` when the port is taken, or when another router owns the data folder
 */
export async function startRouter(options: RouterOptions): Promise<RunningRouter> {
  const { config, clock, log, version } = options;
  for (const warning of config.warnings) log.warn(warning);
  const registry = new Registry(config.dataDir, clock);
  // Looks at health have connections of their own: deliveries that hang must not make a daemon seem dead.
  const deliveries = new Agent({ connections: CONNECTIONS, pipelining: 1, allowH2: false });
  const looks = new Agent({ connections: 4, pipelining: 1, allowH2: false });
  const probe = createHealthProbe(looks, clock, config.probeIntervalMs);
  const startLimitMs = START_LIMIT_WAKES * config.wakeTimeoutMs;
  const providers = {
    http: createHttpProvider(probe),
    process: new ProcessProvider({
      records: new ProcessRecords(registry.file, registry.commits),
      probe,
      logFolder: join(config.dataDir, 'machine-logs'),
      environment: options.environment,
      clock,
      log,
    }),
  };
  const fleet = new Fleet(registry, { providers, clock, log, startLimitMs });
  const wakes = new Wakes({
    registry,
    fleet,
    dispatcher: deliveries,
    clock,
    log,
    timeoutMs: config.wakeTimeoutMs,
    ...(options.onWake ? { onWake: options.onWake } : {}),
  });
  const keeper = new IdleKeeper(fleet, probe, clock, log);
  const release = async () => {
    keeper.close();
    for (const provider of Object.values(providers)) provider.close();
    await Promise.all([deliveries.destroy(), looks.destroy()]);
    await registry.close();
  };

  let server: RunningServer | undefined;
  try {
    server = await startServer({
      name: 'router',
      version,
      host: config.host,
      port: config.port,
      routes(app) {
        addWakeRoutes(app, { wakes, wakeToken: config.wakeToken, clock, log });
        addMachineRoutes(app, { registry, fleet, adminToken: config.adminToken, clock, log });
      },
      log,
      clock,
      ready() {
        try {
          registry.check();
          return { ready: true };
        } catch (thrown) {
          return { ready: false, reasons: [`the registry: ${toReveilleError(thrown).message}`] };
        }
      },
      drainMs: DRAIN_MS,
      limits: { bodyBytes: WAKE_BODY_MAX_BYTES },
    });
    // Only a router that got its port touches what an earlier one left; no request is read before this turn of the event loop ends.
    fleet.recover();
  } catch (thrown) {
    await server?.close();
    await release();
    throw thrown;
  }
  const { url, port, close: closeServer } = server;
  const close = async () => {
    wakes.close();
    keeper.close();
    await closeServer();
    await fleet.close();
    await release();
  };
  let closed: Promise<void> | undefined;
  return {
    url,
    port,
    close() {
      closed ??= close();
      return closed;
    },
  };
}
