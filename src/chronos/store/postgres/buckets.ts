/**
 * Buckets: every owner belongs to one of so many, and every row that an owner has carries its number as the first part
 * of its keys. A statement names one bucket, so that an engine that spreads tables over servers runs it on one of them.
 */
import { createHash } from 'node:crypto';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { type Call, type Row, statement } from './statement.ts';

/** The number is chosen when the tables are made. One is right for one server. */
export const MOST_BUCKETS = 4096;

/** Owners whose buckets are remembered. */
const REMEMBERED = 10_000;

/** What a row's bucket follows from, in each table that has one. */
export const OWNED_TABLES = {
  alarms: 'owner',
  occurrences: 'owner',
  owners: 'owner',
  fire_attempts: 'owner',
  fire_receipts: 'owner',
  agent_keys: 'owner',
  auth_nonces: 'nonce',
} as const;

/** @throws ReveilleError `invalid_request` when there cannot be so many buckets */
export function checkCount(count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > MOST_BUCKETS)
    throw new ReveilleError('invalid_request', `there are 1 to ${MOST_BUCKETS} buckets (got ${count})`);
}

/** {@link Buckets.of} in SQL. */
export function bucketOf(name: string, count: number): string {
  return `('x0' || substr(md5(${name}), 1, 7))::bit(32)::int % ${count}`;
}

/**
 * The statements that choose the number of buckets and put what is stored into them. Where there are several, replicas
 * that know nothing of buckets can add no row any more.
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
  /** Whether Citus plans the statements: tables are spread over servers, or may be. */
  readonly citus: boolean;
  readonly #known = new Map<string, number>();

  constructor(count: number, citus = false) {
    this.count = count;
    this.citus = citus;
  }

  /** All of them, from 0 on. */
  all(): number[] {
    return Array.from({ length: this.count }, (_, bucket) => bucket);
  }

  /** The bucket of an owner, or of anything else that has no owner but a name of its own. */
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
   * Items by the bucket of their owner, each with its items in the order in which they came; the buckets in theirs, so
   * that two transactions over several of them do not wait for each other in a circle.
   */
  group<T>(items: readonly T[], ownerOf: (item: T) => string): [bucket: number, items: readonly T[]][] {
    if (this.count === 1) return items.length === 0 ? [] : [[0, items]];
    const grouped = [...Map.groupBy(items, (item) => this.of(ownerOf(item)))];
    return grouped.sort(([one], [other]) => one - other);
  }

  /**
   * Runs statements about several buckets: in one transaction and one trip where all of them are on one server, each on
   * its own where they may be on several.
   *
   * @returns of each its rows, or why it failed
   */
  async ask(pool: PrimaryPool, calls: readonly Call[]): Promise<PromiseSettledResult<Row[]>[]> {
    if (this.citus || calls.length <= 1)
      return Promise.allSettled(calls.map(({ statement, values }) => pool.query(statement, values)));
    const [answer] = await Promise.allSettled([pool.together(calls)]);
    return calls.map((_, index) =>
      answer!.status === 'rejected' ? answer! : { status: 'fulfilled', value: answer!.value[index]! },
    );
  }

  /** The same where each has to succeed; gives the rows of all. */
  async read(pool: PrimaryPool, calls: readonly Call[]): Promise<Row[]> {
    const answers = await this.ask(pool, calls);
    return answers.flatMap((answer) => {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value;
    });
  }
}
