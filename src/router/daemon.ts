/** The router: knows the machine of each user, starts it and delivers its wakes. This file connects the parts. */
import type { Dispatcher } from 'undici';
import type { Clock } from '../kit/clock/clock.ts';
import { Agent } from '../kit/http/dispatchers.ts';
import { guardedConnector } from '../kit/http/guarded-client.ts';
import { type MetricsPage, metricsRoute } from '../kit/http/metrics-route.ts';
import { type RunningServer, startServer } from '../kit/http/server.ts';
import { WebAccess } from '../kit/http/web-access.ts';
import { turnReportKey } from '../kit/identity/webhook-signature.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Sandbox } from '../kit/process/isolation.ts';
import type { Grant } from '../kit/process/view.ts';
import { isTracing } from '../kit/trace/trace.ts';
import type { OnStage } from '../turns/turn-view.ts';
import { toReveilleError } from '../wire/errors.ts';
import { WAKE_BODY_MAX_BYTES } from '../wire/wake.ts';
import type { AgentHost, OpenAgentHost } from './agent-host.ts';
import { Budgets, checkBudget, type UsageOfTurns, WakeRecords } from './budget/budgets.ts';
import { Checks } from './checks/checks.ts';
import type { RouterConfig } from './config.ts';
import { Fleet, IdleKeeper } from './fleet.ts';
import { addMachineRoutes } from './http/machine-routes.ts';
import { ROUTER_ROUTES } from './http/routes.ts';
import { addUserRoutes } from './http/user-routes.ts';
import { addCheckRoutes, addLookRoutes, addTurnReportKeyRoutes, addWakeRoutes } from './http/wake-routes.ts';
import { Looks } from './looks/looks.ts';
import { type Machine, suspendMachine } from './machines/machine.ts';
import { PendingTurns } from './machines/pending-turns.ts';
import { Registry } from './machines/registry.ts';
import { StateSignal } from './machines/state-signal.ts';
import type { RouterFigures } from './metrics.ts';
import { AwakeRecords } from './providers/awake-records.ts';
import type { ProviderParts } from './providers/descriptor.ts';
import { DAEMON_PROVIDERS } from './providers/descriptors.ts';
import { createHealthProbe } from './providers/health.ts';
import { Isolation } from './providers/isolation.ts';
import { ConsoleRows } from './public/console-rows.ts';
import type { EndClient } from './public/endings.ts';
import { type PagesOf, type PublicListener, type ServicesOf, startPublicListener } from './public/listener.ts';
import { PersonTokens } from './public/person-tokens.ts';
import { ownMachine } from './public/users.ts';
import { Reaper } from './reaper/reaper.ts';
import { Repetitions } from './repetitions.ts';
import { Restarter } from './restarter.ts';
import type { SupervisorOptions } from './supervisor.ts';
import { type OnWake, type Subscribers, Wakes } from './wake.ts';

export type RouterOptions = {
  config: RouterConfig;
  /** Opens the host of agents without a daemon. */
  openAgents: OpenAgentHost;
  clock: Clock;
  log: Logger;
  version: string;
  /** The environment from which machine processes get the allow-listed variables. */
  environment: Readonly<Record<string, string | undefined>>;
  /** The sandbox of machines; without it they run unrestricted. */
  sandbox?: Sandbox | undefined;
  /** Paths below hidden folders that a user's machine may read anyway. */
  grantedTo?: (userId: string) => readonly Grant[];
  /** The file with the secrets of a user for checks of addresses; by default no user has one. */
  checkSecrets?: (userId: string) => string | undefined;
  onWake?: OnWake;
  /** Where chronosd receives turn reports, instead of the configured address; `undefined` while it is unknown. */
  chronosUrl?: () => string | undefined;
  /** Receives the progress of turns of provider `command`. It must not throw. */
  onStage?: OnStage;
  /** Creates the handler of public paths that are not routes of the daemon. */
  pagesOf?: PagesOf | undefined;
  /** Creates what answers other programs at public paths. */
  servicesOf?: ServicesOf | undefined;
  /** Ends the alarms of a client whose access was revoked. */
  endAlarms?: EndClient | undefined;
  /** Programs that subscribe to due alarms. */
  subscribers?: Subscribers | undefined;
  /** Whether the caller calls {@link RunningRouter.recover}, once nothing can refuse its own start any more. */
  recoversLater?: boolean;
};

