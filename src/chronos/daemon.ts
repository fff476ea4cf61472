/** chronosd: creates store, dispatcher and HTTP server from a configuration. No other module does. */

import { join } from 'node:path';
import { type Clock, wait } from '../kit/clock/clock.ts';
import { EventFeed } from '../kit/http/event-feed.ts';
import { randomSecret } from '../kit/identity/secrets.ts';
import type { Logger } from '../kit/log/log.ts';
import { routerChecks, routerKeys, routerLooker } from '../router/client.ts';
import type { Calendars } from './alarm/holidays.ts';
import { calendarsFolder, openCalendars } from './calendars.ts';
import { type ChronosConfig, missingSecrets } from './config.ts';
import { Absence } from './dispatch/absence.ts';
import { Dispatcher, type FireReport } from './dispatch/dispatcher.ts';
import { createHttpWaker } from './dispatch/http-waker.ts';
import { alarmFeedSource } from './events/event.ts';
import { Admission, type AdmissionSettings } from './http/admission.ts';
import { startChronosServer } from './http/server.ts';
import type { ChronosService } from './http/service.ts';
import { createMetrics } from './metrics.ts';
import { startPings } from './ping.ts';
import { startRetention } from './retention.ts';
import { type EventualStore, openEventually } from './store/eventual-store.ts';
import { openSqliteStore } from './store/sqlite/store.ts';
import type { ComputerWakes } from './store/store.ts';
import { KeyRing } from './turn-reports/key-ring.ts';

/** How long the router may take for one wake (docs/reference/api.md, "The wake"). */
const WAKE_TIMEOUT_MS = 60_000;
/** How long a drain waits for running deliveries. The rest have an unknown outcome and are repeated. */
const DRAIN_MS = 10_000;
/** Pause before another attempt to end the claims of an earlier process. */
const ORPHANS_RETRY_MS = 500;

export type ChronosOptions = {
  config: ChronosConfig;
  clock: Clock;
  log: Logger;
  /** Called after every attempt at a delivery. */
  onFire?: (report: FireReport) => void;
  /** The hours of the user for times in words; by default, the usual ones. */
  hours?: ChronosService['hours'];
  /** Nothing fires before this resolves; alarms are accepted meanwhile. */
  startAfter?: Promise<void>;
};

export type RunningChronos = {
  port: number;
  url: string;
  /**
   * When alarms with `wake_computer` need the computer awake. Empty on PostgreSQL, which belongs to no single computer.
   */
  computerWakes(after: number): Promise<ComputerWakes>;
  /**
   * Stops claiming, lets running deliveries finish, closes the server, then the store. A second call returns the same
   * promise.
   */
  close(): Promise<void>;
};

type StoreOptions = Pick<ChronosOptions, 'config' | 'clock' | 'log'> & {
  calendars: Calendars;
  onRemoteDue: (dueAt: number) => void;
};

const MIB = 1024 * 1024;

/** The limits from the settings; a setting of 0 removes its limit. */
function admissionSettings(config: ChronosConfig): AdmissionSettings {
  const bounded = (setting: number) => (setting === 0 ? Number.MAX_SAFE_INTEGER : setting);
  return {
    challenges: {
      perMinute: config.CHRONOS_CHALLENGES_PER_MINUTE,
      inAll: config.CHRONOS_CHALLENGES_PER_MINUTE_IN_ALL,
    },
    creates: { perMinute: config.CHRONOS_CREATES_PER_MINUTE, inAll: config.CHRONOS_CREATES_PER_MINUTE_IN_ALL },
    triggers: { perMinute: config.CHRONOS_TRIGGERS_PER_MINUTE, inAll: config.CHRONOS_TRIGGERS_PER_MINUTE_IN_ALL },
    events: { perMinute: config.CHRONOS_EVENTS_PER_MINUTE, inAll: config.CHRONOS_EVENTS_PER_MINUTE_IN_ALL },
    pins: { perHour: bounded(config.CHRONOS_NEW_OWNERS_PER_HOUR), keysInAll: bounded(config.CHRONOS_MAX_OWNERS) },
    stored: {
      maxActive: config.CHRONOS_MAX_ACTIVE_ALARMS,
      maxStored: bounded(config.CHRONOS_MAX_STORED_ALARMS),
      maxBytes: bounded(config.CHRONOS_MAX_STORED_MIB * MIB),
      maxTriggers: bounded(config.CHRONOS_MAX_WAITING_TRIGGERS),
    },
    bytesInAll: config.CHRONOS_MAX_STORED_MIB_IN_ALL * MIB,
  };
}

