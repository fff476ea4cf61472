/** The volume of a measurement: full or quick. Pure. */

export const WORKLOADS = [
  'lateness',
  'burst',
  'creates',
  'growth',
  'replicas',
  'queue',
  'endurance',
  'resident',
  'footprint',
  'tools',
  'boot',
  'memory',
  'receipts',
  'chronometric',
  'proxy',
  'consoles',
  'conditions',
] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

/** The schedulers of other projects. Each runs with its best settings and with its default settings. */
export const PEERS = ['graphile-worker', 'pg-boss', 'bullmq'] as const;
export type PeerName = (typeof PEERS)[number];

/** Names of all systems, as in the results. */
export const SYSTEMS = [
  'reveille-sqlite',
  'reveille-postgres',
  ...PEERS,
  ...PEERS.map((name) => `${name}-default` as const),
] as const;
export type SystemName = (typeof SYSTEMS)[number];

/** These run only when named: together they take 70 minutes. The results of an earlier run stay on the page. */
export const ON_REQUEST: ReadonlySet<WorkloadName> = new Set(['endurance', 'resident']);

/** Workloads of an agent: they send no wakes and need neither a database server nor the sink. */
const ALONE: ReadonlySet<WorkloadName> = new Set(['tools', 'boot', 'memory', 'receipts', 'chronometric', 'proxy']);

/** Whether any of these workloads uses chronosd, which needs a store and a target. */
export function needsServers(names: readonly WorkloadName[]): boolean {
  return names.some((name) => !ALONE.has(name));
}

/** Creates and fires per second, in consecutive windows. */
export type LastingLoad = { rate: number; windows: number; windowSeconds: number };

export type Plan = {
  rounds: number;
  lateness: {
    /** Fires per second. */
    rates: number[];
    seconds: number;
    /**
     * Fires at the same rate before the measured window: connections are open and code is compiled, as in a daemon that
     * has run for some time.
     */
    warmupSeconds: number;
    /** Rates, duration and a single round for the peers in their default setting. */
    defaults: { rates: number[]; seconds: number };
  };
  burst: { count: number; seconds: number; defaultsPatienceSeconds: number };
  creates: { clients: number[]; seconds: number };
  growth: { pending: number[]; rate: number; seconds: number };
  replicas: { counts: number[] };
  /** Jobs per second, and duration, of each scenario. */
  queue: { rate: number; seconds: number };
  /** Everything is deleted after the length of a window. */
  endurance: LastingLoad;
  /** Nothing is deleted. */
  resident: LastingLoad;
  footprint: { starts: number };
  /** Calls of each kind through each client in a round. */
  tools: { calls: number };
  /** MCP servers of one agent, and number of starts. */
  boot: { servers: number[]; starts: number };
  /** Memories in the file, ascending, and queries of each kind. */
  memory: { memories: number[]; queries: number };
  /** Window length of each variant in a round. */
  receipts: { seconds: number };
  /** Starts of each server, and calls of each tool in a round. */
  chronometric: { starts: number; calls: number };
  /** Sequential requests, window length of parallel requests per round, and wakes of a sleeping machine. */
  proxy: { calls: number; seconds: number; wakes: number };
  /** Fires, the span of their due times in seconds, and open consoles. */
  consoles: { count: number; seconds: number; consoles: number };
  /** Events and their span in seconds; alarms with a check and their span. */
  conditions: { events: number; seconds: number; checks: number; checkSeconds: number };
};

const FULL: Plan = {
  rounds: 3,
  lateness: {
    rates: [100, 1_000, 3_000],
    seconds: 30,
    warmupSeconds: 3,
    defaults: { rates: [100, 1_000], seconds: 10 },
  },
  burst: { count: 80_000, seconds: 4, defaultsPatienceSeconds: 20 },
  creates: { clients: [1, 16, 64], seconds: 4 },
  growth: { pending: [10_000, 1_000_000, 5_000_000], rate: 200, seconds: 8 },
  replicas: { counts: [1, 2, 4] },
  queue: { rate: 800, seconds: 30 },
  endurance: { rate: 1_000, windows: 6, windowSeconds: 600 },
  resident: { rate: 500, windows: 5, windowSeconds: 120 },
  footprint: { starts: 7 },
  tools: { calls: 5_000 },
  boot: { servers: [1, 10], starts: 7 },
  memory: { memories: [10_000, 100_000], queries: 1_000 },
  receipts: { seconds: 3 },
  chronometric: { starts: 15, calls: 2_000 },
  proxy: { calls: 5_000, seconds: 5, wakes: 7 },
  consoles: { count: 60_000, seconds: 4, consoles: 200 },
  conditions: { events: 10_000, seconds: 60, checks: 1_000, checkSeconds: 20 },
};

const QUICK: Plan = {
  rounds: 1,
  lateness: {
    rates: [100, 1_000, 3_000],
    seconds: 5,
    warmupSeconds: 2,
    defaults: { rates: [100], seconds: 5 },
  },
  burst: { count: 20_000, seconds: 1, defaultsPatienceSeconds: 5 },
  creates: { clients: [1, 16, 64], seconds: 2 },
  growth: { pending: [10_000, 200_000], rate: 200, seconds: 4 },
  replicas: { counts: [1, 2] },
  queue: { rate: 800, seconds: 8 },
  endurance: { rate: 1_000, windows: 4, windowSeconds: 15 },
  resident: { rate: 500, windows: 2, windowSeconds: 15 },
  footprint: { starts: 3 },
  tools: { calls: 1_000 },
  boot: { servers: [1, 10], starts: 3 },
  memory: { memories: [10_000, 100_000], queries: 200 },
  receipts: { seconds: 1 },
  chronometric: { starts: 5, calls: 500 },
  proxy: { calls: 1_500, seconds: 2, wakes: 3 },
  consoles: { count: 20_000, seconds: 1, consoles: 200 },
  conditions: { events: 1_000, seconds: 6, checks: 200, checkSeconds: 4 },
};

export type PlanChanges = {
  quick: boolean;
  rounds?: number | undefined;
  /** Window length of the lateness workload. */
  seconds?: number | undefined;
  growthMax?: number | undefined;
  /** Duration of the endurance workload. */
  minutes?: number | undefined;
};

export function planOf({ quick, rounds, seconds, growthMax = Number.POSITIVE_INFINITY, minutes }: PlanChanges): Plan {
  const base = quick ? QUICK : FULL;
  return {
    ...base,
    rounds: rounds ?? base.rounds,
    lateness: { ...base.lateness, seconds: seconds ?? base.lateness.seconds },
    endurance: {
      ...base.endurance,
      windowSeconds: minutes === undefined ? base.endurance.windowSeconds : (60 * minutes) / base.endurance.windows,
    },
    growth: { ...base.growth, pending: base.growth.pending.filter((size) => size <= growthMax) },
  };
}

/** The systems of one round, rotated: heat and full caches must not always affect the same system. */
export function rotated<T>(items: readonly T[], round: number): T[] {
  const first = items.length === 0 ? 0 : round % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}
