/**
 * Changes the number of buckets of a database in use, and distributes its tables over the servers of Citus.
 *
 * Replicas keep running. Their statements with the old number of buckets cannot be late: the swap ends all their
 * sessions while it holds the tables. New sessions read the new number first (see `postgres/store.ts`).
 */
import pg from 'pg';
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { parseAddress } from '../postgres/address.ts';
import { migrate } from '../postgres/migrate.ts';
import { PrimaryPool } from '../postgres/pool.ts';
import { isConflict, SQLSTATE, sqlState, storeError } from '../postgres/postgres-error.ts';
import { refuseIncompleteTransfer } from '../postgres/transfer-state.ts';
import { firstBuckets, OWNED_TABLES, readBuckets } from './buckets.ts';
import { copyRows, createCopies, dropCopies, INCOMING, swapTables } from './table-copies.ts';

export type ReshardOptions = {
  uri: string;
  /** The new number of buckets. */
  buckets: number;
  /** Whether to distribute the tables over the workers of Citus. */
  citus?: boolean;
  clock: Clock;
  log: Logger;
  /** Called with the current step and the number of copied rows. */
  report?: (step: string, rows: number) => void;
};

export type ReshardResult = {
  /** The database, `host:port/database`. */
  database: string;
  was: number;
  buckets: number;
  rows: number;
  /** How long replicas had to wait during the swap, in milliseconds. */
  blockedMs: number;
  /** Whether the tables are on the workers of Citus. */
  distributed: boolean;
};

const TABLES = Object.keys(OWNED_TABLES);
/** At the end the rows of the other tables are counted and compared. */
const TOO_LONG: readonly string[] = ['ledger', 'fire_receipts', 'events'];
const COUNTED = TABLES.filter((name) => !TOO_LONG.includes(name));
/** Arbitrary, but used by no other lock here. */
const LOCK_KEY = 7_383_553;
/** A waiting lock request blocks others behind it: so it waits briefly, and is repeated. */
const LOCK_TIMEOUT_MS = 1000;
const LOCK_ROUNDS = 60;
const LOCK_PAUSE_MS = 500;
/** How long sessions may take to end. */
const ENDING_MS = 5000;

/** Only sessions that exist at the first query, so that it can be repeated: new ones connect and wait. */
const SESSIONS = `
  SELECT pid || ' ' || backend_start FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'chronosd' AND backend_type = 'client backend'`;

class Resharding {
  readonly #client: pg.Client;
  readonly #options: ReshardOptions;
  rows = 0;
  blockedMs = 0;