/** The store that the configuration names: PostgreSQL when there is a URI, otherwise a file in the data folder. */
async function openStore({ config, clock, log, calendars, onRemoteDue }: StoreOptions): Promise<EventualStore> {
  const { CHRONOS_POSTGRES_URI: uri, CHRONOS_POSTGRES_POOL: poolSize, CHRONOS_POSTGRES_BUCKETS: buckets } = config;
  if (uri === undefined) {
    const store = openSqliteStore({ path: join(config.CHRONOS_DATA_DIR, 'chronos.db'), clock, log, calendars });
    return { store, opened: Promise.resolve() };
  }
  const [{ openPostgresStore }, { Replica }] = await Promise.all([
    import('./store/postgres/store.ts'),
    import('./store/postgres/replicas.ts'),
  ]);
  // Deliveries go on while a store is opened again, so the claims' holder stays the same.
  const replica = new Replica({ uri, clock, log });
  const options = {
    uri,
    clock,
    log,
    calendars,
    poolSize,
    buckets,
    onRemoteDue,
    replica,
    prefers: 'rendezvous' as const,
  };
  return openEventually((onOutdated) => openPostgresStore({ ...options, onOutdated }), {
    ...{ clock, log },
    onClosed: () => replica.stop(),
  });
}

/**
 * Starts chronosd; resolves when it accepts requests and dispatches.
 *
 * @throws ReveilleError when the data is in use, damaged or of a newer version, PostgreSQL must be repaired first, or
 *   the address is taken
 */
