/** The kind of world of a seed: its size, its configuration, its faults and their frequency. */
import type { DefinitionLimits } from '../../../src/chronos/alarm/definition.ts';
import type { DispatcherConfig } from '../../../src/chronos/dispatch/dispatcher.ts';
import { Dice } from './dice.ts';

/**
 * `single`: one chronosd that owns its database and uses its machine's wall clock, as on SQLite. `fleet`: replicas that
 * share a database and use its clock, as on PostgreSQL.
 */
export type Mode = 'single' | 'fleet';

/** Storage of the durable state: the port's model, or a real SQLite file. */
export type Engine = 'model' | 'sqlite';

export type ReplicaPlan = {
  api: boolean;
  dispatch: boolean;
  /** Initial offset of its wall clock. */
  skewMs: number;
  /** Drift of its crystal relative to the database's, as a share. */
  drift: number;
};

/** Probability and kind of failure of each store operation. */
export type StoreFaults = {
  /** The store refuses, and does nothing. */
  refused: number;
  /** The operation was carried out, and the answer was lost. */
  lost: number;
  /** The operation was carried out some time after its caller got an error. */
  late: number;
  /** No answer until the caller gives up; the operation may have been carried out. */
  hung: number;
  /** Slow answers. */
  slow: number;
};

/** How an agent's machine treats wakes in this condition. */
export const CONDITIONS = ['well', 'slow', 'busy', 'failing', 'gone', 'unreachable', 'lossy', 'hanging'] as const;
export type Condition = (typeof CONDITIONS)[number];

export type Scenario = {
  seed: number;
  mode: Mode;
  engine: Engine;
  /** The start time of the world, epoch ms. */
  start: number;
  /** How long clients act and faults occur. */
  troubleMs: number;
  replicas: readonly ReplicaPlan[];
  /** Whether replicas notify each other of created alarms. */
  hints: boolean;
  config: DispatcherConfig;
  limits: DefinitionLimits & { maxActiveAlarms: number };
  owners: readonly string[];
  /** Mean time between two actions of one owner. */
  actionEveryMs: number;
  /** Neither the store nor a process fails here: delays and repetitions have no excuse. */
  calm: boolean;
  store: StoreFaults;
  /** Mean interval of each fault; infinite where it does not occur. */
  everyMs: Readonly<Record<Misfortune, number>>;
  /** Share of lost requests of clients, and of lost answers. */
  lostRequests: number;
  /** The possible conditions of the agents' machines, by weight. */
  conditions: Readonly<Record<Condition, number>>;
};

export const MISFORTUNES = ['crash', 'stop', 'stall', 'drain', 'outage', 'jump', 'condition', 'router'] as const;
export type Misfortune = (typeof MISFORTUNES)[number];

const MINUTE = 60_000;

const NO_FAULTS: StoreFaults = { refused: 0, lost: 0, late: 0, hung: 0, slow: 0 };

/** Start times minutes before a clock change, and ordinary ones. */
const STARTS = [
  Date.UTC(2026, 5, 15, 8, 10, 0, 123),
  // Clocks go forward in Europe at 01:00 UTC, in America at 07:00 and 10:00; and back.
  Date.UTC(2026, 2, 29, 0, 54, 30),
  Date.UTC(2026, 9, 25, 0, 52, 10, 777),
  Date.UTC(2027, 2, 14, 6, 55, 0, 5),
  Date.UTC(2026, 10, 1, 5, 50, 59, 999),
  Date.UTC(2027, 11, 31, 23, 50),
  Date.UTC(2028, 1, 28, 23, 55),
];

/** Chooses the parameters of one world. */
export function drawScenario(seed: number): Scenario {
  const dice = new Dice(seed).fork('scenario');
  const mode: Mode = dice.chance(0.35) ? 'single' : 'fleet';
  const engine: Engine = dice.chance(0.25) ? 'sqlite' : 'model';
  const calm = dice.chance(0.2);
  /** Each kind of fault is absent from about half the worlds, so that others occur alone. */
  const sometimes = (probability: number, draw: () => number, otherwise: number) => {
    const value = draw();
    return !calm && dice.chance(probability) ? value : otherwise;
  };
  const never = Number.POSITIVE_INFINITY;
  const faults = (): StoreFaults => ({
    refused: sometimes(0.5, () => dice.magnitude(0.002, 0.1), 0),
    lost: sometimes(0.5, () => dice.magnitude(0.002, 0.1), 0),
    // With an in-process store, a failed operation has no later effect.
    late: mode === 'fleet' ? sometimes(0.4, () => dice.magnitude(0.001, 0.03), 0) : 0,
    hung: sometimes(0.4, () => dice.magnitude(0.001, 0.02), 0),
    slow: sometimes(0.5, () => dice.magnitude(0.005, 0.2), 0),
  });
  const troubleMs = dice.magnitude(1.5, 15) * MINUTE;
  const replicaCount = mode === 'single' ? 1 : dice.whole(1, 4);
  const drifting = mode === 'fleet' && dice.chance(0.5);
  const replicas = Array.from({ length: replicaCount }, (_, index): ReplicaPlan => {
    const split = index > 0 && replicaCount > 2 && dice.chance(0.3);
    const api = !split || dice.chance(0.5);
    return {
      api,
      dispatch: !split || !api,
      skewMs: mode === 'fleet' ? Math.round(dice.between(-5, 5) * MINUTE) : 0,
      drift: drifting ? dice.between(-20e-6, 20e-6) : 0,
    };
  });
  const conditions = Object.fromEntries(
    CONDITIONS.map((condition) => [
      condition,
      condition === 'well' ? 2 : dice.chance(0.5) ? dice.next() * (condition === 'slow' ? 3 : 1) : 0,
    ]),
  ) as Record<Condition, number>;
  const count = dice.whole(2, 5);
  return {
    seed,
    mode,
    engine,
    start: dice.pick(STARTS) + dice.whole(0, 5 * MINUTE),
    troubleMs,
    replicas,
    hints: dice.chance(0.7),
    config: {
      concurrency: dice.pick([3, 8, 64, 256]),
      userConcurrency: dice.pick([1, 2, 4, 4]),
      tickMs: 1000,
    },
    limits: { minIntervalSeconds: 10, maxFailures: dice.pick([3, 12, 100]), maxActiveAlarms: dice.pick([12, 10_000]) },
    owners: Array.from({ length: count }, (_, index) => `user-${index}`),
    // About as many actions in a long world as in a short one.
    actionEveryMs: (troubleMs * count) / dice.between(40, 140),
    calm,
    store: calm ? NO_FAULTS : faults(),
    everyMs: {
      crash: sometimes(0.5, () => dice.magnitude(0.3, 5) * MINUTE, never),
      stop: sometimes(0.5, () => dice.magnitude(0.5, 5) * MINUTE, never),
      stall: sometimes(0.4, () => dice.magnitude(0.1, 2) * MINUTE, never),
      drain: sometimes(0.4, () => dice.magnitude(1, 5) * MINUTE, never),
      outage: sometimes(0.5, () => dice.magnitude(0.7, 5) * MINUTE, never),
      jump: sometimes(0.4, () => dice.magnitude(2, 8) * MINUTE, never),
      condition: dice.magnitude(0.2, 2) * MINUTE,
      router: sometimes(0.3, () => dice.magnitude(1, 8) * MINUTE, never),
    },
    lostRequests: sometimes(0.7, () => dice.magnitude(0.005, 0.15), 0),
    conditions,
  };
}