export type RunningRouter = Pick<RunningServer, 'url' | 'port' | 'routes'> & {
  /**
   * Resolves the machines and turns of an earlier router, and begins turns. Until then no daemon is started.
   *
   * @throws ReveilleError when the registry cannot be read
   */
  recover(): void;
  /** The number of running turns of agents without a daemon, which continue when the router closes. */
  turnsUnderWay(): number;
  /**
   * Accepts no new request, finishes deliveries, stops every machine of provider `process`, and closes the registry.
   * Programs that execute a turn continue; the next router adopts them. It takes less than 20 seconds; a repeated call
   * returns the same promise.
   */
  close(): Promise<void>;
  readonly public: Pick<PublicListener, 'url' | 'localhost' | 'port' | 'routes' | 'endings' | 'figures'>;
};

/** A start continues for the next attempt after its wake has given up, up to this limit. */
const START_LIMIT_WAKES = 4;
/** For deliveries under way when the router closes; machines get their own time after it. */
const DRAIN_MS = 5000;
/** Per daemon. A hanging daemon blocks only its own connections. */
const CONNECTIONS = 128;

/** @throws ReveilleError `unavailable` when the port is taken, or when another router owns the data folder */
export async function startRouter(options: RouterOptions): Promise<RunningRouter> {
  const { config, clock, log, version } = options;
  for (const warning of config.warnings) log.warn(warning);
  if (config.budget) checkBudget(config.budget, chronosUrlOf(options) !== undefined);
  const states = new StateSignal();
  const onState = (userId: string) => states.notify(userId);
  const registry = new Registry(config.dataDir, clock, onState);
  const connect = guardedConnector();
  // A turn of an external server may keep its connection for an hour.
  const targetCalls = new Agent({ connections: CONNECTIONS, pipelining: 1, allowH2: false, connect });
  const isolation = new Isolation({
    sandboxer: options.sandbox,
    grantedTo: options.grantedTo,
    machines: () => registry.all(),
  });
  const agents = await openAgents(options, registry, isolation, targetCalls, onState);
  // Health checks have their own connections: hanging deliveries must not make a daemon seem dead.
  const deliveries = new Agent({ connections: CONNECTIONS, pipelining: 1, allowH2: false, connect });
  const healthChecks = new Agent({ connections: 4, pipelining: 1, allowH2: false, connect });
  // User requests have their own connections too: their open streams must not delay wakes.
  const userRequests = new Agent({ connections: CONNECTIONS, pipelining: 1, allowH2: false, connect });
  const probe = createHealthProbe(healthChecks, clock, config.probeIntervalMs);
  const startLimitMs = START_LIMIT_WAKES * config.wakeTimeoutMs;
  const reaper = new Reaper({ dataDir: config.dataDir, orphanSeconds: config.orphanSeconds, log });
  const { file, commits } = registry;
  const providers = await createProviders({
    config,
    file,
    commits,
    awake: (name) => new AwakeRecords(name, { file, commits, log }),
    probe,
    isolation,
    reaper,
    environment: options.environment,
    chronosUrl: chronosUrlOf(options) ?? (() => undefined),
    connections: CONNECTIONS,
    clock,
    log,
  });
  const pendingTurns = new PendingTurns(file, commits, log);
  const fleet = new Fleet(registry, { providers, pendingTurns, probe, clock, log, startLimitMs, onPhase: onState });
  const restarter = new Restarter({ fleet, registry, pendingTurns, clock, log });
  const budgets = new Budgets({
    records: new WakeRecords(file, commits),
    standard: config.budget,
    usageOf: usageOfTurns(options),
    clock,
    log,
    wakeTimeoutMs: config.wakeTimeoutMs,
  });
  const checks = new Checks({
    ...{ isolation, clock, log, environment: options.environment },
    web: new WebAccess({ clock, allow: config.checkAllow, setting: 'ROUTER_CHECK_ALLOW' }),
    secretsOf: options.checkSecrets ?? (() => undefined),
  });
  const looks = new Looks({ registry, isolation, clock, log, environment: options.environment });
  const wakes = new Wakes({
    registry,
    checks,
    fleet,
    agents,
    budgets,
    dispatcher: deliveries,
    clock,
    log,
    timeoutMs: config.wakeTimeoutMs,
    onWake(notice, turn) {
      options.onWake?.(notice, turn);
      onState(notice.user_id);
    },
    subscribers: options.subscribers,
  });
  const repetitions = new Repetitions({
    ...{ file, commits, clock, log },
    isKnown: (userId) => registry.get(userId) !== undefined,
    wake: (wake, onReady) => wakes.wake(wake, onReady),
    windowMs: config.repeatMs,
  });
  const keeper = new IdleKeeper(fleet, probe, clock, log);
  let isRecovered = false;
  const release = async () => {
    const hasOrphans = !isRecovered && Object.values(providers).some((provider) => provider.survivors().length > 0);
    restarter.close();
    keeper.close();
    budgets.close();
    for (const provider of Object.values(providers)) provider.close();
    // The reaper watches machines that continue until the next router starts.
    if (!config.keepMachines) reaper.dismiss();
    await Promise.all([agents.close(), checks.close(), looks.close()]);
    await Promise.all([deliveries.destroy(), healthChecks.destroy(), targetCalls.destroy(), userRequests.destroy()]);
    await registry.close();
    if (hasOrphans) reaper.leave();
  };

  const recover = () => {
    isRecovered = true;
    fleet.recover();
    agents.recover();
    restarter.open();
  };
  const tokens = new PersonTokens({ registry, clock, log });
  const ready = () => {
    try {
      registry.check();
      return { ready: true };
    } catch (thrown) {
      return { ready: false, reasons: [`the registry: ${toReveilleError(thrown).message}`] };
    }
  };
  let server: RunningServer | undefined;
  let listener: PublicListener | undefined;
  try {
    server = await startServer({
      name: 'router',
      version,
      host: config.host,
      port: config.port,
      allowedHosts: config.allowedHosts,
      listener: config.listener,
      routes(app) {
        addWakeRoutes(app, { repetitions, wakeToken: config.wakeToken, clock, log });
        addCheckRoutes(app, { registry, checks, wakeToken: config.wakeToken });
        addLookRoutes(app, { looks, wakeToken: config.wakeToken, clock, log });
        addTurnReportKeyRoutes(app, { registry, wakeToken: config.wakeToken });
        addMachineRoutes(app, { registry, fleet, agents, budgets, adminToken: config.adminToken, clock, log });
        addUserRoutes(app, {
          ...{ tokens, hasConsole: config.public.console !== undefined, log },
          endings: () => listener?.endings,
        });
        metricsRoute(app, ROUTER_ROUTES.metrics, {
          page: metricsPage(() => server && listener && { internal: server.figures(), public: listener.figures() }),
          ...{ scrapeToken: config.metricsToken, tokenName: 'ROUTER_METRICS_TOKEN' },
        });
      },
      log,
      clock,
      ready,
      drainMs: DRAIN_MS,
      limits: { bodyBytes: WAKE_BODY_MAX_BYTES },
    });
    listener = await startPublicListener({
      ...{ config: config.public, tokens, version, pagesOf: options.pagesOf, ready, drainMs: DRAIN_MS },
      ...{ servicesOf: options.servicesOf, endAlarms: options.endAlarms },
      rows: new ConsoleRows({ registry, clock, log }),
      machineOf: (userId) => ownMachine({ registry, fleet, agents, budgets, log }, userId),
      states,
      hooks: { chronosUrl: chronosUrlOf(options) ?? (() => undefined), transport: userRequests, clock },
      ...{ registry, fleet, dispatcher: userRequests, clock, log, timeoutMs: config.wakeTimeoutMs },
    });
    // Only a router that got its ports touches the machines of an earlier one. No request is read before this turn of
    // the event loop ends.
    if (!options.recoversLater) recover();
  } catch (thrown) {
    await Promise.all([server?.close(), listener?.close()]);
    await release();
    throw thrown;
  }
  const { url, port, routes, close: closeServer } = server;
  const { close: closeListener, ...open } = listener;
  const close = async () => {
    wakes.close();
    await checks.close();
    restarter.close();
    keeper.close();
    await Promise.all([closeServer(), closeListener()]);
    await Promise.all([fleet.close(), agents.close()]);
    await release();
  };
  let closed: Promise<void> | undefined;
  return {
    url,
    routes,
    port,
    public: open,
    recover,
    turnsUnderWay: () => agents.turnsUnderWay,
    close() {
      closed ??= close();
      return closed;
    },
  };
}

