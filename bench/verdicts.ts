/** The targets, compared with the results. Pure. */
import { count, megabytes, ms, times } from './report/figures.ts';
import type { Results } from './results.ts';
import { median } from './statistics.ts';
import type { BurstResult } from './workloads/burst.ts';
import type { ChronometricResult } from './workloads/chronometric.ts';
import type { ConditionsResult } from './workloads/conditions.ts';
import type { ConsolesResult } from './workloads/consoles.ts';
import type { CreatesRow } from './workloads/creates.ts';

export type Store = 'SQLite' | 'PostgreSQL';

export type Verdict = {
  target: string;
  /** Where the target is judged for each store. */
  store?: Store;
  limit: string;
  measured: string;
  reached: boolean;
  /** The difference, for a missed target. */
  missedBy?: string;
  /** Reasons that affect the figure. */
  note?: string;
};

type Bound = {
  target: string;
  store?: Store | undefined;
  limit: number;
  measured: number | null;
  /** Whether `limit` is an upper or a lower limit. */
  at: 'most' | 'least';
  write: (value: number) => string;
  note?: string | undefined;
};

const STORES = [
  { system: 'reveille-sqlite', store: 'SQLite' },
  { system: 'reveille-postgres', store: 'PostgreSQL' },
] as const;

const storeOf = (name: string): Store => (name === 'sqlite' ? 'SQLite' : 'PostgreSQL');

export function judge({ target, store, limit, measured, at, write, note }: Bound): Verdict {
  const reached = measured !== null && (at === 'most' ? measured <= limit : measured >= limit);
  const verdict = {
    target,
    ...(store === undefined ? {} : { store }),
    limit: `at ${at} ${write(limit)}`,
    measured: measured === null ? 'never' : write(measured),
    reached,
    ...(note === undefined ? {} : { note }),
  };
  if (reached) return verdict;
  const share = measured === null ? undefined : Math.abs(measured / limit - 1) * 100;
  const direction = at === 'most' ? 'over' : 'short';
  return { ...verdict, missedBy: share === undefined ? 'no figure' : `${share.toFixed(0)} % ${direction}` };
}

/** In milliseconds. */
const LATENESS_LIMITS = [
  { ...STORES[0], rate: 1000, p50: 3, p99: 8.7 },
  { ...STORES[1], rate: 1000, p50: 5, p99: 15.8 },
  { ...STORES[0], rate: 3000, p99: 20 },
  { ...STORES[1], rate: 3000, p99: 20 },
];

function latenessBounds(rows: NonNullable<Results['lateness']>): Bound[] {
  return LATENESS_LIMITS.flatMap(({ system, store, rate, ...limits }) => {
    const row = rows.find((each) => each.system === system && each.rate === rate);
    if (!row) return [];
    return (['p50', 'p99'] as const).flatMap((name): Bound[] => {
      const limit = limits[name as keyof typeof limits];
      if (limit === undefined) return [];
      const target = `Lateness ${name} at ${count(rate)} fires/s`;
      return [{ target, store, limit, measured: row.median[name], at: 'most', write: (value) => `${ms(value)} ms` }];
    });
  });
}

/** The rate of one system in a burst. */
export type Rate = { system: string; title: string; perSecond: number };

/** The fastest peer in its best setting. */
export function bestPeer(rates: readonly Rate[]): Rate | undefined {
  const peers = rates.filter(({ system }) => !system.startsWith('reveille') && !system.endsWith('-default'));
  return peers.toSorted((a, b) => b.perSecond - a.perSecond)[0];
}

export function burstRates({ rows }: BurstResult): Rate[] {
  return rows.map(({ system, title, median }) => ({ system, title, perSecond: median }));
}

/** Rates of the burst at a target behind TLS. */
export function tlsRates({ targets }: BurstResult): Rate[] {
  const rows = targets.find(({ target }) => target === 'tls')?.rows ?? [];
  return rows.map(({ system, title, drain }) => ({ system, title, perSecond: drain.perSecond }));
}

/** Of the rate of the best peer in the same burst. */
const OF_BEST_PEER = { plain: 1, tls: 0.9 };
const FIRE_MICROSECONDS = 60;
const SERVER_MICROSECONDS = 35;
const PEAK_MEGABYTES = 200;
const SQLITE_BYTES = 10 * 1024;

const microseconds = (value: number) => `${count(value)} µs`;

