/** A kind of fault and its requirements. One file in `faults/` for each. */
import type { AlarmCreateBody } from '../../../src/chronos/client.ts';
import type { Cluster, ClusterConfig } from '../../support/cluster/cluster.ts';
import type { ClusterUser } from '../../support/cluster/user.ts';
import type { CampaignStore } from './stores.ts';

/** The parts that a fault acts on. */
export type FaultContext = {
  installation: Cluster;
  /** Uniform in [0, 1), from the campaign's seed. */
  random: () => number;
  /** Number of earlier strikes. */
  round: number;
};

export type Strike = {
  /** A short description. */
  what: string;
  /**
   * When the harm ended, or when it was done if it needs no repair (a kill); the machine's clock, epoch milliseconds.
   */
  endedAt: number;
};

export type Extent = {
  /** Maximum number of strikes… */
  strikes: number;
  /** …the last of which begins within this time. */
  strikingMs: number;
  /** After each strike: the longest wait until nothing is overdue. Then the next strike follows in any case. */
  recoveringMs: number;
  /** How long the alarms may take to end after the last fault. */
  drainMs: number;
};

export type Fault = {
  name: string;
  /** Title in the table. */
  title: string;
  stores: readonly CampaignStore[];
  /** Why it is impossible on this machine, with the remedy; otherwise nothing. */
  missing?: () => string | undefined;
  /** Additional settings of the installation. */
  config?: (store: CampaignStore) => Partial<ClusterConfig>;
  /** Additional settings of an alarm. */
  extras?: (user: ClusterUser, random: () => number) => Partial<AlarmCreateBody>;
  /** The users that the fault itself affects; it must not affect the others. */
  affects?: (user: ClusterUser) => boolean;
  /** Its extent in the version of five minutes. */
  short: Extent;
  /** Causes one fault; resolves when it has ended. */
  strike: (scene: FaultContext) => Promise<Strike>;
  /** Time after the last strike for delays that end by themselves. */
  finish?: (installation: Cluster) => void;
};

/** Long enough for one round on the retry ladder. */
export const ONE_RETRY_MS = 40_000;

export function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!;
}

/** Uniform between two bounds. */
export function between(random: () => number, low: number, high: number): number {
  return low + random() * (high - low);
}