  constructor(client: pg.Client, options: ReshardOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** Takes the lock against a second run and checks the rights. */
  async begin(): Promise<void> {
    const { rows } = await this.#client.query<[boolean, boolean]>({
      text: `SELECT pg_try_advisory_lock(${LOCK_KEY}), pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'definitions'::regclass`,
      rowMode: 'array',
    });
    const [alone, owns] = rows[0]!;
    if (!alone) throw new ReveilleError('conflict', 'another "reveille spread" runs on this database; wait for it');
    if (!owns)
      throw new ReveilleError(
        'invalid_request',
        'the user of the URI does not own the tables; name the user that chronosd connects with',
      );
  }

  async isDistributed(): Promise<boolean> {
    const { rows } = await this.#client.query(`SELECT 1 FROM pg_extension WHERE extname = 'citus'`);
    if (rows.length === 0) return false;
    const found = await this.#client.query(
      `SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'definitions'::regclass`,
    );
    return found.rows.length > 0;
  }

  async rebucket(): Promise<void> {
    const { buckets, report } = this.#options;
    await this.#withExclusiveLock('SHARE ROW EXCLUSIVE', TABLES, () => createCopies(this.#client, buckets));
    for (const name of TABLES)
      await copyRows(this.#client, name, buckets, (rows) => {
        this.rows += rows;
        report?.(name, this.rows);
      });
    for (const name of TABLES) await this.#client.query(`ANALYZE ${INCOMING}.${name}`);
    await this.#withExclusiveLock('ACCESS EXCLUSIVE', ['bucketing', ...TABLES], async () => {
      await this.#compare();
      await this.#endSessions();
      await swapTables(this.#client);
      await this.#client.query('UPDATE bucketing SET buckets = $1', [buckets]);
    });
    await dropCopies(this.#client);
  }

  /** Distributes the tables with Citus by bucket; the rows of one bucket are on one server. */
  async distribute(): Promise<void> {
    const { buckets } = this.#options;
    await this.#withExclusiveLock('ACCESS EXCLUSIVE', ['bucketing', ...TABLES], async () => {
      await this.#endSessions();
      const [first, ...others] = TABLES;
      await this.#client.query(
        `SELECT create_distributed_table('${first}', 'bucket', shard_count := ${buckets}, colocate_with := 'none')`,
      );
      for (const name of others)
        await this.#client.query(`SELECT create_distributed_table('${name}', 'bucket', colocate_with := '${first}')`);
    });
    for (const name of TABLES)
      await this.#client.query(`SELECT truncate_local_data_after_distributing_table('${name}'::regclass)`);
  }

  async #compare(): Promise<void> {
    for (const name of COUNTED) {
      const { rows } = await this.#client.query<[string, string]>({
        text: `SELECT (SELECT count(*) FROM ${name}), (SELECT count(*) FROM ${INCOMING}.${name})`,
        rowMode: 'array',
      });
      const [here, there] = rows[0]!;
      if (here !== there)
        throw new ReveilleError(
          'internal',
          `the copy of ${name} has ${there} rows where there are ${here}; nothing was changed`,
        );
    }
  }

  /** Ends the sessions of replicas; new ones wait for the tables. */
  async #endSessions(): Promise<void> {
    const sessions = async () => {
      // Within a transaction the list of sessions is cached.
      await this.#client.query('SELECT pg_stat_clear_snapshot()');
      return (await this.#client.query<[string]>({ text: SESSIONS, rowMode: 'array' })).rows.map(([name]) => name);
    };
    const found = await sessions();
    const pids = found.map((name) => Number.parseInt(name, 10));
    await this.#client.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS session (pid)', [pids]);
    const end = this.#options.clock.monotonic() + ENDING_MS;
    for (let left = found; left.length > 0; ) {
      if (this.#options.clock.monotonic() > end)
        throw new ReveilleError('unavailable', 'a session of chronosd did not end; nothing was changed, try again');
      await wait(this.#options.clock, 5);
      const there = new Set(await sessions());
      left = left.filter((name) => there.has(name));
    }
  }

  /** A transaction that locks tables exclusively; it waits for them in short turns. */
  async #withExclusiveLock(mode: string, tables: readonly string[], work: () => Promise<void>): Promise<void> {
    for (let round = 1; ; round++) {
      const began = this.#options.clock.monotonic();
      try {
        await this.#client.query(`BEGIN; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await this.#client.query(`LOCK TABLE ${tables.join(', ')} IN ${mode} MODE`);
        await work();
        await this.#client.query('COMMIT');
        this.blockedMs = this.#options.clock.monotonic() - began;
        return;
      } catch (thrown) {
        await this.#client.query('ROLLBACK');
        const met = isConflict(thrown) || sqlState(thrown) === SQLSTATE.LOCK_NOT_AVAILABLE;
        if (!met || round >= LOCK_ROUNDS) throw thrown;
        await wait(this.#options.clock, LOCK_PAUSE_MS);
      }
    }
  }
}

/**
 * Changes the number of buckets, and distributes the tables with Citus on request. Replicas may run; an unfinished
 * earlier run is restarted.
 *
 * @throws ReveilleError `invalid_request` when the number is not allowed, Citus is requested but missing, or tables are
 *   distributed already in another number of buckets.
 *   `conflict` when another run is active. Otherwise as `openPostgresStore`.
 */
export async function reshard(options: ReshardOptions): Promise<ReshardResult> {
  const { uri, buckets, citus = false, clock, log } = options;
  const migration = { firstBuckets: firstBuckets(buckets) };
  const pool = new PrimaryPool(parseAddress(uri), { size: 1, clock, log });
  let client: pg.Client | undefined;
  try {
    await pool.connect();
    const { primary } = pool;
    const connection = pool.clientConfig(primary);
    await migrate(primary, connection, log, migration);
    await refuseIncompleteTransfer(pool, primary.name);
    const { count: was, distributed: citusStatements } = await readBuckets(pool);
    await pool.close();
    if (citus && !citusStatements)
      throw new ReveilleError(
        'invalid_request',
        `${primary.name} has no Citus; run "CREATE EXTENSION citus" there first`,
      );
    client = new pg.Client({ ...connection, application_name: 'reveille spread', pipeline: false, query_timeout: 0 });
    client.on('error', () => {});
    await client.connect();
    const work = new Resharding(client, options);
    await work.begin();
    const distributed = await work.isDistributed();
    if (!distributed) await dropCopies(client);
    if (distributed && was !== buckets)
      throw new ReveilleError(
        'invalid_request',
        `Citus distributes the tables in ${was} buckets already; this number cannot be changed`,
      );
    if (was !== buckets) await work.rebucket();
    if (citus && !distributed) await work.distribute();
    const { rows, blockedMs } = work;
    return { database: primary.name, was, buckets, rows, blockedMs, distributed: distributed || citus };
  } catch (thrown) {
    throw storeError(thrown);
  } finally {
    await pool.close();
    await client?.end();
  }
}