function burstBounds(burst: BurstResult): Bound[] {
  return STORES.flatMap(({ system, store }) => {
    const row = burst.rows.find((each) => each.system === system);
    if (!row) return [];
    return [
      ...peerBounds('Burst', burstRates(burst), system, store, OF_BEST_PEER.plain),
      ...peerBounds('Burst at a target behind TLS', tlsRates(burst), system, store, OF_BEST_PEER.tls),
      ...ownWorkBounds(row, store),
      ...serverBounds(row),
    ];
  });
}

function peerBounds(title: string, rates: readonly Rate[], system: string, store: Store, limit: number): Bound[] {
  const best = bestPeer(rates);
  const own = rates.find((rate) => rate.system === system);
  if (!best || !own) return [];
  const target = `${title}, compared to the best peer (${best.title})`;
  return [{ target, store, limit, measured: own.perSecond / best.perSecond, at: 'least', write: times }];
}

function ownWorkBounds({ own }: BurstResult['rows'][number], store: Store): Bound[] {
  if (own === null) return [];
  const bounds: Bound[] = [
    {
      ...{ target: 'CPU of chronosd per fire', store, limit: FIRE_MICROSECONDS },
      ...{ measured: own.processorMicroseconds, at: 'most', write: microseconds },
    },
    {
      ...{ target: 'Peak resident memory in the burst', store, limit: PEAK_MEGABYTES },
      ...{ measured: own.peakMegabytes, at: 'most', write: megabytes },
    },
  ];
  if (store !== 'SQLite') return bounds;
  const write = (value: number) => `${(value / 1024).toFixed(1)} KiB`;
  const target = 'Bytes written per fire';
  return [...bounds, { target, store, limit: SQLITE_BYTES, measured: own.writtenBytes, at: 'most', write }];
}

function serverBounds({ rounds }: BurstResult['rows'][number]): Bound[] {
  const measured = median(rounds.flatMap(({ database }) => database?.serverMicroseconds ?? []));
  if (measured === null) return [];
  const target = 'CPU of the database server per fire';
  return [{ target, store: 'PostgreSQL', limit: SERVER_MICROSECONDS, measured, at: 'most', write: microseconds }];
}

/**
 * A create cannot be faster than an empty request. A client that waits for each answer needs the request and the insert
 * one after the other.
 */
function unstored(wanted: number, { clients, posts, inserts }: CreatesRow): string | undefined {
  if (wanted > posts)
    return `cannot be reached over HTTP here: the target is ${count(wanted)}/s, a server that stores nothing answers ${count(posts)}/s`;
  const inTurn = 1 / (1 / posts + 1 / inserts);
  if (clients > 1 || wanted <= inTurn) return undefined;
  return `cannot be reached by one client here: a bare request and then a bare insert are ${count(inTurn)}/s`;
}

/** Many clients: share of bare inserts, or of bare HTTP where that is lower. One client: creates per second. */
const MANY_CLIENTS = 64;
const CREATES_LIMITS = {
  'reveille-sqlite': { share: 0.7, oneClient: 2_000 },
  'reveille-postgres': { share: 0.6, oneClient: undefined },
};
const OF_BARE_HTTP = 0.6;

function createsBounds(rows: NonNullable<Results['creates']>): Bound[] {
  return STORES.flatMap(({ system, store }) => {
    const { share, oneClient } = CREATES_LIMITS[system];
    const of = (clients: number) => rows.find((row) => row.system === system && row.clients === clients);
    const bounds: Bound[] = [];
    const many = of(MANY_CLIENTS);
    if (many) {
      const limit = Math.min(share, (OF_BARE_HTTP * many.posts) / many.inserts);
      bounds.push({
        target: `Creates by ${MANY_CLIENTS} clients, as a share of bare inserts`,
        ...{ store, limit, measured: many.ratio, at: 'least', write: times },
        note: unstored(limit * many.inserts, many),
      });
    }
    const one = of(1);
    if (one && oneClient !== undefined)
      bounds.push({
        target: 'Creates by 1 client',
        ...{ store, limit: oneClient, measured: one.creates, at: 'least' },
        write: (value) => `${count(value)}/s`,
        note: unstored(oneClient, one),
      });
    return bounds;
  });
}

