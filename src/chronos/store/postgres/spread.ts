/**
 * Dealing the alarms of a database in use out to another number of buckets, and its tables over the servers of Citus.
 *
 * Replicas go on meanwhile. What they do with the number of buckets that they know cannot come too late: the change of
 * places ends every session of theirs while it holds the tables, and whoever connects afterwards reads the new number
 * first (see `store.ts`).
 */
import pg from 'pg';
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { parseAddress } from './address.ts';
import { refuseHalfArrived } from './arrival.ts';
import { checkCount, OWNED_TABLES, readBuckets } from './buckets.ts';
import { beginFollowing, changePlaces, copyRows, endFollowing, INCOMING } from './follow.ts';
import { migrate } from './migrate.ts';
import { PrimaryPool } from './pool.ts';
import { isConflict, SQLSTATE, sqlState, storeError } from './postgres-error.ts';

export type SpreadOptions = {
  uri: string;
  /** How many buckets there are to be. */
  buckets: number;
  /** Whether Citus is to keep the tables on its workers. */
  citus?: boolean;
  clock: Clock;
  log: Logger;
  /** Told what is being done and how many rows were copied so far. */
  report?: (step: string, rows: number) => void;
};

export type SpreadResult = {
  /** The database, `host:port/database`. */
  database: string;
  was: number;
  buckets: number;
  rows: number;
  /** How long replicas had to wait while the tables changed places, milliseconds. */
  stoodStillMs: number;
  /** Whether the tables are on the workers of Citus. */
  distributed: boolean;
};

const TABLES = Object.keys(OWNED_TABLES);
/** Their rows are compared by number in the end; the ledger is long. */
const COUNTED = TABLES.filter((name) => name !== 'fire_attempts' && name !== 'fire_receipts');
/** Any number that nothing else here locks. */
const LOCK_KEY = 7_383_553;
/** Whoever waits for a lock makes others wait behind it: not for long, and then again. */
const LOCK_TIMEOUT_MS = 1000;
const LOCK_ROUNDS = 60;
const LOCK_PAUSE_MS = 500;
/** How long sessions may take to end. */
const ENDING_MS = 5000;

/** Of those who are there when it is asked first, so that it can be asked again: others come, and wait. */
const SESSIONS = `
  SELECT pid || ' ' || backend_start FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'chronosd' AND backend_type = 'client backend'`;

class Spreading {
  readonly #client: pg.Client;
  readonly #options: SpreadOptions;
  rows = 0;
  stoodStillMs = 0;

  constructor(client: pg.Client, options: SpreadOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** Alone, and with the rights that it takes. */
  async begin(): Promise<void> {
    const { rows } = await this.#client.query<[boolean, boolean]>({
      text: `SELECT pg_try_advisory_lock(${LOCK_KEY}), pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'alarms'::regclass`,
      rowMode: 'array',
    });
    const [alone, owns] = rows[0]!;
    if (!alone)
      throw new ReveilleError('conflict', 'another "reveille spread" is at work on this database; wait for it');
    if (!owns)
      throw new ReveilleError(
        'invalid_request',
        'the user of the URI does not own the tables; name the user that chronosd connects with',
      );
  }

  async isDistributed(): Promise<boolean> {
    const { rows } = await this.#client.query(`SELECT 1 FROM pg_extension WHERE extname = 'citus'`);
    if (rows.length === 0) return false;
    const found = await this.#client.query(`SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'alarms'::regclass`);
    return found.rows.length > 0;
  }

  async rebucket(): Promise<void> {
    const { buckets, report } = this.#options;
    await this.#alone('SHARE ROW EXCLUSIVE', TABLES, () => beginFollowing(this.#client, buckets));
    for (const name of TABLES)
      await copyRows(this.#client, name, buckets, (rows) => {
        this.rows += rows;
        report?.(name, this.rows);
      });
    for (const name of TABLES) await this.#client.query(`ANALYZE ${INCOMING}.${name}`);
    await this.#alone('ACCESS EXCLUSIVE', ['bucketing', ...TABLES], async () => {
      await this.#compare();
      await this.#endSessions();
      await changePlaces(this.#client);
      await this.#client.query('UPDATE bucketing SET buckets = $1', [buckets]);
    });
    await endFollowing(this.#client);
  }

  /** Hands the tables to Citus: all of them by bucket, what belongs to one bucket on one server. */
  async distribute(): Promise<void> {
    const { buckets } = this.#options;
    await this.#alone('ACCESS EXCLUSIVE', ['bucketing', ...TABLES], async () => {
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

  /** Ends the sessions of replicas; those that come afterwards wait for the tables. */
  async #endSessions(): Promise<void> {
    const sessions = async () => {
      // Within a transaction it is remembered who was there.
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

  /** A transaction that has tables for itself; waits for them in short turns. */
  async #alone(mode: string, tables: readonly string[], work: () => Promise<void>): Promise<void> {
    for (let round = 1; ; round++) {
      const began = this.#options.clock.monotonic();
      try {
        await this.#client.query(`BEGIN; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await this.#client.query(`LOCK TABLE ${tables.join(', ')} IN ${mode} MODE`);
        await work();
        await this.#client.query('COMMIT');
        this.stoodStillMs = this.#options.clock.monotonic() - began;
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
 * Changes the number of buckets, and hands the tables to Citus where that is asked for. Replicas may run; what was
 * begun and not finished is begun anew.
 *
 * @throws ReveilleError `invalid_request` when the number cannot be, Citus is asked for and not there, or tables that it
 *   keeps already are to be dealt out anew; `conflict` when somebody is at it already; as `openPostgresStore` otherwise
 */
export async function spread(options: SpreadOptions): Promise<SpreadResult> {
  const { uri, buckets, citus = false, clock, log } = options;
  checkCount(buckets);
  const pool = new PrimaryPool(parseAddress(uri), { size: 1, clock, log });
  let client: pg.Client | undefined;
  try {
    await pool.connect();
    const { primary } = pool;
    const connection = pool.clientConfig(primary);
    await migrate(primary, connection, log, { buckets });
    await refuseHalfArrived(pool, primary.name);
    const { count: was, citus: hasCitus } = await readBuckets(pool);
    await pool.close();
    if (citus && !hasCitus)
      throw new ReveilleError(
        'invalid_request',
        `${primary.name} has no Citus; run "CREATE EXTENSION citus" there first`,
      );
    client = new pg.Client({ ...connection, application_name: 'reveille spread', pipeline: false, query_timeout: 0 });
    client.on('error', () => {});
    await client.connect();
    const work = new Spreading(client, options);
    await work.begin();
    const distributed = await work.isDistributed();
    if (!distributed) await endFollowing(client);
    if (distributed && was !== buckets)
      throw new ReveilleError(
        'invalid_request',
        `Citus keeps the tables in ${was} buckets already; that many they stay`,
      );
    if (was !== buckets) await work.rebucket();
    if (citus && !distributed) await work.distribute();
    const { rows, stoodStillMs } = work;
    return { database: primary.name, was, buckets, rows, stoodStillMs, distributed: distributed || citus };
  } catch (thrown) {
    throw storeError(thrown);
  } finally {
    await pool.close();
    await client?.end();
  }
}
