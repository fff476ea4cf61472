/**
 * Buckets: every owner belongs to one bucket, and all rows of an owner have its number as the first part of their keys.
 * One server needs one bucket. The code for several of them is in `sharding/`, behind the interfaces of this file.
 */
import type { Claim, ClaimRequest } from '../store.ts';
import type { PrimaryPool } from './pool.ts';
import type { ReplicaNotifications } from './replica-notifications.ts';
import type { Call, Row } from './statement.ts';

export type Buckets = {
  readonly count: number;
  /** Replaces statements that an engine with distributed tables would run on all servers; absent on one server. */
  readonly distributed?: DistributedStatements;

  /** All bucket numbers, from 0 on. */
  all(): number[];

  /** The bucket of an owner, or of an item without an owner by its own name. */
  of(name: string): number;

  /** The owners that belong to a bucket. */
  ownersIn(bucket: number, owners: ReadonlySet<string>): string[];

  /**
   * Groups items by the bucket of their owner. Items keep their order, and buckets are sorted, so that two transactions
   * over several buckets cannot deadlock.
   */
  group<T>(items: readonly T[], ownerOf: (item: T) => string): [bucket: number, items: readonly T[]][];

  /** Runs a statement for each of several buckets; returns the rows of each, or why it failed. */
  query(pool: PrimaryPool, calls: readonly Call[]): Promise<PromiseSettledResult<Row[]>[]>;

  /** As {@link query}, but every statement must succeed; returns the rows of all. */
  queryAll(pool: PrimaryPool, calls: readonly Call[]): Promise<Row[]>;

  /** Processes up to `limit` rows; a call starts at the bucket where the last one ended, which may have more. */
  inTurn(work: LimitedWork): (request: { before: number; limit: number }) => Promise<number>;
};

/** Work on a bucket; resolves with the number of processed rows. */
export type LimitedWork = (bucket: number, request: { before: number; limit: number }) => Promise<number>;

/** Statements in a form that runs on one of several servers. */
export type DistributedStatements = {
  /** Stores a single turn report of a known fire. */
  readonly recordTurnReport: Call['statement'];
};

/** The most to claim from a bucket. */
export type Portion = { bucket: number; limit: number };

/**
 * The buckets that a replica prefers: all, its share by rendezvous hashing over the active replicas, or the selection of
 * a function. It waits a moment before it claims from other buckets.
 */
export type Preference = 'all' | 'rendezvous' | ((bucket: number) => boolean);

/** From which bucket a replica claims when. */
export type ClaimOrder = {
  /** Exchanges messages with the other replicas from now on. */
  join(notifications: ReplicaNotifications): void;
  /** This replica claims. */
  recordClaim(): void;
  leave(): void;

  /** How long this replica waits before it claims from a bucket where something is due: another may be preferred. */
  waitMs(bucket: number): number;

  /** The number of due occurrences that a claim of up to `limit` counts for later claims; 0: no count. */
  countedDue(limit: number): number;

  /** The known times at which this replica may claim, and the buckets that a query must look at. */
  lookAhead(saturated: ReadonlySet<string>, now: number): { known: number[]; unknown: number[] };

  /**
   * Claims from the buckets in their order.
   *
   * @param claimFrom claims from some buckets; returns for each the claims, or why it failed
   */
  claim(
    request: ClaimRequest,
    claimFrom: (portions: readonly Portion[]) => Promise<PromiseSettledResult<Claim[]>[]>,
  ): Promise<Claim[]>;
};

/** All owners are in the same bucket. */
export const ONE_BUCKET: Buckets = {
  count: 1,
  all: () => [0],
  of: () => 0,
  ownersIn: (_, owners) => [...owners],
  group: (items) => (items.length === 0 ? [] : [[0, items]]),
  query: (pool, calls) => Promise.allSettled(calls.map(({ statement, values }) => pool.query(statement, values))),
  async queryAll(pool, calls) {
    return (await Promise.all(calls.map(({ statement, values }) => pool.query(statement, values)))).flat();
  },
  inTurn: (work) => (request) => work(0, request),
};
