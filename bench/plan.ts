/** How much is measured: everything, or a quick look. Pure. */

export const WORKLOADS = ['lateness', 'burst', 'creates', 'growth', 'replicas', 'footprint'] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

export type Plan = {
  rounds: number;
  lateness: {
    /** Fires per second. */
    rates: number[];
    seconds: number;
    /** Fires at the same rate before the window that counts: connections are open and code is compiled, as in a daemon that has run for a while. */
    warmupSeconds: number;
    /** Peers in their default setting are shown at these rates, for so long, in one round. */
    defaults: { rates: number[]; seconds: number };
  };
  burst: { count: number; seconds: number; defaultsPatienceSeconds: number };
  creates: { clients: number[]; seconds: number };
  growth: { pending: number[]; rate: number; seconds: number };
  replicas: { counts: number[] };
  footprint: { starts: number };
};

const FULL: Plan = {
  rounds: 3,
  lateness: {
    rates: [100, 1_000, 3_000],
    seconds: 30,
    warmupSeconds: 3,
    defaults: { rates: [100, 1_000], seconds: 10 },
  },
  burst: { count: 40_000, seconds: 4, defaultsPatienceSeconds: 20 },
  creates: { clients: [1, 16, 64], seconds: 4 },
  growth: { pending: [10_000, 1_000_000, 5_000_000], rate: 200, seconds: 8 },
  replicas: { counts: [1, 2, 4] },
  footprint: { starts: 7 },
};

const QUICK: Plan = {
  rounds: 1,
  lateness: {
    rates: [100, 1_000, 3_000],
    seconds: 5,
    warmupSeconds: 2,
    defaults: { rates: [100], seconds: 5 },
  },
  burst: { count: 10_000, seconds: 1, defaultsPatienceSeconds: 5 },
  creates: { clients: [1, 16, 64], seconds: 2 },
  growth: { pending: [10_000, 200_000], rate: 200, seconds: 4 },
  replicas: { counts: [1, 2] },
  footprint: { starts: 3 },
};

export type PlanChanges = {
  quick: boolean;
  rounds?: number | undefined;
  /** Length of a window of the lateness workload. */
  seconds?: number | undefined;
  growthMax?: number | undefined;
};

export function planOf({ quick, rounds, seconds, growthMax = Number.POSITIVE_INFINITY }: PlanChanges): Plan {
  const base = quick ? QUICK : FULL;
  return {
    ...base,
    rounds: rounds ?? base.rounds,
    lateness: { ...base.lateness, seconds: seconds ?? base.lateness.seconds },
    growth: { ...base.growth, pending: base.growth.pending.filter((size) => size <= growthMax) },
  };
}

/** The systems of one round, a different one first each time: what heats up or fills up must not always hit the same. */
export function rotated<T>(items: readonly T[], round: number): T[] {
  const first = items.length === 0 ? 0 : round % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}