function growthBounds(rows: NonNullable<Results['growth']>): Bound[] {
  return STORES.flatMap(({ system, store }) => {
    const own = rows.filter((row) => row.system === system).toSorted((a, b) => a.pending - b.pending);
    const [small, large] = [own[0], own.at(-1)];
    if (!small || !large || small === large) return [];
    const [before, after] = [small.median.p99, large.median.p99];
    return [
      {
        target: `Lateness p99 with ${count(large.pending)} pending compared to ${count(small.pending)}`,
        store,
        limit: 1.5,
        measured: before === null || after === null ? null : after / before,
        at: 'most' as const,
        write: times,
      },
    ];
  });
}

function footprintBounds({ idle }: NonNullable<Results['footprint']>): Bound[] {
  return idle.map(({ title, residentMegabytes }) => ({
    target: 'Resident memory, idle',
    store: STORES.find(({ store }) => title.endsWith(store))?.store,
    limit: 80,
    measured: residentMegabytes,
    at: 'most' as const,
    write: megabytes,
  }));
}

const RESTART_MS = 2_000;

/** With SQLite the store is the process: after a kill it is available when the next process has started. */
function queueBounds(rows: NonNullable<Results['queue']>): Bound[] {
  return STORES.flatMap(({ system, store }) => {
    const row = rows.find((each) => each.scenario === 'restart' && each.system === system);
    if (!row?.recovery) return [];
    const milliseconds = (value: number) => `${count(value)} ms`;
    return [
      {
        target: 'From the return of a killed store to the next fire',
        store,
        limit: RESTART_MS,
        measured: row.recovery.firstFireMs,
        at: 'most' as const,
        write: milliseconds,
      },
      {
        target: 'From then until all due jobs have fired',
        ...{ store, limit: RESTART_MS, measured: row.recovery.overdueMs, at: 'most' as const, write: milliseconds },
      },
      {
        target: 'Missing fires after a kill of the store',
        ...{ store, limit: 0, measured: row.lateness.missing, at: 'most' as const, write: count },
      },
    ];
  });
}

/** Of the last tenth of the time, compared to the first. */
const ENDURANCE_SHARE = 1.2;
const ENDURANCE_MEGABYTES = 200;

function enduranceBounds({ windows }: NonNullable<Results['endurance']>): Bound[] {
  const [first, last] = [windows[0], windows.at(-1)];
  if (!first || !last || first === last) return [];
  const [before, after] = [first.lateness.p99, last.lateness.p99];
  const half = windows[Math.floor(windows.length / 2)]!;
  return [
    {
      target: 'Lateness p99 of the last window compared to the first, under lasting load',
      ...{
        store: 'SQLite',
        limit: ENDURANCE_SHARE,
        measured: before === null || after === null ? null : after / before,
        at: 'most',
        write: times,
      },
    },
    {
      target: 'Resident in the last window, under lasting load',
      ...{
        store: 'SQLite',
        limit: ENDURANCE_MEGABYTES,
        measured: last.residentMegabytes,
        at: 'most',
        write: megabytes,
      },
    },
    {
      target: 'Size of the file in the last window compared to the middle one, under lasting load',
      ...{
        store: 'SQLite',
        limit: ENDURANCE_SHARE,
        measured: last.fileBytes / half.fileBytes,
        at: 'most',
        write: times,
      },
    },
  ];
}

function residentBounds({ rate, windowSeconds, windows }: NonNullable<Results['resident']>): Bound[] {
  const last = windows.at(-1);
  if (!last) return [];
  const length = `${count((windowSeconds * windows.length) / 60)} minutes`;
  return [
    {
      target: `Resident after ${length} at ${count(rate)} creates and fires per second`,
      ...{
        store: 'SQLite',
        limit: ENDURANCE_MEGABYTES,
        measured: last.residentMegabytes,
        at: 'most',
        write: megabytes,
      },
    },
  ];
}

const MANY_MEMORIES = 100_000;

/** A user does not choose the kind of query, so the slowest kind counts. */
function memoryBounds(rows: NonNullable<Results['memory']>): Bound[] {
  const many = rows.filter(({ memories }) => memories === MANY_MEMORIES).toSorted((a, b) => b.p99 - a.p99);
  const [slowest] = many;
  if (!slowest) return [];
  return [
    {
      target: `Recall p99 among ${count(MANY_MEMORIES)} memories, the slowest kind of query (${slowest.query})`,
      limit: 20,
      measured: slowest.p99,
      at: 'most',
      write: (value) => `${ms(value)} ms`,
    },
  ];
}

