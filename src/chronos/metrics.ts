/** chronosd's metrics in Prometheus' text format: lateness, durations, counts and overdue occurrences. */
import { createRequire } from 'node:module';
import type * as Prometheus from 'prom-client';
import type { Clock } from '../kit/clock/clock.ts';
import type { ListenerFigures } from '../kit/http/server.ts';
import { mirrorMetrics } from '../kit/trace/trace.ts';
import { type ErrorCode, ReveilleError } from '../wire/errors.ts';
import type { FireReport } from './dispatch/dispatcher.ts';
import type { Bound } from './store/limits.ts';
import type { AlarmStore, StoreUsage } from './store/store.ts';

// The library's index also loads the interface of OpenTelemetry, which takes 50 ms of CPU at each start.
const require = createRequire(import.meta.url);
const Counter: typeof Prometheus.Counter = require('prom-client/lib/counter.js');
const Gauge: typeof Prometheus.Gauge = require('prom-client/lib/gauge.js');
const Histogram: typeof Prometheus.Histogram = require('prom-client/lib/histogram.js');
const Registry: typeof Prometheus.Registry = require('prom-client/lib/registry.js');

/** Seconds. Finer at the bottom than the library's own: the promised lateness is in milliseconds. */
const LATENESS_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60, 300, 3600];
const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type ChronosMetrics = {
  /** Counts one finished attempt. */
  fired(report: FireReport): void;
  /** Counts one wake that the router deferred. */
  deferred(): void;
  /** Counts one request that a limit refused. */
  refused(bound: Bound): void;
  /** Counts one webhook without a valid proof of its sender. */
  unproved(): void;
  /** The same store, with timed claims and counted failures. */
  watch(store: AlarmStore): AlarmStore;
  /** The page of a scrape, and its content type. */
  page(): Promise<{ contentType: string; text: string }>;
};

export type MetricsOptions = {
  clock: Clock;
  /** The store that each scrape queries for overdue occurrences. */
  store: AlarmStore;
  /** Running deliveries. */
  inFlight: () => number;
  /** The stored amount, as of a short while ago. */
  usage: () => Promise<StoreUsage>;
  /** Figures of connections and tokens; `undefined` before the server listens. */
  listenerFigures?: () => ListenerFigures | undefined;
  /** Figures of the streams of events. */
  eventFigures?: () => { open: number; sent: number };
};

/** A scrape must not read through a backlog of millions. */
const MOST_COUNTED = 100_000;

/** Errors that a store or a transition answers with while it works as it should. */
const REFUSALS: readonly ErrorCode[] = ['conflict', 'rate_limited', 'invalid_request'];

const NO_OWNERS: ReadonlySet<string> = new Set();

