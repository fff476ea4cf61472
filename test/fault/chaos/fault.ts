/** A way of breaking things, and what it needs. One file in `faults/` for each. */
import type { AlarmCreateBody } from '../../../src/chronos/client.ts';
import type { House, HousePlan } from '../../support/cluster/cluster.ts';
import type { HouseUser } from '../../support/cluster/user.ts';
import type { CampaignStore } from './stores.ts';

/** What a fault works on. */
export type Scene = {
  house: House;
  /** Uniform in [0, 1), from the campaign's seed. */
  random: () => number;
  /** How many strikes came before. */
  round: number;
};

export type Strike = {
  /** In a few words. */
  what: string;
  /**
   * When the harm was over, or was done where it needs no mending (a kill); the machine's clock, epoch milliseconds.
   */
  overAt: number;
};

export type Extent = {
  /** At most so many strikes… */
  strikes: number;
  /** …the last of which begins within this time. */
  strikingMs: number;
  /** After each strike, how long the house may take until nothing is overdue before it is struck again regardless. */
  recoveringMs: number;
  /** How long the alarms that were set may take to come to an end once nothing is broken any more. */
  drainMs: number;
};

export type Fault = {
  name: string;
  /** For the table. */
  title: string;
  stores: readonly CampaignStore[];
  /** Why it cannot be done on this machine and what would help, or nothing. */
  missing?: () => string | undefined;
  /** What the house is made with besides. */
  house?: (store: CampaignStore) => Partial<HousePlan>;
  /** What an alarm is given besides. */
  extras?: (user: HouseUser, random: () => number) => Partial<AlarmCreateBody>;
  /** Who is troubled by the fault itself; everybody else must not be. */
  troubles?: (user: HouseUser) => boolean;
  /** How much of it belongs into the version of five minutes. */
  short: Extent;
  /** Breaks something once; resolves when it is whole again. */
  strike: (scene: Scene) => Promise<Strike>;
  /** After the last strike: what time itself would mend. */
  finish?: (house: House) => void;
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
