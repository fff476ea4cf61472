/**
 * Several buckets: their tables, their number, and the statements for an engine that distributes tables over servers. A
 * statement names one bucket, so that the engine runs it on one of them.
 */
import { createHash } from 'node:crypto';
import { ReveilleError } from '../../../wire/errors.ts';
import { type Buckets, type DistributedStatements, type LimitedWork, ONE_BUCKET } from '../postgres/buckets.ts';
import type { Executor, PrimaryPool } from '../postgres/pool.ts';
import { TURN_REPORT } from '../postgres/rows.ts';
import { type Call, type Row, statement } from '../postgres/statement.ts';
import { NEW_STAGES } from '../postgres/turn-reports.ts';

/** The number is chosen when the tables are created. One is right for one server. */
export const MOST_BUCKETS = 4096;

/** Owners whose buckets are cached. */
const REMEMBERED = 10_000;

/** The column that determines a row's bucket, for each table with buckets. */
export const OWNED_TABLES = {
  definitions: 'owner',
  progress: 'owner',
  owners: 'owner',
  ledger: 'owner',
  fire_receipts: 'owner',
  events: 'owner',
  agent_keys: 'owner',
  calendar_feeds: 'owner',
  auth_nonces: 'nonce',
} as const;

/** The tables when buckets were introduced. */
const FIRST_TABLES = {
  alarms: 'owner',
  occurrences: 'owner',
  owners: 'owner',
  fire_attempts: 'owner',
  fire_receipts: 'owner',
  agent_keys: 'owner',
  auth_nonces: 'nonce',
} as const;

function checkCount(count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > MOST_BUCKETS)
    throw new ReveilleError('invalid_request', `the number of buckets must be 1 to ${MOST_BUCKETS} (got ${count})`);
}

/** {@link SeveralBuckets.of} in SQL. */
export function bucketOf(name: string, count: number): string {
  return `('x0' || substr(md5(${name}), 1, 7))::bit(32)::int % ${count}`;
}

/**
 * The statements that set the number of buckets and assign the stored rows to them. With several buckets, replicas of
 * versions without buckets can add no rows any more.
 *
 * @throws ReveilleError `invalid_request` when the number is not allowed
 */
export function firstBuckets(count: number): string[] {
  checkCount(count);
  const chosen = `INSERT INTO bucketing (only_one, buckets) VALUES (1, ${count})`;
  if (count === 1) return [chosen];
  const moved = Object.entries(FIRST_TABLES).flatMap(([table, name]) => [
    `ALTER TABLE ${table} ALTER COLUMN bucket DROP DEFAULT`,
    `UPDATE ${table} SET bucket = ${bucketOf(name, count)}`,
  ]);
  return [chosen, 'DROP INDEX owners_before_buckets', ...moved];
}

const READ = statement(
  'buckets',
  "SELECT buckets, EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus') FROM bucketing",
);

/**
 * Statements for tables that Citus distributes over servers. Citus runs a statement on one server only when it names
 * the bucket, has no INSERT in its WITH, and inserts by VALUES.
 */
const DISTRIBUTED: DistributedStatements = {
  recordTurnReport: statement(
    'record_receipt',
    `INSERT INTO fire_receipts (bucket, ${TURN_REPORT.list()}) VALUES ($1, ${TURN_REPORT.scalars(2)}) ${NEW_STAGES} RETURNING stage`,
  ),
};

/** The buckets of a database. */
export async function readBuckets(executor: Executor): Promise<Buckets> {
  const [row] = (await executor.query(READ, [])) as [number, boolean][];
  if (!row) return ONE_BUCKET;
  const [count, isCitus] = row;
  return count === 1 && !isCitus ? ONE_BUCKET : new SeveralBuckets(count, isCitus ? DISTRIBUTED : undefined);
}

/** Whether two readings of a database allow the same statements. */
export function isSameLayout(one: Buckets, other: Buckets): boolean {
  return one.count === other.count && one.distributed === other.distributed;
}

export class SeveralBuckets implements Buckets {
  readonly count: number;
  readonly distributed?: DistributedStatements;
  readonly #known = new Map<string, number>();

  /** @param distributed for tables that are, or may be, distributed over servers */
  constructor(count: number, distributed?: DistributedStatements) {
    this.count = count;
    if (distributed) this.distributed = distributed;
  }

  all(): number[] {
    return Array.from({ length: this.count }, (_, bucket) => bucket);
  }

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

  ownersIn(bucket: number, owners: ReadonlySet<string>): string[] {
    return [...owners].filter((owner) => this.of(owner) === bucket);
  }

  group<T>(items: readonly T[], ownerOf: (item: T) => string): [bucket: number, items: readonly T[]][] {
    const grouped = [...Map.groupBy(items, (item) => this.of(ownerOf(item)))];
    return grouped.sort(([one], [other]) => one - other);
  }

  /** In one transaction and one round trip where all buckets are on one server, otherwise each on its own. */
  async query(pool: PrimaryPool, calls: readonly Call[]): Promise<PromiseSettledResult<Row[]>[]> {
    if (this.distributed || calls.length <= 1) return ONE_BUCKET.query(pool, calls);
    const [answer] = await Promise.allSettled([pool.together(calls)]);
    return calls.map((_, index) =>
      answer!.status === 'rejected' ? answer! : { status: 'fulfilled', value: answer!.value[index]! },
    );
  }

  async queryAll(pool: PrimaryPool, calls: readonly Call[]): Promise<Row[]> {
    const answers = await this.query(pool, calls);
    return answers.flatMap((answer) => {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value;
    });
  }

  inTurn(work: LimitedWork): ReturnType<Buckets['inTurn']> {
    let first = 0;
    return async ({ before, limit }) => {
      let [done, bucket] = [0, first];
      for (let visited = 0; visited < this.count; visited++) {
        done += await work(bucket, { before, limit: limit - done });
        if (done >= limit) break;
        bucket = (bucket + 1) % this.count;
      }
      first = bucket;
      return done;
    };
  }
}