function receiptsBounds(rows: NonNullable<Results['receipts']>): Bound[] {
  return rows
    .filter(({ way }) => way === 'verify')
    .map(({ median }) => ({
      target: 'Envelopes of receipts checked per second, on one core',
      limit: 5000,
      measured: median,
      at: 'least',
      write: count,
    }));
}

const bound = (target: string, limit: number, measured: number, write: (value: number) => string): Bound => ({
  ...{ target, limit, measured, write },
  at: 'most',
});
const milliseconds = (value: number) => `${ms(value)} ms`;

function chronometricBounds({ starts, calls }: ChronometricResult): Bound[] {
  const [start] = starts.filter(({ way }) => way === 'reveille');
  const [slowest] = calls.filter(({ way }) => way === 'reveille').toSorted((a, b) => b.p99 - a.p99);
  return [
    ...(start ? [bound('Chronometric, cold start to the first answer', 300, start.answer, milliseconds)] : []),
    ...(slowest
      ? [bound(`Chronometric, p99 of the slowest tool (${slowest.tool})`, 5, slowest.p99, milliseconds)]
      : []),
  ];
}

function consolesBounds({ rows, events = [] }: ConsolesResult): Bound[] {
  const arrivals = events.map(({ store, streams, perSecond, p99 }) => ({
    target: `Events, ${streams} streams at ${perSecond} fires per second: p99`,
    store: storeOf(store),
    limit: 200,
    measured: p99,
    at: 'most' as const,
    write: (value: number) => `${value.toFixed(0)} ms`,
  }));
  const cost = rows
    .filter(({ consoles }) => consoles > 0)
    .map(({ consoles, ofCore }) => ({
      target: `${consoles} open consoles, of different users: share of the core of chronosd`,
      limit: 0.1,
      measured: ofCore,
      at: 'most' as const,
      write: (value: number) => value.toFixed(3),
    }));
  return [...cost, ...arrivals];
}

/** `null` without figures. */
const mostOf = (...values: (number | null)[]): number | null => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
};

function conditionsBounds({ events, checks }: ConditionsResult): Bound[] {
  const none = (target: string, store: Store, measured: number): Bound => ({
    ...{ target, store, limit: 0, measured, at: 'most', write: String },
  });
  const ofTime = (target: string, store: Store, limit: number, measured: number | null): Bound[] =>
    measured === null ? [] : [{ target, store, limit, measured, at: 'most', write: (value) => `${ms(value)} ms` }];
  return STORES.flatMap(({ store }) => {
    const isOfStore = (row: { store: string }) => storeOf(row.store) === store;
    const shapes = events.filter(isOfStore);
    if (shapes.length === 0) return [];
    const arrivals = shapes
      .filter(({ collected }) => !collected)
      .flatMap(({ alarms, p99 }) =>
        ofTime(`A webhook at its wake, p99, for ${alarms === 1 ? 'one alarm' : `${alarms} alarms`}`, store, 100, p99),
      );
    const costs = checks.filter(isOfStore);
    const wrong = [
      ...shapes.map(({ lost, repeated }) => lost + repeated),
      ...costs.map(({ started }) => started),
    ].reduce((sum, each) => sum + each, 0);
    return [
      ...arrivals,
      none('Webhooks lost or repeated, and deliveries after checks that say no', store, wrong),
      ...costs.flatMap(({ chronosdMs, routerMs }) =>
        ofTime('A check that says no, time of chronosd or of the router', store, 5, mostOf(chronosdMs, routerMs)),
      ),
    ];
  });
}

/** Every target for which the results have figures. */
export function verdictsOf(results: Results): Verdict[] {
  const { lateness, burst, creates, growth, queue, endurance, resident, footprint, memory, receipts, chronometric } =
    results;
  const bounds = [
    ...(lateness ? latenessBounds(lateness) : []),
    ...(burst ? burstBounds(burst) : []),
    ...(creates ? createsBounds(creates) : []),
    ...(growth ? growthBounds(growth) : []),
    ...(queue ? queueBounds(queue) : []),
    ...(endurance ? enduranceBounds(endurance) : []),
    ...(resident ? residentBounds(resident) : []),
    ...(footprint ? footprintBounds(footprint) : []),
    ...(memory ? memoryBounds(memory) : []),
    ...(receipts ? receiptsBounds(receipts) : []),
    ...(chronometric ? chronometricBounds(chronometric) : []),
    ...(results.conditions ? conditionsBounds(results.conditions) : []),
    ...(results.consoles ? consolesBounds(results.consoles) : []),
  ];
  return bounds.map(judge);
}