/** The providers of machines with a daemon, by name. */
async function createProviders(parts: ProviderParts): Promise<SupervisorOptions['providers']> {
  const created = DAEMON_PROVIDERS.map(async ({ name, create }) => [name, await create!(parts)] as const);
  return Object.fromEntries(await Promise.all(created)) as SupervisorOptions['providers'];
}

/** The address for turn reports; `undefined` when none are sent. */
function chronosUrlOf({ config: { chronosUrl }, chronosUrl: late }: RouterOptions) {
  return late ?? (chronosUrl === undefined ? undefined : () => chronosUrl);
}

/** Asks chronosd; its client is loaded with the first budget that needs it. `undefined` where chronosd is not known. */
function usageOfTurns(options: RouterOptions): UsageOfTurns | undefined {
  const url = chronosUrlOf(options);
  if (!url) return undefined;
  const { config, clock } = options;
  let reader: UsageOfTurns | undefined;
  return async (userId, fireIds) => {
    reader ??= (await import('../chronos/client.ts')).usageReader({ url, token: config.wakeToken, clock });
    return reader(userId, fireIds);
  };
}

/** Opens the store of turns for machines without a daemon. The registry is closed when that fails. */
async function openAgents(
  options: RouterOptions,
  registry: Registry,
  isolation: Isolation,
  dispatcher: Dispatcher,
  onActivity: (userId: string) => void,
): Promise<AgentHost> {
  const { config, clock, log, environment, onStage } = options;
  const suspend = async (userId: string, why: string) => {
    const suspended = (machine: Machine, now: number) =>
      machine.state === 'active' ? suspendMachine(machine, now) : machine;
    await registry.changeExisting(userId, suspended, { actor: 'router', action: 'suspend', reason: why });
    log.warn({ user_id: userId, action: 'suspend', reason: why }, 'machine changed');
  };
  const { dataDir, presetFolder, channelFolder, prices } = config;
  const machineOf = (userId: string) => registry.get(userId);
  const chronosUrl = chronosUrlOf(options);
  const keyOf = (userId: string) => {
    const [token] = registry.turnReportTokens(userId);
    return token === undefined ? undefined : turnReportKey(token);
  };
  const reporting = {
    ...(onStage ? { onStage } : {}),
    ...(chronosUrl ? { turnReports: { url: chronosUrl, keyOf } } : {}),
  };
  try {
    return options.openAgents({
      dataDir,
      presetFolder,
      channelFolder,
      machineOf,
      suspend,
      dispatcher,
      environment,
      prices,
      isolation,
      clock,
      log,
      onActivity,
      ...reporting,
    });
  } catch (thrown) {
    await registry.close();
    throw thrown;
  }
}

/** The metrics library is loaded with the first scrape: most routers have no scraper, and every start would load it. */
function metricsPage(figures: () => RouterFigures | undefined): MetricsPage {
  let loaded: Promise<MetricsPage> | undefined;
  const load = () => {
    loaded ??= import('./metrics.ts').then(({ routerMetrics }) => routerMetrics(figures));
    return loaded;
  };
  // Exported metrics are not scraped.
  if (isTracing()) void load();
  return async () => (await load())();
}