/** Metrics of one replica. A scrape distinguishes replicas by their addresses. */
export function createMetrics({
  clock,
  store,
  inFlight,
  usage,
  listenerFigures = () => undefined,
  eventFigures = () => ({ open: 0, sent: 0 }),
}: MetricsOptions): ChronosMetrics {
  const registers = [new Registry()];
  const lateness = new Histogram({
    name: 'chronos_fire_lateness_seconds',
    help: 'From the instant an occurrence was due to the start of its first attempt',
    buckets: LATENESS_BUCKETS,
    registers,
  });
  const delivery = new Histogram({
    name: 'chronos_delivery_duration_seconds',
    help: 'From the start of an attempt to the answer of the router',
    labelNames: ['outcome'],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const claims = new Histogram({
    name: 'chronos_claim_duration_seconds',
    help: 'How long the store took to return due occurrences',
    buckets: DURATION_BUCKETS,
    registers,
  });
  const claimed = new Counter({ name: 'chronos_claimed_total', help: 'Occurrences claimed', registers });
  const attempts = new Counter({
    name: 'chronos_attempts_total',
    help: 'Finished attempts by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const retries = new Counter({
    name: 'chronos_retries_total',
    help: 'Attempts that were not the first at their occurrence',
    registers,
  });
  const held = new Counter({
    name: 'chronos_held_total',
    help: 'Wakes that the router deferred because of a budget or of quiet hours',
    registers,
  });
  const storeErrors = new Counter({
    name: 'chronos_store_errors_total',
    help: 'Operations that the store could not carry out',
    labelNames: ['operation'],
    registers,
  });
  const lostClaims = new Counter({
    name: 'chronos_lost_leases_total',
    help: 'Outcomes that arrived after their claim had ended, because this replica counted as gone',
    registers,
  });
  const turns = new Counter({
    name: 'chronos_turns_total',
    help: 'Turns whose end was reported to this replica, by outcome',
    labelNames: ['outcome'],
    registers,
  });
  new Gauge({
    name: 'chronos_in_flight',
    help: 'Running deliveries',
    registers,
    collect() {
      this.set(inFlight());
    },
  });
  new Gauge({
    name: 'chronos_http_connections',
    help: 'Open connections',
    registers,
    collect() {
      this.set(listenerFigures()?.open ?? 0);
    },
  });
  // The server counts; a counter of this library can only be incremented.
  new Counter({
    name: 'chronos_http_connections_closed_total',
    help: 'Connections that the server closed, by reason',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(listenerFigures()?.closed ?? {})) this.inc({ reason }, count);
    },
  });
  new Counter({
    name: 'chronos_wrong_tokens_total',
    help: 'Requests with a wrong bearer token',
    registers,
    collect() {
      this.reset();
      this.inc(listenerFigures()?.wrongTokens ?? 0);
    },
  });
  new Gauge({
    name: 'chronos_event_streams',
    help: 'Open streams of events',
    registers,
    collect() {
      this.set(eventFigures().open);
    },
  });
  new Counter({
    name: 'chronos_events_sent_total',
    help: 'Events sent to all streams',
    registers,
    collect() {
      this.reset();
      this.inc(eventFigures().sent);
    },
  });
  new Gauge({
    name: 'chronos_overdue_seconds',
    help: 'How long the earliest unclaimed occurrence has been due',
    registers,
    async collect() {
      const next = await store.nextDueAt(NO_OWNERS);
      this.set(next === undefined ? 0 : Math.max(0, clock.now() - next) / 1000);
    },
  });

  new Gauge({
    name: 'chronos_due',
    help: `Unclaimed due occurrences; counting stops at ${MOST_COUNTED}`,
    registers,
    async collect() {
      this.set(await store.countDue({ now: clock.now(), atMost: MOST_COUNTED }));
    },
  });

  const refusals = new Counter({
    name: 'chronos_refused_total',
    help: 'Requests answered 429, by the limit that refused them',
    labelNames: ['bound'],
    registers,
  });
  const unproved = new Counter({
    name: 'chronos_unproved_webhooks_total',
    help: 'Webhooks answered 401: no valid signature of their alarm, or an old one',
    registers,
  });
  const stored = [
    ['chronos_owners', 'Owners that have, or had, alarms', 'owners'],
    ['chronos_stored_alarms', 'Alarms of all owners, finished ones included', 'alarms'],
    ['chronos_stored_bytes', 'Stored size of the alarms, as the limits count it', 'bytes'],
  ] as const;
  for (const [name, help, member] of stored)
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set((await usage())[member]);
      },
    });

  mirrorMetrics(registers[0]!);

  /** Counts the failures of one operation. */
  const counted = async <T>(operation: string, result: Promise<T>): Promise<T> => {
    try {
      return await result;
    } catch (error) {
      const isRefusal = error instanceof ReveilleError && REFUSALS.includes(error.code);
      if (!isRefusal) storeErrors.inc({ operation });
      throw error;
    }
  };

  return {
    fired({ occurrence, attempt: { startedAt, finishedAt, outcome } }) {
      // A deferred occurrence is late by the user's own settings.
      const onTime = occurrence.heldUntil === null;
      if (occurrence.attempt > 1) retries.inc();
      else if (onTime) lateness.observe(Math.max(0, startedAt - occurrence.scheduledFor) / 1000);
      delivery.observe({ outcome }, Math.max(0, finishedAt - startedAt) / 1000);
      attempts.inc({ outcome });
    },
    deferred: () => held.inc(),
    refused: (bound) => refusals.inc({ bound }),
    unproved: () => unproved.inc(),
    watch(watched) {
      const measured: Partial<AlarmStore> = {
        create: (entry, limits) => counted('create', watched.create(entry, limits)),
        update: (owner, alarmId, transition, limits) =>
          counted('update', watched.update(owner, alarmId, transition, limits)),
        async claim(request) {
          const began = clock.monotonic();
          const found = await counted('claim', watched.claim(request));
          claims.observe((clock.monotonic() - began) / 1000);
          claimed.inc(found.length);
          return found;
        },
        async complete(completions) {
          const results = await counted('complete', watched.complete(completions));
          lostClaims.inc(results.filter((result) => result === 'lost_claim').length);
          return results;
        },
        async recordTurnReports(report) {
          const recorded = await counted('record_receipts', watched.recordTurnReports(report));
          const finished = report.reports.find(({ stage }) => stage === 'turn_finished');
          if (finished?.outcome && recorded?.fresh.has('turn_finished')) turns.inc({ outcome: finished.outcome });
          return recorded;
        },
        recordEvents: (arrival) => counted('record_events', watched.recordEvents(arrival)),
        eventsOf: (owner, alarmId, range) => counted('events_of', watched.eventsOf(owner, alarmId, range)),
        dropEvents: (owner, alarmId, upTo) => counted('drop_events', watched.dropEvents(owner, alarmId, upTo)),
      };
      return new Proxy(watched, {
        get: (store, operation: keyof AlarmStore) => measured[operation] ?? store[operation],
      });
    },
    async page() {
      const [registry] = registers;
      return { contentType: registry!.contentType, text: await registry!.metrics() };
    },
  };
}
