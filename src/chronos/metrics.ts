/** What chronosd tells about itself in Prometheus' text format: how late, how long, how many, and what is overdue. */
import { createRequire } from 'node:module';
import type * as Prometheus from 'prom-client';
import type { Clock } from '../kit/clock/clock.ts';
import type { DoorFigures } from '../kit/http/server.ts';
import type { FireReport } from './dispatch/dispatcher.ts';
import { type Bound, OverBound } from './store/limits.ts';
import type { AlarmStore, StoreUsage } from './store/store.ts';

// What the index of the library brings along, among it the interface of OpenTelemetry, takes 50 ms of CPU at each start.
const require = createRequire(import.meta.url);
const Counter: typeof Prometheus.Counter = require('prom-client/lib/counter.js');
const Gauge: typeof Prometheus.Gauge = require('prom-client/lib/gauge.js');
const Histogram: typeof Prometheus.Histogram = require('prom-client/lib/histogram.js');
const Registry: typeof Prometheus.Registry = require('prom-client/lib/registry.js');

/** Seconds. Finer at the bottom than the library's own: a promise is counted in milliseconds. */
const LATENESS_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60, 300, 3600];
const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type ChronosMetrics = {
  /** Counts one finished attempt. */
  fired(report: FireReport): void;
  /** Counts one wake that the router held back. */
  held(): void;
  /** Counts one request that a bound stopped. */
  refused(bound: Bound): void;
  /** The same store, its claims timed and its failures counted. */
  watch(store: AlarmStore): AlarmStore;
  /** The page that a scrape gets, and its content type. */
  page(): Promise<{ contentType: string; text: string }>;
};

export type MetricsOptions = {
  clock: Clock;
  /** The store that is asked, at each scrape, for what is overdue. */
  store: AlarmStore;
  /** Deliveries under way. */
  inFlight: () => number;
  /** What is stored, as of a short while ago. */
  usage: () => Promise<StoreUsage>;
  /** What happened to connections and tokens; nothing before the server listens. */
  door?: () => DoorFigures | undefined;
};

/** A scrape must not read through a backlog of millions. */
const MOST_COUNTED = 100_000;

const NOBODY: ReadonlySet<string> = new Set();

/** Metrics of one replica; a scrape tells replicas apart by the address it asked. */
export function createMetrics({
  clock,
  store,
  inFlight,
  usage,
  door = () => undefined,
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
    help: 'How long the store took to hand out due occurrences',
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
    help: 'Wakes that the router held back for the sake of a budget or of quiet hours',
    registers,
  });
  const storeErrors = new Counter({
    name: 'chronos_store_errors_total',
    help: 'Operations that the store could not carry out',
    labelNames: ['operation'],
    registers,
  });
  const lostLeases = new Counter({
    name: 'chronos_lost_leases_total',
    help: 'Outcomes that came after the lease had passed to someone else',
    registers,
  });
  const turns = new Counter({
    name: 'chronos_turns_total',
    help: 'Turns whose end was reported to this replica, by what came of them',
    labelNames: ['outcome'],
    registers,
  });
  new Gauge({
    name: 'chronos_in_flight',
    help: 'Deliveries under way',
    registers,
    collect() {
      this.set(inFlight());
    },
  });
  new Gauge({
    name: 'chronos_http_connections',
    help: 'Connections that are open',
    registers,
    collect() {
      this.set(door()?.open ?? 0);
    },
  });
  // The server counts; a counter of this library can only be added to.
  new Counter({
    name: 'chronos_http_connections_closed_total',
    help: 'Connections that did not end by themselves, by why they were closed',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(door()?.closed ?? {})) this.inc({ reason }, count);
    },
  });
  new Counter({
    name: 'chronos_wrong_tokens_total',
    help: 'Requests with a bearer token that is not the right one',
    registers,
    collect() {
      this.reset();
      this.inc(door()?.wrongTokens ?? 0);
    },
  });
  new Gauge({
    name: 'chronos_overdue_seconds',
    help: 'How long the earliest occurrence that nobody works on has been due',
    registers,
    async collect() {
      const next = await store.nextDueAt(NOBODY);
      this.set(next === undefined ? 0 : Math.max(0, clock.now() - next) / 1000);
    },
  });

  new Gauge({
    name: 'chronos_due',
    help: `Occurrences that are due and nobody works on; counting stops at ${MOST_COUNTED}`,
    registers,
    async collect() {
      this.set(await store.countDue({ now: clock.now(), atMost: MOST_COUNTED }));
    },
  });

  const refusals = new Counter({
    name: 'chronos_refused_total',
    help: 'Requests answered 429, by the bound that stopped them',
    labelNames: ['bound'],
    registers,
  });
  const stored = [
    ['chronos_owners', 'Owners that have, or had, alarms', 'owners'],
    ['chronos_stored_alarms', 'Alarms of all owners, ended ones included', 'alarms'],
    ['chronos_stored_bytes', 'What they take up, as the bounds count it', 'bytes'],
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

  /** Counts the failures of one operation. */
  const counted = async <T>(operation: string, result: Promise<T>): Promise<T> => {
    try {
      return await result;
    } catch (error) {
      if (!(error instanceof OverBound)) storeErrors.inc({ operation });
      throw error;
    }
  };

  return {
    fired({ occurrence, startedAt, finishedAt, result }) {
      // One that was held back is late because its user wants it so.
      const onTime = occurrence.heldReason === null;
      if (occurrence.attempt > 1) retries.inc();
      else if (onTime) lateness.observe(Math.max(0, startedAt - occurrence.scheduledFor) / 1000);
      delivery.observe({ outcome: result.outcome }, Math.max(0, finishedAt - startedAt) / 1000);
      attempts.inc({ outcome: result.outcome });
    },
    held: () => held.inc(),
    refused: (bound) => refusals.inc({ bound }),
    watch(watched) {
      const measured: Partial<AlarmStore> = {
        create: (entry, limits) => counted('create', watched.create(entry, limits)),
        update: (owner, alarmId, transition, limits) =>
          counted('update', watched.update(owner, alarmId, transition, limits)),
        renew: (keys, leaseUntil) => counted('renew', watched.renew(keys, leaseUntil)),
        async claim(request) {
          const began = clock.monotonic();
          const found = await counted('claim', watched.claim(request));
          claims.observe((clock.monotonic() - began) / 1000);
          claimed.inc(found.length);
          return found;
        },
        async complete(completions) {
          const results = await counted('complete', watched.complete(completions));
          lostLeases.inc(results.filter((result) => result === 'lost_lease').length);
          return results;
        },
        async recordReceipts(receipts) {
          const fresh = await counted('record_receipts', watched.recordReceipts(receipts));
          const finished = receipts.reports.find(({ stage }) => stage === 'turn_finished');
          if (finished?.outcome && fresh?.has('turn_finished')) turns.inc({ outcome: finished.outcome });
          return fresh;
        },
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
