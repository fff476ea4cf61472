/**
 * Buckets: every owner belongs to one bucket, and all rows of an owner have its number as the first part of their keys.
 * A statement names one bucket, so that an engine that distributes tables over servers runs it on one of them.
 */
import { createHash } from 'node:crypto';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { type Call, type Row, statement } from './statement.ts';

/** The number is chosen when the tables are created. One is right for one server. */
export const MOST_BUCKETS = 4096;

/** Owners whose buckets are cached. */
const REMEMBERED = 10_000;

/** The column that determines a row's bucket, for each table with buckets. */
export const OWNED_TABLES = {
  alarms: 'owner',
  occurrences: 'owner',
  owners: 'owner',
  fire_attempts: 'owner',
  fire_receipts: 'owner',
  agent_keys: 'owner',
  auth_nonces: 'nonce',
} as const;

/**
 * @throws ReveilleError `invalid_request` when the number is not allowed
 */
export function checkCount(count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > MOST_BUCKETS)
    throw new ReveilleError('invalid_request', `the number of buckets must be 1 to ${MOST_BUCKETS} (got ${count})`);
}

/** {@link Buckets.of} in SQL. */
export function bucketOf(name: string, count: number): string {
  return `('x0' || substr(md5(${name}), 1, 7))::bit(32)::int % ${count}`;
}

/**
 * The statements that set the number of buckets and assign the stored rows to them. With several buckets, replicas of
 * versions without buckets can add no rows any more.
 */
export function firstBuckets(count: number): string[] {
  checkCount(count);
  const chosen = `INSERT INTO bucketing (only_one, buckets) VALUES (1, ${count})`;
  if (count === 1) return [chosen];
  const moved = Object.entries(OWNED_TABLES).flatMap(([table, name]) => [
    `ALTER TABLE ${table} ALTER COLUMN bucket DROP DEFAULT`,
    `UPDATE ${table} SET bucket = ${bucketOf(name, count)}`,
  ]);
  return [chosen, 'DROP INDEX owners_before_buckets', ...moved];
}

const READ = statement(
  'buckets',
  "SELECT buckets, EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus') FROM bucketing",
);

/** The buckets of a database. */
export async function readBuckets(executor: Executor): Promise<Buckets> {
  const [row] = (await executor.query(READ, [])) as [number, boolean][];
  return row ? new Buckets(...row) : new Buckets(1);
}

export class Buckets {
  readonly count: number;
  /** Whether Citus plans the statements: tables are, or may be, distributed over servers. */
  readonly citus: boolean;
  readonly #known = new Map<string, number>();

  constructor(count: number, citus = false) {
    this.count = count;
    this.citus = citus;
  }

  /** All bucket numbers, from 0 on. */
  all(): number[] {
    return Array.from({ length: this.count }, (_, bucket) => bucket);
  }

  /** The bucket of an owner, or of an item without an owner by its own name. */
  of(name: string): number {
    if (this.count === 1) return 0;
    let bucket = this.#known.get(name);
    if (bucket === undefined) {
      bucket = Number.parseInt(createHash('md5').update(name).digest('hex').slice(0, 7), 16) % this.count;
      if (this.#known.size >= REMEMBERED) this.#known.clear();
      this.#known.set(name, bucket);
    }
    return bucket;
  }

  /**
   * Groups items by the bucket of their owner. Items keep their order, and buckets are sorted, so that two transactions
   * over several buckets cannot deadlock.
   */
  group<T>(items: readonly T[], ownerOf: (item: T) => string): [bucket: number, items: readonly T[]][] {
    if (this.count === 1) return items.length === 0 ? [] : [[0, items]];
    const grouped = [...Map.groupBy(items, (item) => this.of(ownerOf(item)))];
    return grouped.sort(([one], [other]) => one - other);
  }

  /**
   * Runs statements about several buckets: in one transaction and one round trip where all buckets are on one server,
   * otherwise each on its own.
   *
   * @returns the rows of each, or why it failed
   */
  async query(pool: PrimaryPool, calls: readonly Call[]): Promise<PromiseSettledResult<Row[]>[]> {
    if (this.citus || calls.length <= 1)
      return Promise.allSettled(calls.map(({ statement, values }) => pool.query(statement, values)));
    const [answer] = await Promise.allSettled([pool.together(calls)]);
    return calls.map((_, index) =>
      answer!.status === 'rejected' ? answer! : { status: 'fulfilled', value: answer!.value[index]! },
    );
  }

  /** As {@link query}, but every statement must succeed; returns the rows of all. */
  async queryAll(pool: PrimaryPool, calls: readonly Call[]): Promise<Row[]> {
    const answers = await this.query(pool, calls);
    return answers.flatMap((answer) => {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value;
    });
  }
}