export async function startChronos({
  config,
  clock,
  log,
  onFire,
  startAfter,
  hours,
}: ChronosOptions): Promise<RunningChronos> {
  for (const name of missingSecrets(config))
    log.warn({ variable: name }, `${name} is not set; running without it (CHRONOS_DEV=1)`);
  const calendars = openCalendars(calendarsFolder(config), { clock, log });
  const { store: bare, opened } = await openStore({
    ...{ config, clock, log, calendars },
    onRemoteDue: (dueAt) => dispatcher.notifyDue(dueAt),
  });
  // All replicas use their store's clock, so they agree about due occurrences.
  const storeClock: Clock = {
    now: () => bare.now(),
    monotonic: () => clock.monotonic(),
    after: (delayMs, callback) => clock.after(delayMs, callback),
  };
  const absence = new Absence(config.CHRONOS_POSTGRES_URI ? undefined : config.CHRONOS_DATA_DIR, clock, log);
  const admission = new Admission(admissionSettings(config), bare, clock);
  let server: Awaited<ReturnType<typeof startChronosServer>> | undefined;
  const events = {
    feed: new EventFeed({ source: alarmFeedSource(bare), clock: storeClock, name: 'chronosd' }),
    limits: {
      perOwner: config.CHRONOS_EVENT_STREAMS_PER_OWNER || Number.MAX_SAFE_INTEGER,
      inAll: config.CHRONOS_EVENT_STREAMS || Number.MAX_SAFE_INTEGER,
    },
    figures: { open: 0, sent: 0 },
  };
  const metrics = createMetrics({
    clock: storeClock,
    eventFigures: () => events.figures,
    store: bare,
    inFlight: () => dispatcher.inFlight,
    usage: () => admission.usage(),
    listenerFigures: () => server?.figures(),
  });
  const store = metrics.watch(bare);
  const waker = createHttpWaker({
    url: config.CHRONOS_ROUTER_WAKE_URL,
    token: config.CHRONOS_WAKE_TOKEN,
    // The router compares the instant of a signature with its own clock: a replica's wrong clock must not get wakes
    // rejected.
    clock: storeClock,
    timeoutMs: WAKE_TIMEOUT_MS,
    connections: config.CHRONOS_CONCURRENCY,
  });
  const looker = routerLooker({
    ...{ wakeUrl: config.CHRONOS_ROUTER_WAKE_URL, token: config.CHRONOS_WAKE_TOKEN },
    ...{ clock: storeClock, connections: config.CHRONOS_CONCURRENCY },
    publicUrl: config.CHRONOS_PUBLIC_URL,
  });
  const dispatcher: Dispatcher = new Dispatcher({
    store,
    waker,
    looker,
    eventLimits: () => admission.eventLimits(),
    clock: storeClock,
    log,
    calendars,
    config: {
      concurrency: config.CHRONOS_CONCURRENCY,
      userConcurrency: config.CHRONOS_USER_CONCURRENCY,
      tickMs: config.CHRONOS_TICK_MS,
      sharedCommits: config.CHRONOS_POSTGRES_URI === undefined,
    },
    random: Math.random,
    lateBecause: (dueAt) => absence.because(dueAt),
    onFire(report) {
      metrics.fired(report);
      onFire?.(report);
    },
    onDeferred: () => metrics.deferred(),
  });

  try {
    server = await startChronosServer({
      host: config.CHRONOS_HOST,
      port: config.CHRONOS_PORT,
      allowedHosts: config.CHRONOS_ALLOWED_HOSTS,
      listener: config.listener,
      log,
      clock,
      ready: () => store.ping().then(() => ({ ready: true })),
      turnReportKeys: new KeyRing({
        ask: routerKeys({ wakeUrl: config.CHRONOS_ROUTER_WAKE_URL, token: config.CHRONOS_WAKE_TOKEN, clock }),
        clock,
      }),
      events,
      metrics: { page: () => metrics.page(), scrapeToken: config.CHRONOS_METRICS_TOKEN },
      onUnproved: () => metrics.unproved(),
      service: config.CHRONOS_API
        ? {
            store,
            clock: storeClock,
            ledgerDays: config.CHRONOS_LEDGER_RETENTION_DAYS,
            limits: {
              minIntervalSeconds: config.CHRONOS_MIN_INTERVAL_SECONDS,
              maxFailures: config.CHRONOS_MAX_FAILURES,
              maxActiveAlarms: config.CHRONOS_MAX_ACTIVE_ALARMS,
            },
            calendars,
            looker,
            ...(hours && { hours }),
            publicUrl: config.CHRONOS_PUBLIC_URL,
            tryCheck: routerChecks({
              wakeUrl: config.CHRONOS_ROUTER_WAKE_URL,
              token: config.CHRONOS_WAKE_TOKEN,
              clock,
            }),
            admission,
            onRefused: (bound) => metrics.refused(bound),
            auth: {
              transportToken: config.CHRONOS_TOKEN,
              adminToken: config.CHRONOS_ADMIN_TOKEN,
              wakeToken: config.CHRONOS_WAKE_TOKEN,
              // In development tokens are valid as long as the process runs.
              principalSecret: config.CHRONOS_AGENT_AUTH_SECRET ?? randomSecret(),
              principalTtlSeconds: config.CHRONOS_TOKEN_TTL_SECONDS,
              enrollment: config.CHRONOS_ENROLLMENT,
            },
            onDue: (dueAt) => dispatcher.notifyDue(dueAt),
          }
        : undefined,
    });
  } catch (error) {
    absence.close();
    await waker.close();
    await looker.close();
    await store.close();
    throw error;
  }

  /** Ends the claims of a killed process; retries until it succeeds, because on SQLite nothing else ends them. */
  const endOrphanedClaims = async () => {
    while (!closed) {
      try {
        const attempts = await store.endOrphanedClaims(store.now());
        if (attempts > 0) log.info({ attempts }, 'an earlier process left running deliveries; they are retried now');
        return;
      } catch (error) {
        log.warn({ err: error }, 'claims of an earlier process could not be ended; retrying');
        await wait(clock, ORPHANS_RETRY_MS);
      }
    }
  };

  let stopPruning = async () => {};
  let stopPings = () => {};
  const begin = async () => {
    if (config.CHRONOS_DISPATCH && !closed) {
      await endOrphanedClaims();
      if (closed) return;
      dispatcher.start();
      stopPruning = startRetention(store, {
        ledgerDays: config.CHRONOS_LEDGER_RETENTION_DAYS,
        alarmDays: config.CHRONOS_TERMINAL_RETENTION_DAYS,
        clock,
        log,
      });
      const { CHRONOS_PING_URL: url, CHRONOS_PING_SECONDS: seconds } = config;
      if (url !== undefined) stopPings = startPings({ url, everyMs: seconds * 1000, store, clock, log });
    }
    log.info(
      { url: server.url, store: config.CHRONOS_POSTGRES_URI ? 'postgresql' : config.CHRONOS_DATA_DIR },
      'chronosd is ready',
    );
  };
  const close = async () => {
    try {
      stopPings();
      await stopPruning();
      events.feed.close();
      await Promise.all([dispatcher.drain(DRAIN_MS), server.close()]);
    } finally {
      absence.close();
      await store.close();
    }
  };
  let closed: Promise<void> | undefined;
  // Without PostgreSQL the daemon runs, not ready, and starts when PostgreSQL is reachable.
  void Promise.all([opened, startAfter]).then(begin);
  return {
    port: server.port,
    url: server.url,
    computerWakes: async (after) => (await bare.computerWakes?.(after)) ?? {},
    close() {
      closed ??= close();
      return closed;
    },
  };
}
